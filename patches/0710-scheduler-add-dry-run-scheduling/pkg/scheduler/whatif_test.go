// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	clientsetfake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/records"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"sigs.k8s.io/yaml"
)

// runScheduler returns a scheduler with the default configuration that runs until ctx is done, and its informers.
func runScheduler(ctx context.Context, t *testing.T, client *clientsetfake.Clientset) (*Scheduler, informers.SharedInformerFactory) {
	t.Helper()
	factory := NewInformerFactory(client, 0)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	sched, err := New(client, factory, nil, profile.NewRecorderFactory(broadcaster), ctx.Done())
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go sched.Run(ctx)
	return sched, factory
}

// TestWhatIf sends requests for dry runs to a running scheduler, and checks that it changed nothing.
func TestWhatIf(t *testing.T) {
	cpu := func(amount string) map[v1.ResourceName]string {
		return map[v1.ResourceName]string{v1.ResourceCPU: amount, v1.ResourcePods: "10"}
	}
	req := func(amount string) map[v1.ResourceName]string {
		return map[v1.ResourceName]string{v1.ResourceCPU: amount}
	}
	ended := st.MakePod().Namespace("default").Name("ended").UID("ended").SchedulerName("default-scheduler").Obj()
	ended.Status.Phase = v1.PodFailed
	client := clientsetfake.NewSimpleClientset(
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
		st.MakeNode().Name("small").Capacity(cpu("1")).Obj(),
		st.MakeNode().Name("large").Capacity(cpu("4")).Obj(),
		st.MakeNode().Name("tainted").Capacity(cpu("1")).Taints([]v1.Taint{{Key: "only", Effect: v1.TaintEffectNoSchedule}}).Obj(),
		st.MakePod().Namespace("default").Name("runs").UID("runs").Node("large").Req(req("3")).Obj(),
		ended,
		st.MakePod().Namespace("default").Name("waits").UID("waits").SchedulerName("default-scheduler").Req(req("2")).Obj(),
	)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	sched, _ := runScheduler(ctx, t, client)
	if err := wait.PollImmediate(10*time.Millisecond, wait.ForeverTestTimeout, func() (bool, error) {
		record, _ := sched.Records.Get("default", "waits")
		return record.Result == records.Unschedulable && len(sched.SchedulingQueue.PendingPods()) == 1, nil
	}); err != nil {
		t.Fatal(err)
	}
	client.ClearActions()
	client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
		if verb := action.GetVerb(); verb != "get" && verb != "list" && verb != "watch" {
			t.Errorf("%s %s", verb, action.GetResource().Resource)
		}
		return false, nil, nil
	})
	handler := sched.Records.Serve(http.NotFoundHandler(), func() bool { return true })
	ask := func(method, query, manifest string) (int, string, records.WhatIf) {
		response := httptest.NewRecorder()
		if converted, err := yaml.YAMLToJSON([]byte(manifest)); err == nil {
			manifest = string(converted)
		}
		request := httptest.NewRequest(method, records.WhatIfPath+query, strings.NewReader(manifest))
		request.Header.Set("Content-Type", "application/json")
		handler.ServeHTTP(response, request)
		body, answer := response.Body.String(), records.WhatIf{}
		if response.Code == http.StatusOK {
			if err := json.Unmarshal([]byte(body), &answer); err != nil {
				t.Errorf("%v in %s", err, body)
			}
		}
		return response.Code, body, answer
	}
	manifest := func(spec string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: new}, spec: {" + spec + "}}"
	}
	asks := func(amount string) string {
		return "containers: [{name: c, image: i, resources: {limits: {cpu: " + strings.Replace(amount, ",", "}}}], ", 1)
	}
	for name, test := range map[string]struct {
		method, query, manifest string
		code                    int
		// summary is part of the answer's summary, or of the error's text if code is not 200.
		result  records.Result
		summary string
		check   func(answer records.WhatIf) bool
	}{
		// The summary has the reasons of all plugins: the tainted node is also too small.
		"a pod that waits": {query: "?pod=default/waits&nodes=all", code: 200, result: records.Unschedulable,
			summary: "None of 3 nodes fits; 3: Insufficient cpu; 1: node(s) had taint {only: }, that the pod didn't tolerate.",
			check: func(answer records.WhatIf) bool {
				return len(answer.Verdicts) == 3 && answer.Preemption != nil && answer.Preemption.WhyNot != "" && answer.Seconds > 0 &&
					answer.Verdicts[2].Node == "tainted" && len(answer.Lacks) == 2 && strings.HasPrefix(answer.Lacks[1], "It requests 2 of cpu; the most that a node that no other plugin rejects has free is 1, on ")
			}},
		"a manifest that fits": {method: "POST", query: "?nodes=all", manifest: manifest(asks("1}}}]")), code: 200, result: records.Fits,
			summary: "It would go to one of 2 nodes with the same score, such as large. 2 of 3 nodes would take it.",
			check: func(answer records.WhatIf) bool {
				return len(answer.Scores) == 2 && len(answer.Verdicts) == 3 && answer.Verdicts[0].Fits && answer.Verdicts[0].Total == answer.Scores[0].Total &&
					!answer.Verdicts[2].Fits && answer.Verdicts[2].Node == "tainted"
			}},
		"a manifest that evicts": {method: "POST", manifest: manifest(asks("2, priority: 10")), code: 200, result: records.Unschedulable,
			summary: "Preemption would evict 1 pod from node large.",
			check: func(answer records.WhatIf) bool {
				return answer.Preemption.Victims[0] == "default/runs" && answer.Verdicts == nil
			}},
		"a pod that runs":         {query: "?pod=default/runs", code: 409, summary: "bound to node large"},
		"a pod that is not there": {query: "?pod=default/none", code: 404, summary: "there is no pod default/none"},
		"no pod":                  {code: 400, summary: "NAMESPACE/NAME"},
		"another scheduler":       {method: "POST", manifest: manifest("schedulerName: other, " + asks("1}}}]")), code: 400, summary: "set schedulerName to one of default-scheduler"},
		"no manifest":             {method: "POST", manifest: "\x00", code: 400, summary: "cannot be decoded"},
		"another kind":            {method: "POST", manifest: "{apiVersion: v1, kind: Node}", code: 400, summary: "of kind"},
		"not valid": {method: "POST", manifest: manifest("topologySpreadConstraints: [{maxSkew: -1, topologyKey: x, whenUnsatisfiable: Never}], " + asks("1}}}]")),
			code: 400, summary: "spec.topologySpreadConstraints[0].maxSkew"},
		// As an attempt, which does not run the other plugins then.
		"a claim that is missing": {method: "POST", query: "?nodes=all", code: 200, result: records.Unschedulable,
			manifest: manifest("volumes: [{name: v, persistentVolumeClaim: {claimName: none}}], " + asks("1}}}]")),
			summary:  `It is rejected before any node is evaluated: persistentvolumeclaim "none" not found.`,
			check:    func(answer records.WhatIf) bool { return answer.Evaluated == 0 && len(answer.Verdicts) == 3 }},
		"a node that is named": {method: "POST", manifest: manifest("nodeName: large, " + asks("1}}}]")), code: 400, summary: "spec.nodeName"},
		"too many terms": {method: "POST", code: 400, summary: "65 terms of pod affinity and topology spread constraints",
			manifest: manifest("affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [" +
				strings.Repeat("{topologyKey: zone, labelSelector: {}},", 65) + "]}}, " + asks("1}}}]"))},
		"many small values":            {method: "POST", manifest: manifest("tolerations: [" + strings.Repeat("{},", 60000) + "], " + asks("1}}}]")), code: 413, summary: "objects and lists"},
		"a priority that is not known": {method: "POST", manifest: manifest("priorityClassName: high, " + asks("1}}}]")), code: 400, summary: "set spec.priority"},
		"a pod that has ended":         {query: "?pod=default/ended", code: 409, summary: "has ended"},
		"too large":                    {method: "POST", manifest: strings.Repeat("a", 10<<20), code: 413, summary: "at most 1024 KiB"},
		"nested":                       {method: "POST", manifest: strings.Repeat("[", 100000), code: 413, summary: "100000 objects and lists"},
		"a deletion":                   {method: "DELETE", code: 405, summary: "DELETE is not allowed"},
	} {
		if test.method == "" {
			test.method = "GET"
		}
		code, body, answer := ask(test.method, test.query, test.manifest)
		text := answer.Summary
		if test.code != 200 {
			text = body
		}
		if code != test.code || answer.Result != test.result || !strings.Contains(text, test.summary) || test.check != nil && code == 200 && !test.check(answer) {
			t.Errorf("%s: %d, %.600s", name, code, body)
		}
	}
	if record, _ := sched.Records.Get("default", "waits"); len(record.Attempts) != 1 {
		t.Errorf("a dry run is counted as an attempt: %+v", record)
	}
	if pods := sched.SchedulingQueue.PendingPods(); len(pods) != 1 {
		t.Errorf("%d pods are pending, want 1", len(pods))
	}
}
