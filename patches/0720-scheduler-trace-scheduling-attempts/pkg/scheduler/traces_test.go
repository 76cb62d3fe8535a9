// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientsetfake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/records"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/traces"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// keptSpans collects spans that have ended.
type keptSpans struct {
	mutex sync.Mutex
	spans []*sdktrace.SpanSnapshot
}

func (k *keptSpans) ExportSpans(_ context.Context, spans []*sdktrace.SpanSnapshot) error {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.spans = append(k.spans, spans...)
	return nil
}

func (k *keptSpans) Shutdown(context.Context) error { return nil }

// attempts returns the first attempt of each pod, if it has ended.
func (k *keptSpans) attempts() map[string]attemptSpans {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	sort.SliceStable(k.spans, func(i, j int) bool { return k.spans[i].StartTime.Before(k.spans[j].StartTime) })
	attempts := map[string]attemptSpans{}
	for _, root := range k.spans {
		attributes := attributesOf(root)
		if root.Parent.IsValid() || attributes["scheduler.attempt"] != "1" {
			continue
		}
		attempt := attemptSpans{attributes: attributes}
		for _, span := range k.spans {
			if span.Parent.SpanID() == root.SpanContext.SpanID() {
				attempt.children = append(attempt.children, span.Name)
				for key, value := range attributesOf(span) {
					attributes[span.Name+" "+key] = value
				}
				if span.StartTime.Before(root.StartTime) || span.EndTime.After(root.EndTime) {
					attempt.children = append(attempt.children, "outside")
				}
			}
		}
		attempts[attributes["k8s.pod.name"]] = attempt
	}
	return attempts
}

// attemptSpans has the attributes of an attempt and, with the child's name as a prefix, those of its children. children
// has the names of the children in the order in which they began.
type attemptSpans struct {
	attributes map[string]string
	children   []string
}

func attributesOf(span *sdktrace.SpanSnapshot) map[string]string {
	attributes := map[string]string{}
	for _, a := range span.Attributes {
		attributes[string(a.Key)] = a.Value.Emit()
	}
	return attributes
}

// TestTraces schedules a pod that fits, one that fits nowhere, and one that evicts another, and checks their spans.
func TestTraces(t *testing.T) {
	cpu := func(amount string) map[v1.ResourceName]string {
		return map[v1.ResourceName]string{v1.ResourceCPU: amount, v1.ResourcePods: "10"}
	}
	req := func(amount string) map[v1.ResourceName]string {
		return map[v1.ResourceName]string{v1.ResourceCPU: amount}
	}
	waiting := func(name, amount string) *st.PodWrapper {
		return st.MakePod().Namespace("default").Name(name).UID(name).SchedulerName("default-scheduler").Req(req(amount))
	}
	client := clientsetfake.NewSimpleClientset(
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
		st.MakeNode().Name("large").Capacity(cpu("8")).Obj(),
		st.MakeNode().Name("small-1").Capacity(cpu("4")).Obj(),
		st.MakeNode().Name("small-2").Capacity(cpu("4")).Obj(),
		st.MakePod().Namespace("default").Name("runs").UID("runs").Node("large").Req(req("5")).Obj(),
		waiting("fits", "2").Obj(), waiting("huge", "100").Obj(), waiting("evicts", "8").Priority(10).Obj(),
	)
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
		return action.GetSubresource() == "binding", nil, nil
	})
	extender := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		var answer interface{} = extenderv1.HostPriorityList{}
		switch request.URL.Path {
		case "/filter":
			var args extenderv1.ExtenderArgs
			json.NewDecoder(request.Body).Decode(&args)
			answer = extenderv1.ExtenderFilterResult{NodeNames: args.NodeNames}
		case "/preempt":
			var args extenderv1.ExtenderPreemptionArgs
			json.NewDecoder(request.Body).Decode(&args)
			answer = extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: args.NodeNameToMetaVictims}
		}
		json.NewEncoder(response).Encode(answer)
	}))
	defer extender.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	made := func(options ...Option) *Scheduler {
		factory := NewInformerFactory(client, 0)
		broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
		sched, err := New(client, factory, nil, profile.NewRecorderFactory(broadcaster), ctx.Done(), append(options, WithExtenders(schedulerapi.Extender{
			URLPrefix: extender.URL, FilterVerb: "filter", PrioritizeVerb: "prioritize", PreemptVerb: "preempt", Weight: 1, NodeCacheCapable: true,
			HTTPTimeout: metav1.Duration{Duration: wait.ForeverTestTimeout},
		}))...)
		if err != nil {
			t.Fatal(err)
		}
		factory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())
		return sched
	}
	off := made(WithRecords(records.Options{}))
	if _, bare := off.Algorithm.(*genericScheduler); !bare || off.Tracer != nil {
		t.Error("the scheduler is wrapped although nothing is traced")
	}
	spans := &keptSpans{}
	flushed := make(chan struct{})
	sched := made(WithTracer(traces.New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)), func(context.Context) error {
		close(flushed)
		return nil
	})))
	if _, full := sched.Profiles["default-scheduler"].(fullFramework); !full {
		t.Error("a profile lacks the methods that patches add")
	}
	go sched.Run(ctx)
	for name, want := range map[string]struct {
		children   string
		attributes map[string]string
	}{
		"fits": {
			"PreFilter, Filter, Extender filter, PreScore, Score, Extender prioritize, Reserve, Permit, PreBind, Bind, PostBind",
			map[string]string{"scheduler.result": "Bound", "scheduler.profile": "default-scheduler", "k8s.namespace.name": "default",
				"scheduler.nodes.evaluated": "3", "scheduler.nodes.feasible": "2", "Bind scheduler.status": "Success", "Extender filter scheduler.extender": extender.URL},
		},
		"huge": {
			"PreFilter, Filter, PostFilter", map[string]string{"scheduler.result": "Unschedulable", "PostFilter scheduler.status": "Unschedulable"},
		},
		"evicts": {
			"PreFilter, Filter, PostFilter, Extender preempt",
			map[string]string{"scheduler.result": "Unschedulable", "PostFilter scheduler.status": "Success"},
		},
	} {
		var got attemptSpans
		err := wait.PollImmediate(10*time.Millisecond, wait.ForeverTestTimeout, func() (ended bool, err error) {
			got, ended = spans.attempts()[name]
			return ended, nil
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if children := strings.Join(got.children, ", "); children != want.children {
			t.Errorf("%s: %s, want %s", name, children, want.children)
		}
		for key, value := range want.attributes {
			if got.attributes[key] != value {
				t.Errorf("%s: %s is %q, want %q", name, key, got.attributes[key], value)
			}
		}
	}
	before := len(spans.attempts())
	handler := sched.Records.Serve(http.NotFoundHandler(), func() bool { return true })
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, httptest.NewRequest("GET", records.WhatIfPath+"?pod=default/huge", nil))
	if after := len(spans.attempts()); response.Code != http.StatusOK || after != before {
		t.Errorf("a dry run: status %d, and %d attempts instead of %d", response.Code, after, before)
	}
	cancel()
	select {
	case <-flushed:
	case <-time.After(wait.ForeverTestTimeout):
		t.Error("the last spans are not sent when the scheduler stops")
	}
}
