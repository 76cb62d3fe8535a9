// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// podJSON is a pod that has what it must have.
const podJSON = `{"metadata":{"name":"p","namespace":"default","uid":"u"}}`

func TestQuestionIsRefusedUnlessUnderstoodAsAWhole(t *testing.T) {
	for name, test := range map[string]struct{ body, want string }{
		"nothing":               {``, "unexpected end"},
		"no JSON":               {`pod`, "invalid character"},
		"another type":          {`[]`, "cannot unmarshal array"},
		"half":                  {`{"Pod":` + podJSON, "unexpected end"},
		"two questions":         {`{} {}`, "after top-level value"},
		"empty":                 {`{}`, "no Pod"},
		"null":                  {`null`, "no Pod"},
		"null pod":              {`{"Pod":null,"NodeNames":["a"]}`, "no Pod"},
		"pod of another type":   {`{"Pod":"p","NodeNames":["a"]}`, "Pod: json"},
		"pod without a UID":     {`{"Pod":{"metadata":{"name":"p","namespace":"default"}},"NodeNames":["a"]}`, "its UID"},
		"no nodes":              {`{"Pod":` + podJSON + `}`, "neither"},
		"null nodes and names":  {`{"Pod":` + podJSON + `,"Nodes":null,"NodeNames":null}`, "neither"},
		"nodes and names":       {`{"Pod":` + podJSON + `,"Nodes":{},"NodeNames":[]}`, "both"},
		"nodes of another type": {`{"Pod":` + podJSON + `,"Nodes":[]}`, "Nodes: json"},
		"node of another type":  {`{"Pod":` + podJSON + `,"Nodes":{"items":[1]}}`, "Nodes.items[0]: json"},
		"node without a name":   {`{"Pod":` + podJSON + `,"Nodes":{"items":[{}]}}`, "node 0 has no name"},
		"null node":             {`{"Pod":` + podJSON + `,"Nodes":{"items":[null]}}`, "node 0 has no name"},
		"names of another type": {`{"Pod":` + podJSON + `,"NodeNames":[1]}`, "cannot unmarshal number"},
		"empty name":            {`{"Pod":` + podJSON + `,"NodeNames":["a",""]}`, "node 1 has no name"},
		"name twice":            {`{"Pod":` + podJSON + `,"NodeNames":["a","b","a"]}`, `node "a" occurs twice`},
		"node twice": {`{"Pod":` + podJSON + `,"Nodes":{"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"a"}}]}}`,
			`node "a" occurs twice`},
		"unknown field":    {`{"Pod":` + podJSON + `,"NodeNames":["a"],"Hint":1}`, `unknown field "Hint"`},
		"another case":     {`{"pod":` + podJSON + `,"NodeNames":["a"]}`, `unknown field "pod"`},
		"field twice":      {`{"Pod":` + podJSON + `,"NodeNames":["a"],"NodeNames":["b"]}`, `duplicate field "NodeNames"`},
		"too many names":   {`{"Pod":` + podJSON + `,"NodeNames":["a"` + strings.Repeat(`,"a"`, maxNodes) + `]}`, "has 50001 nodes"},
		"too many nodes":   {`{"Pod":` + podJSON + `,"Nodes":{"items":[{}` + strings.Repeat(`,{}`, maxNodes) + `]}}`, "has 50001 nodes"},
		"a pod of a lorry": {`{"Pod":{"x":"` + strings.Repeat("x", maxObjectBytes) + `"},"NodeNames":["a"]}`, "more than"},
		"a node of a lorry": {
			`{"Pod":` + podJSON + `,"Nodes":{"items":[{"x":"` + strings.Repeat("x", maxObjectBytes) + `"}]}}`, "Nodes.items[0]: it has",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decodeQuestion([]byte(test.body))
			checkMalformed(t, err, test.want)
		})
	}
}

func TestPreemptionIsRefusedUnlessUnderstoodAsAWhole(t *testing.T) {
	with := func(victims string) string { return `{"Pod":` + podJSON + `,` + victims + `}` }
	for name, test := range map[string]struct{ body, want string }{
		"no pod":              {`{"NodeNameToMetaVictims":{}}`, "no Pod"},
		"no victims":          {`{"Pod":` + podJSON + `}`, "neither"},
		"both":                {with(`"NodeNameToVictims":{},"NodeNameToMetaVictims":{}`), "both"},
		"unknown field":       {with(`"NodeNameToMetaVictims":{},"Hint":1`), `unknown field "Hint"`},
		"no node name":        {with(`"NodeNameToMetaVictims":{"":{"Pods":[{"UID":"a"}]}}`), "node 0 has no name"},
		"node twice":          {with(`"NodeNameToMetaVictims":{"n":{"Pods":[{"UID":"a"}]},"n":{"Pods":[{"UID":"a"}]}}`), "duplicate"},
		"null victims":        {with(`"NodeNameToMetaVictims":{"n":null}`), `no victim is given for node "n"`},
		"no pods":             {with(`"NodeNameToMetaVictims":{"n":{"Pods":[]}}`), `no victim is given for node "n"`},
		"null pod":            {with(`"NodeNameToMetaVictims":{"n":{"Pods":[null]}}`), `victim 0 on node "n": it has no UID`},
		"whole without a UID": {with(`"NodeNameToVictims":{"n":{"Pods":[{"metadata":{"name":"a"}}]}}`), "it has no UID"},
		"whole as meta":       {with(`"NodeNameToMetaVictims":{"n":{"Pods":[` + podJSON + `]}}`), `unknown field "metadata"`},
		"victim twice":        {with(`"NodeNameToMetaVictims":{"n":{"Pods":[{"UID":"a"},{"UID":"a"}]}}`), `the UID "a" occurs twice`},
		"unknown field below": {with(`"NodeNameToMetaVictims":{"n":{"Pods":[{"UID":"a"}],"Hint":1}}`), `unknown field "Hint"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decodePreemption([]byte(test.body))
			checkMalformed(t, err, test.want)
		})
	}
}

func TestBindingIsRefusedUnlessComplete(t *testing.T) {
	whole := map[string]string{"PodName": "p", "PodNamespace": "default", "PodUID": "u", "Node": "n"}
	if _, err := decodeBinding(encode(t, whole)); err != nil {
		t.Errorf("whole: %v", err)
	}
	for missing := range whole {
		part := map[string]string{}
		for field, value := range whole {
			if field != missing {
				part[field] = value
			}
		}
		_, err := decodeBinding(encode(t, part))
		checkMalformed(t, err, missing+" is missing")
		part[missing], part["Hint"] = "x", "y"
		_, err = decodeBinding(encode(t, part))
		checkMalformed(t, err, `unknown field "Hint"`)
	}
}

func checkMalformed(t *testing.T, err error, want string) {
	t.Helper()
	if !errors.As(err, new(malformed)) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %T %v, want a malformed error that says %q", err, err, want)
	}
}

func TestQuestionAboutNoNodes(t *testing.T) {
	for name, test := range map[string]struct {
		body  string
		whole bool
	}{
		"empty names":     {`{"Pod":` + podJSON + `,"NodeNames":[]}`, false},
		"empty nodes":     {`{"Pod":` + podJSON + `,"Nodes":{"items":[]}}`, true},
		"null items":      {`{"Pod":` + podJSON + `,"Nodes":{"metadata":{},"items":null},"NodeNames":null}`, true},
		"nodes, no items": {`{"Pod":` + podJSON + `,"Nodes":{}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			q, err := decodeQuestion([]byte(test.body))
			if err != nil {
				t.Fatal(err)
			}
			if len(q.names) != 0 || (q.nodes != nil) != test.whole {
				t.Errorf("names %v, nodes %v, want none, whole nodes: %v", q.names, q.nodes, test.whole)
			}
		})
	}
}

func TestCandidatesAreTheSameInBothForms(t *testing.T) {
	want := []candidate{
		{node: "a", victims: []types.UID{"1", "2"}, violations: 1},
		{node: "b", victims: []types.UID{"3"}},
	}
	for name, body := range map[string]string{
		"meta": `{"Pod":` + podJSON + `,"NodeNameToVictims":null,"NodeNameToMetaVictims":{
			"b":{"Pods":[{"UID":"3"}],"NumPDBViolations":0},"a":{"Pods":[{"UID":"1"},{"UID":"2"}],"NumPDBViolations":1}}}`,
		"whole": `{"Pod":` + podJSON + `,"NodeNameToVictims":{"a":{"Pods":[{"metadata":{"name":"x","uid":"1"},"spec":{"later":1}},
			{"metadata":{"uid":"2"}}],"NumPDBViolations":1},"b":{"Pods":[{"metadata":{"uid":"3"}}]}}}`,
	} {
		p, err := decodePreemption([]byte(body))
		if err != nil || !reflect.DeepEqual(p.candidates, want) {
			t.Errorf("%s: got %+v, %v, want %+v", name, p, err, want)
		}
	}
}

// TestFilterResultIsUpstreams fails when upstream's type has a field that ours does not.
func TestFilterResultIsUpstreams(t *testing.T) {
	ours, upstreams := reflect.TypeOf(filterResult{}), reflect.TypeOf(extenderv1.ExtenderFilterResult{})
	for i := range upstreams.NumField() {
		if name := upstreams.Field(i).Name; ours.NumField() != upstreams.NumField() || ours.Field(i).Name != name {
			t.Errorf("field %d is not %s", i, name)
		}
	}
}
