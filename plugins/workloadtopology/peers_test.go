// SPDX-License-Identifier: Apache-2.0

package workloadtopology

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestReadPeers(t *testing.T) {
	tests := []struct {
		annotation string
		want       peersOfRoles
	}{
		{annotation: ""},
		{annotation: "taskmanager=10,jobmanager=1", want: peersOfRoles{roles: []string{"taskmanager", "jobmanager"}, weights: []int64{10, 1}}},
		{annotation: " taskmanager = 100 , jobmanager ", want: peersOfRoles{roles: []string{"taskmanager", "jobmanager"}, weights: []int64{100, 1}}},
		{annotation: "a=0,b=101,c=-1,d=x,e=1.5,f=", want: peersOfRoles{ignored: 6, example: "a=0"}},
		{annotation: "a=1,,=3,a=2", want: peersOfRoles{roles: []string{"a"}, weights: []int64{1}, ignored: 3, example: ""}},
		{annotation: `{"a": 1}`, want: peersOfRoles{ignored: 1, example: `{"a": 1}`}},
		{annotation: `["taskmanager","jobmanager"]`, want: peersOfRoles{ignored: 2, example: `["taskmanager"`}},
		{annotation: "taskmanager: 10", want: peersOfRoles{ignored: 1, example: "taskmanager: 10"}},
		{annotation: "taskmanager:10;jobmanager:1", want: peersOfRoles{ignored: 1, example: "taskmanager:10;jobmanager:1"}},
		{annotation: "hello world", want: peersOfRoles{ignored: 1, example: "hello world"}},
		{annotation: "a=99999999999999999999", want: peersOfRoles{ignored: 1, example: "a=99999999999999999999"}},
	}
	for _, tt := range tests {
		t.Run(tt.annotation, func(t *testing.T) {
			if got := readPeers(tt.annotation); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
	var many []string
	for i := 0; i < 1000; i++ {
		many = append(many, fmt.Sprintf("role-%d=2", i))
	}
	if got := readPeers(strings.Join(many, ",")); len(got.roles) != mostRoles || got.ignored != mostParts+1-mostRoles {
		t.Errorf("of 1000 roles %d count and %d are ignored", len(got.roles), got.ignored)
	}
	// The largest annotation that there can be.
	if got := readPeers(strings.Repeat("é", 128*1024)); len(got.roles) != 0 || got.ignored != 1 || len(got.example) > mostExample || !utf8.ValidString(got.example) {
		t.Errorf("of a text without commas %d roles count, and %q is told", len(got.roles), got.example)
	}
}
