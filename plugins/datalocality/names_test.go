// SPDX-License-Identifier: Apache-2.0

package datalocality

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

const gibibyte = 1 << 30

func TestParseReads(t *testing.T) {
	long := strings.Repeat("a", maxNameBytes)
	tests := []struct {
		name    string
		text    string
		want    []read
		ignored []refused
	}{
		{name: "nothing", text: ""},
		{name: "commas alone", text: " , ,"},
		{name: "one with a size", text: "sales=120Gi", want: []read{{"sales", 120 * gibibyte}}},
		{name: "sizes in all ways", text: "a=1,b=1k,c=1Ki,d=1.5Gi,e=2E", want: []read{{"a", 1}, {"b", 1000}, {"c", 1024}, {"d", 3 * gibibyte / 2}, {"e", maxRead}}},
		{name: "without sizes all count the same", text: "a,b", want: []read{{"a", 1}, {"b", 1}}},
		{name: "without a size it counts as the mean of the others: (1 + 4) / 2, rounded up", text: "a=1,ref,b=4", want: []read{{"a", 1}, {"ref", 3}, {"b", 4}}},
		{name: "spaces and a last comma", text: " a = 1 ,\tb/2024 = 2 ,", want: []read{{"a", 1}, {"b/2024", 2}}},
		{name: "less than a byte is one", text: "a=1m", want: []read{{"a", 1}}},
		{name: "more than 1Pi counts as that", text: "a=1Ei,b=1Pi", want: []read{{"a", maxRead}, {"b", maxRead}}},
		{name: "more than an int64 holds", text: "a=123456789012345678Ei", want: []read{{"a", maxRead}}},
		{
			name: "bad sizes", text: "a=,b=x,c=0,d=-1,e=1 Gi,f=1=2,g=1e3,h=1E3,i=1e-999999999,j=1234567890123456789012345,k=1",
			want: []read{{"k", 1}},
			ignored: []refused{
				{"a=", malformed}, {"b=x", malformed}, {"c=0", malformed}, {"d=-1", malformed}, {"e=1 Gi", malformed}, {"f=1=2", malformed}, {"g=1e3", malformed},
				{"h=1E3", malformed}, {"i=1e-999999999", malformed}, {"j=1234567890123456789012345", malformed},
			},
		},
		{
			name: "bad names", text: "=1,a b,\x00,é," + long + "b," + long,
			want:    []read{{long, 1}},
			ignored: []refused{{"=1", malformed}, {"a b", malformed}, {"\x00", malformed}, {"é", malformed}, {long + "b", malformed}},
		},
		{name: "a list in JSON is none", text: `["a", "b"]`, want: []read{{`["a"`, 1}, {`"b"]`, 1}}},
		{name: "a name twice", text: "a=1,a=2", want: []read{{"a", 1}}, ignored: []refused{{"a=2", repeated}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			began := time.Now()
			got, ignored := parseReads(tt.text)
			var wantIgnored refusals
			for _, one := range tt.ignored {
				wantIgnored.add(one.part, one.reason)
			}
			if !reflect.DeepEqual(got, tt.want) || !reflect.DeepEqual(ignored, wantIgnored) {
				t.Errorf("parseReads(%q) = %v, %+v\nwant %v, %+v", tt.text, got, ignored, tt.want, wantIgnored)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("it takes %v", took)
			}
		})
	}
}

func TestParseReadsAtMost64Datasets(t *testing.T) {
	var names []string
	for i := 0; i < maxReads+2; i++ {
		names = append(names, fmt.Sprintf("d%d=1", i))
	}
	reads, ignored := parseReads(strings.Join(names, ","))
	want := refusals{first: []refused{{"d64=1", tooMany}, {"d65=1", tooMany}}, tooMany: 2}
	if len(reads) != maxReads || !reflect.DeepEqual(ignored, want) {
		t.Errorf("%d count, and %+v are ignored, want %d and %+v", len(reads), ignored, maxReads, want)
	}
}

// TestParseReadsOfALongAnnotation: it is read at each attempt, and the API server takes 256 KiB.
func TestParseReadsOfALongAnnotation(t *testing.T) {
	const parts = 131000
	for text, want := range map[string]refusals{
		"=": {malformed: maxParts, tooMany: 1}, "a": {repeated: maxParts - 1, tooMany: 1}, "": {tooMany: 1},
	} {
		long := strings.Repeat(text+",", parts)
		_, got := parseReads(long)
		if len(got.first) > explainedNames {
			t.Errorf("%q: %d parts are kept", text, len(got.first))
		}
		if got.first = nil; !reflect.DeepEqual(got, want) {
			t.Errorf("%q: ignored are %+v, want %+v", text, got, want)
		}
		if allocations := testing.AllocsPerRun(10, func() { parseReads(long) }); allocations > 10 {
			t.Errorf("%q: %g allocations", text, allocations)
		}
	}
}

func TestParseReadsUpToTheLastPart(t *testing.T) {
	for _, more := range []int{0, 1} {
		reads, ignored := parseReads(strings.Repeat(",", maxParts-1+more) + "a")
		if len(reads) != 1-more || ignored.count() != more {
			t.Errorf("part %d: %v, ignored are %+v", maxParts+more, reads, ignored)
		}
	}
}

func TestForEachName(t *testing.T) {
	tests := []struct {
		text string
		want []string
		bad  int
	}{
		{text: ""},
		{text: "a", want: []string{"a"}},
		{text: " a, b=2Gi ,logs/2024=anything,", want: []string{"a", "b", "logs/2024"}},
		{text: "a b,=1,c,\n", want: []string{"c"}, bad: 2},
		{text: "a,a", want: []string{"a", "a"}},
	}
	for _, tt := range tests {
		var got []string
		if bad := forEachName(tt.text, func(name string) { got = append(got, name) }); bad != tt.bad || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%q: %q and %d bad parts, want %q and %d", tt.text, got, bad, tt.want, tt.bad)
		}
	}
}
