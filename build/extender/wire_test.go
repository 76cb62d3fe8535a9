// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// podJSON is a pod that has what it must have.
const podJSON = `{"metadata":{"name":"p","namespace":"default","uid":"u"}}`

func TestQuestionIsRefusedUnlessUnderstoodAsAWhole(t *testing.T) {
	with := func(nodes string) string { return `{"Pod":` + podJSON + `,` + nodes + `}` }
	for name, test := range map[string]struct{ body, want string }{
		"nothing":               {``, "unexpected end"},
		"no JSON":               {`pod`, "invalid character"},
		"another type":          {`[]`, "cannot unmarshal array"},
		"two questions":         {`{} {}`, "after top-level value"},
		"no pod":                {`{}`, "no Pod"},
		"null pod":              {`{"Pod":null,"NodeNames":["a"]}`, "no Pod"},
		"pod of another type":   {`{"Pod":"p","NodeNames":["a"]}`, "cannot unmarshal string"},
		"pod without a UID":     {`{"Pod":{"metadata":{"name":"p","namespace":"default"}},"NodeNames":["a"]}`, "its UID"},
		"null nodes and names":  {with(`"Nodes":null,"NodeNames":null`), "must be given"},
		"nodes and names":       {with(`"Nodes":{},"NodeNames":[]`), "not both"},
		"nodes of another type": {with(`"Nodes":[]`), "cannot unmarshal array"},
		"node of another type":  {with(`"Nodes":{"items":[1]}`), "Nodes.items[0]: json"},
		"null node":             {with(`"Nodes":{"items":[null]}`), "a node has no name"},
		"names of another type": {with(`"NodeNames":[1]`), "cannot unmarshal number"},
		"empty name":            {with(`"NodeNames":["a",""]`), "a node has no name"},
		"name twice":            {with(`"NodeNames":["a","b","a"]`), `node "a" occurs twice`},
		"node twice":            {with(`"Nodes":{"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"a"}}]}`), `node "a" occurs twice`},
		"unknown field":         {with(`"NodeNames":["a"],"Hint":1`), `unknown field "Hint"`},
		"another case":          {`{"pod":` + podJSON + `,"NodeNames":["a"]}`, `unknown field "pod"`},
		"field twice":           {with(`"NodeNames":["a"],"NodeNames":["b"]`), `duplicate field "NodeNames"`},
		"too many names":        {with(`"NodeNames":["a"` + strings.Repeat(`,"a"`, maxNodes) + `]`), "has 50001 nodes"},
		"too many nodes":        {with(`"Nodes":{"items":[{}` + strings.Repeat(`,{}`, maxNodes) + `]}`), "has 50001 nodes"},
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
		"no victims":          {`{"Pod":` + podJSON + `}`, "must be given"},
		"both":                {with(`"NodeNameToVictims":{},"NodeNameToMetaVictims":{}`), "not both"},
		"unknown field":       {with(`"NodeNameToMetaVictims":{},"Hint":1`), `unknown field "Hint"`},
		"no node name":        {with(`"NodeNameToMetaVictims":{"":{"Pods":[{"UID":"a"}]}}`), "a node has no name"},
		"node twice":          {with(`"NodeNameToMetaVictims":{"n":{"Pods":[{"UID":"a"}]},"n":{"Pods":[{"UID":"a"}]}}`), "duplicate"},
		"null victims":        {with(`"NodeNameToMetaVictims":{"n":null}`), `no victim is given for node "n"`},
		"null whole victims":  {with(`"NodeNameToVictims":{"n":null}`), `no victim is given for node "n"`},
		"no pods":             {with(`"NodeNameToMetaVictims":{"n":{"Pods":[]}}`), `no victim is given for node "n"`},
		"null pod":            {with(`"NodeNameToMetaVictims":{"n":{"Pods":[null]}}`), "it has no UID"},
		"null whole pod":      {with(`"NodeNameToVictims":{"n":{"Pods":[null]}}`), "it has no UID"},
		"whole without a UID": {with(`"NodeNameToVictims":{"n":{"Pods":[{"metadata":{"name":"a"}}]}}`), "it has no UID"},
		"whole as meta":       {with(`"NodeNameToMetaVictims":{"n":{"Pods":[` + podJSON + `]}}`), `unknown field "metadata"`},
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
		checkMalformed(t, err, "is missing")
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

// TestFilterResultIsUpstreams fails when upstream's type has a field that ours does not.
func TestFilterResultIsUpstreams(t *testing.T) {
	ours, upstreams := reflect.TypeOf(filterResult{}), reflect.TypeOf(extenderv1.ExtenderFilterResult{})
	for i := range upstreams.NumField() {
		if name := upstreams.Field(i).Name; ours.NumField() != upstreams.NumField() || ours.Field(i).Name != name {
			t.Errorf("field %d is not %s", i, name)
		}
	}
}
