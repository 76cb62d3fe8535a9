// SPDX-License-Identifier: Apache-2.0

package extendernodes

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/testutil"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// extenderOf is the urlPrefix of an extender that is in no other test, and what the metric calls it.
func extenderOf(t *testing.T) (prefix, label string) {
	host := strings.NewReplacer("/", ".", ",", "", "_", "").Replace(strings.ToLower(t.Name())) + ".example.com"
	return "http://user:secret@" + host, "http://" + host
}

func expectCounted(t *testing.T, extender string, want float64) {
	t.Helper()
	got, err := testutil.GetCounterMetricValue(unknownNodes.WithLabelValues(extender, "filter"))
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("scheduler_extender_unknown_nodes_total{extender=%q} is %v, want %v", extender, got, want)
	}
}

func TestKeepNodes(t *testing.T) {
	sent := map[string]*v1.Node{"a": {}, "b": {}, "c": {}}
	tests := []struct {
		name         string
		answer, want []string
		wantUnknown  float64
		// wantErr is the node that the error names.
		wantErr string
	}{
		{name: "all known, in another order", answer: []string{"c", "a"}, want: []string{"c", "a"}},
		{name: "none, which rejects them all"},
		{name: "two unknown, one of them without a name", answer: []string{"c", "x", "", "a"}, want: []string{"c", "a"}, wantUnknown: 2},
		{name: "one twice, as upstream has it", answer: []string{"c", "c"}, want: []string{"c", "c"}},
		{name: "only unknown", answer: []string{"a.example.com", "b.example.com"}, wantUnknown: 2, wantErr: `node "b.example.com" which is not found`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			prefix, label := extenderOf(t)
			answer := &v1.NodeList{}
			for _, name := range tt.answer {
				answer.Items = append(answer.Items, v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
			}
			err := KeepNodes(prefix, &v1.Pod{}, sent, answer)
			if (err != nil) != (tt.wantErr != "") || err != nil && (!strings.Contains(err.Error(), tt.wantErr) || strings.Contains(err.Error(), "secret")) {
				t.Errorf("returned %v, want an error with %q", err, tt.wantErr)
			}
			var got []string
			for _, node := range answer.Items {
				got = append(got, node.Name)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
			expectCounted(t, label, tt.wantUnknown)
		})
	}
}

// TestCheckVictims is also about answers that upstream's conversion panics at.
func TestCheckVictims(t *testing.T) {
	for answer, want := range map[string]string{
		`{"a":{"Pods":[{"UID":"1"}]},"b":{"Pods":[{"UID":"2"},{"UID":"3"}]}}`: "",
		`{"a":{"Pods":null}}`:                 "",
		`null`:                                "",
		`{"a":{"Pods":[{"UID":"1"}]},"x":{}}`: `victims on node "x", which was not sent to it`,
		`{"x":null}`:                          `victims on node "x", which was not sent to it`,
		`{"a":null}`:                          `null for victims on node "a"`,
		`{"b":{"Pods":[{"UID":"1"},null]},"a":{}}`: `null for victims on node "b"`,
	} {
		var victims map[string]*extenderv1.MetaVictims
		if err := json.Unmarshal([]byte(answer), &victims); err != nil {
			t.Fatal(err)
		}
		err := CheckVictims("http://user:secret@example.com", map[string]*extenderv1.Victims{"a": {}, "b": {}}, victims)
		if (err != nil) != (want != "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: returned %v, want an error with %q", answer, err, want)
		}
	}
}

func TestWithoutCredentials(t *testing.T) {
	for prefix, want := range map[string]string{
		"http://user:secret@example.com:80/a": "http://example.com:80/a",
		"http://example.com/a?key=secret":     "http://example.com/a",
		"user:secret@example.com:80/a":        "(not a URL)",
		"https://example.com":                 "https://example.com",
		"http://user:sec ret@example.com":     "(not a URL)",
	} {
		if got := WithoutCredentials(prefix); got != want {
			t.Errorf("%s is shown as %s, want %s", prefix, got, want)
		}
	}
}
