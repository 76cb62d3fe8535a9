// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/gangs"
)

const (
	groupManifest = `{"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "%s"}, "spec": {"minMember": 4}}`
	podManifest   = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "%s", "labels": {"pod-group.scheduling.sigs.k8s.io": "%s"}%s},
		"spec": {"containers": [{"name": "c", "image": "i"}]%s}}`
)

func listOf(items ...string) string {
	return `{"apiVersion": "v1", "kind": "List", "items": [` + strings.Join(items, ",") + `]}`
}

func gangPod(name string, rest ...string) string {
	return fmt.Sprintf(podManifest, name, "job", strings.Join(rest, ""), "")
}

// dryRun sends a manifest, or asks for a pending pod without one.
func dryRun(send func(*http.Request) *httptest.ResponseRecorder, query, manifest string) *httptest.ResponseRecorder {
	if manifest == "" {
		return send(httptest.NewRequest(http.MethodGet, WhatIfPath+query, nil))
	}
	request := httptest.NewRequest(http.MethodPost, WhatIfPath+query, strings.NewReader(manifest))
	request.Header.Set("Content-Type", "application/json")
	return send(request)
}

func TestWhatIfOfGang(t *testing.T) {
	copies := func(number string) string { return `, "annotations": {"scheduling-records/copies": "` + number + `"}` }
	member := podNamed("member")
	member.Labels = map[string]string{gangs.Label: "job"}
	for name, test := range map[string]struct {
		query, manifest string
		// want has the group, and the names and UIDs of the pods that the scheduler is asked for.
		want string
		// undecided is true for a profile without gangs.
		undecided bool
		verdicts  int
		code      int
	}{
		"a pending pod":                            {query: "?pod=default/member", want: "pending member"},
		"verdicts for a pending pod":               {query: "?pod=default/member&nodes=all", want: "pending member, single member", verdicts: 1},
		"a pending pod in a profile without gangs": {query: "?pod=default/member", want: "pending member, single member", undecided: true},
		"a pod without a gang":                     {query: "?pod=default/waits", want: "single waits"},
		"a pod":                                    {manifest: gangPod("a"), want: "a=what-if"},
		"a list":                                   {manifest: listOf(gangPod("a"), gangPod("b")), want: "a=what-if-0 b=what-if-1"},
		"a list with a group":                      {manifest: listOf(fmt.Sprintf(groupManifest, "job"), gangPod("a")), want: "default/job 4: a=what-if-0"},
		"copies":                                   {manifest: listOf(gangPod("a", copies("2")), gangPod("b", copies("1")), gangPod("c", copies("0"))), want: "a-0=what-if-0 a-1=what-if-1 b-0=what-if-2"},
		"a list in a profile without gangs":        {manifest: listOf(gangPod("a"), gangPod("b")), undecided: true, code: 501, want: "a=what-if-0 b=what-if-1"},
		"verdicts for a list":                      {query: "?nodes=all", manifest: listOf(gangPod("a"), gangPod("b")), code: 400},
	} {
		t.Run(name, func(t *testing.T) {
			r, send := served(true)
			r.Sources.Pods = existing(podNamed("waits"), member)
			var asked []string
			r.Sources.WhatIf = func(_ context.Context, pod *v1.Pod, all bool) (*WhatIf, time.Duration, error) {
				asked = append(asked, "single "+pod.Name)
				return &WhatIf{Verdicts: make([]NodeVerdict, 1)}, time.Millisecond, nil
			}
			r.Sources.WhatIfGang = func(_ context.Context, request GangRequest) (*GangWhatIf, time.Duration, error) {
				var pods []string
				for _, pod := range request.Pods {
					pods = append(pods, pod.Name+"="+string(pod.UID))
				}
				text := strings.Join(pods, " ")
				if request.Pending != nil {
					text = "pending " + request.Pending.Name
				}
				if group := request.Group; group != nil {
					spec := group.Object["spec"].(map[string]interface{})
					text = fmt.Sprintf("%s/%s %v: %s", group.GetNamespace(), group.GetName(), spec["minMember"], text)
				}
				if asked = append(asked, text); test.undecided {
					return nil, time.Millisecond, nil
				}
				return &GangWhatIf{Name: "default/job", Result: Unschedulable, Needed: 4, Decision: Decision{Nodes: 3}}, time.Millisecond, nil
			}
			answer := dryRun(send, test.query, test.manifest)
			if got := strings.Join(asked, ", "); got != test.want {
				t.Errorf("asked for %q, want %q", got, test.want)
			}
			if test.code != 0 {
				if status(t, answer); answer.Code != test.code {
					t.Errorf("%d: %s", answer.Code, answer.Body)
				}
				return
			}
			var got WhatIf
			if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || answer.Code != http.StatusOK {
				t.Fatalf("%d (%v): %s", answer.Code, err, answer.Body)
			}
			held := float64(len(asked)) / 1000
			if isGang := got.Gang != nil; isGang != (!test.undecided && test.want != "single waits") || got.Seconds != held {
				t.Errorf("%+v after %v, want %v", got, got.Seconds, held)
			} else if isGang && (got.Result != Unschedulable || got.Nodes != 3 || got.Gang.Needed != 4 || len(got.Verdicts) != test.verdicts) {
				t.Errorf("%+v, %+v", got, got.Gang)
			}
		})
	}
}

// Hostile manifests are refused with one message, and the scheduler is not asked.
func TestWhatIfOfGangErrors(t *testing.T) {
	r, send := served(true)
	r.Sources.WhatIf = func(context.Context, *v1.Pod, bool) (*WhatIf, time.Duration, error) {
		t.Error("a pod is tried")
		return &WhatIf{}, 0, nil
	}
	r.Sources.WhatIfGang = func(context.Context, GangRequest) (*GangWhatIf, time.Duration, error) {
		t.Error("a gang is tried")
		return &GangWhatIf{}, 0, nil
	}
	group := fmt.Sprintf(groupManifest, "job")
	copies := func(number string) string {
		return gangPod("a", `, "annotations": {"scheduling-records/copies": "`+number+`"}`)
	}
	containers := strings.Repeat(`{"name": "c", "image": "i"},`, 4000) + `{}`
	large := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"annotations": {"a": "%s"}}}`, strings.Repeat("x", bytesOfPod))
	for name, test := range map[string]struct {
		manifest, message string
		code              int
	}{
		"no pods":             {listOf(), "the manifest has no pods", 400},
		"only a group":        {listOf(group), "the manifest has no pods", 400},
		"no list":             {`{"apiVersion": "v1", "kind": "List", "items": {}}`, "cannot be decoded", 400},
		"null":                {listOf("null"), "is of kind", 400},
		"a list in a list":    {listOf(listOf(gangPod("a"))), `cannot be decoded`, 400},
		"another kind":        {listOf(`{"apiVersion": "v1", "kind": "Secret"}`), `"Secret"`, 400},
		"the group is last":   {listOf(gangPod("a"), group), "cannot be decoded", 400},
		"another group":       {listOf(fmt.Sprintf(groupManifest, "other"), gangPod("a")), "the PodGroup is /other, but the pods are of default/job", 400},
		"two gangs":           {listOf(gangPod("a"), fmt.Sprintf(podManifest, "b", "other", "", "")), "pod b has another", 400},
		"two namespaces":      {listOf(gangPod("a"), gangPod("b", `, "namespace": "other"`)), "pod b has another", 400},
		"two schedulers":      {listOf(gangPod("a"), fmt.Sprintf(podManifest, "b", "job", "", `, "schedulerName": "other"`)), "pod b has another", 400},
		"no gang":             {listOf(fmt.Sprintf(podManifest, "a", "", "", "")), "does not have the label", 400},
		"one name":            {listOf(gangPod("a"), gangPod("a")), "two pods have the name a", 400},
		"a pod that is bound": {listOf(gangPod("a"), fmt.Sprintf(podManifest, "b", "job", "", `, "nodeName": "n"`)), "sets spec.nodeName", 400},
		"invalid":             {listOf(gangPod("a"), gangPod("B_")), "is not a valid pod", 400},
		"copies of nothing":   {listOf(copies("-1")), `"-1"`, 400},
		"copies in words":     {listOf(copies("many")), `"many"`, 400},
		"too many copies":     {listOf(copies("100000")), `"100000"`, 400},
		"too many pods":       {listOf(copies("1024"), gangPod("b")), "too many pods", 400},
		"large copies": {listOf(gangPod("a", `, "annotations": {"scheduling-records/copies": "1024", "a": "`+strings.Repeat("x", 10000)+`"}`)),
			"more than 8 MiB together", 400},
		"copies of many values": {listOf(fmt.Sprintf(podManifest, "a", "job", `, "annotations": {"scheduling-records/copies": "1024"}`,
			`, "tolerations": [`+strings.Repeat(`{"operator": "Exists"},`, 99)+`{"operator": "Exists"}]`)), "more than 65536 objects and lists", 400},
		"a pod of many values":    {listOf(fmt.Sprintf(podManifest, "a", "job", "", `, "initContainers": [`+containers+strings.Repeat(",{}", 100)+`]`)), "a pod of the manifest has", 413},
		"a manifest of many":      {listOf(strings.Repeat("[],", 20000) + "[]"), "the manifest has 20003 objects and lists", 413},
		"a large pod":             {listOf(large), "a pod of the manifest is too large", 413},
		"a large pod by itself":   {large, "a pod of the manifest is too large", 413},
		"a large manifest":        {listOf(large, large, large, large), "the manifest is too large", 413},
		"deeper than its decoder": {listOf(strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9000)), "", 413},
	} {
		answer := dryRun(send, "", test.manifest)
		if got := status(t, answer); answer.Code != test.code || !strings.Contains(got.Message, test.message) || len(got.Message) > 2<<10 {
			t.Errorf("%s: %d: %+v", name, answer.Code, got)
		}
		r.whatIfs.next = time.Time{}
	}
}

func TestSummariesOfGangs(t *testing.T) {
	rejections := []RejectionRecord{{Plugin: "NodeResourcesFit", Reasons: []string{"Insufficient cpu"}, Nodes: 5}}
	unfit := Decision{Nodes: 5, Evaluated: 5, Rejections: rejections}
	for want, gang := range map[string]GangWhatIf{
		"The gang default/a fits: 2 of its 3 pending pods would go to 1 node with zone=a.": {
			Result: Fits, Needed: 2, Found: 2, Domain: "zone=a", Pods: []GangPod{{"x", "n"}, {"y", "n"}, {Name: "z"}},
		},
		"The gang default/a fits: 1 pending pod would go to 1 node.":        {Result: Fits, Needed: 1, Found: 1, Pods: []GangPod{{"x", "n"}}},
		"The gang default/a cannot run: the pod's PodGroup does not exist.": {Result: Unschedulable, Reason: "the pod's PodGroup does not exist"},
		"The gang default/a does not fit now. Preemption would evict 3 pods from 2 nodes: then 2 of its 3 pending pods would go to 2 nodes.": {
			Result: Unschedulable, Needed: 2, Found: 2, Pods: []GangPod{{"x", "n"}, {"y", "m"}, {Name: "z"}}, Victims: []GangVictims{{"n", []string{"x", "y"}}, {"m", []string{"z"}}},
		},
		"The gang default/a needs places for 1 pod, and found 0 with zone=a, the best domain. Pod default/a-2 fits nowhere there: " +
			"None of 5 nodes fits; 5: Insufficient cpu. No pods can be evicted.": {
			Result: Unschedulable, Needed: 1, Domain: "zone=a", Domains: make([]GangDomain, 2), Unfit: "default/a-2", Decision: unfit, WhyNot: "No pods can be evicted.",
		},
	} {
		gang.Name = "default/a"
		if got := gang.answer(podNamed("pod")); got.Summary != want {
			t.Errorf("%q, want %q", got.Summary, want)
		}
	}
}
