// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"kube-scheduler-fork/test/inprocess/decision"
)

// calls returns the plugin's lines so far.
func calls(t *testing.T, log *plugintest.Log) []map[string]string {
	t.Helper()
	return log.Lines(t, "Extension point called")
}

// counts counts lines by extension point.
func counts(calls []map[string]string) map[string]int {
	n := make(map[string]int)
	for _, one := range calls {
		n[one["extensionPoint"]]++
	}
	return n
}

// of returns the calls for a pod.
func of(pod string, calls []map[string]string) []map[string]string {
	return slices.DeleteFunc(slices.Clone(calls), func(one map[string]string) bool { return one["pod"] != pod })
}

// everywhere enables the plugin at each extension point, before all others: multiPoint enables it, and listing it at a
// point puts it first there. %s is for further args.
const everywhere = `
apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: default-scheduler
    plugins:
      multiPoint:
        enabled: [{name: ExtensionPointLogger}]
      queueSort:
        disabled: [{name: PrioritySort}]
      preFilter:
        enabled: [{name: ExtensionPointLogger}]
      filter:
        enabled: [{name: ExtensionPointLogger}]
      postFilter:
        enabled: [{name: ExtensionPointLogger}]
      bind:
        enabled: [{name: ExtensionPointLogger}]
    pluginConfig:
      - name: ExtensionPointLogger
        args:
          queueSort: true
%s`

func loggerConfiguration(args ...string) string {
	var indented strings.Builder
	for _, arg := range args {
		fmt.Fprintf(&indented, "          %s\n", arg)
	}
	return fmt.Sprintf(everywhere, indented.String())
}

// smallCluster is a scenario whose calls can be counted by hand: a node that is full with a pod of low priority, and
// two free ones. It schedules, in this order (by priority), a pod that has to preempt; one that fits on both free
// nodes; one that fits on one node only; one whose binding fails; one that fits nowhere. Then it retries the first. It
// returns the decisions, and the events of failures and preemptions.
func smallCluster(t *testing.T, config string) (decisions []decision.Decision, failures []decision.Event) {
	cpu := func(amount string) map[v1.ResourceName]string {
		return map[v1.ResourceName]string{v1.ResourceCPU: amount}
	}
	node := func(name string) *v1.Node {
		return st.MakeNode().Name("secret-"+name).Label("name", name).Capacity(map[v1.ResourceName]string{v1.ResourceCPU: "2", v1.ResourcePods: "9"}).Obj()
	}
	pod := func(name string, priority int32) *st.PodWrapper {
		return st.MakePod().Namespace("secret-namespace").Name("secret-" + name).UID("uid-of-" + name).Priority(priority)
	}
	s := decision.New(t, decision.Options{Config: config, Plugins: registered(), Nodes: []*v1.Node{node("full"), node("left"), node("right")}, Seed: 1})
	s.Client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		binding, ok := action.(clienttesting.CreateAction).GetObject().(*v1.Binding)
		return ok && binding.Name == "secret-unbindable", nil, errors.New("the test does not want it bound")
	})
	s.Create(pod("victim", 0).Req(cpu("2")).Node("secret-full").Obj())
	decisions = s.Schedule(
		pod("preemptor", 5).Req(cpu("2")).NodeSelector(map[string]string{"name": "full"}).Obj(),
		pod("choosing", 4).Req(cpu("100m")).NodeAffinityNotIn("name", []string{"full"}).Obj(),
		pod("pinned", 3).Req(cpu("100m")).NodeSelector(map[string]string{"name": "left"}).Obj(),
		pod("unbindable", 2).Req(cpu("100m")).NodeSelector(map[string]string{"name": "right"}).Obj(),
		pod("huge", 0).Req(cpu("64")).Obj(),
	)
	s.Settle()
	decisions = append(decisions, s.Retry("secret-namespace/secret-preemptor")...)
	s.Settle()
	if bound := s.Bound(); len(bound) != 3 || bound["secret-namespace/secret-preemptor"] != "secret-full" {
		t.Fatalf("the scenario went differently: %v", bound)
	}
	for _, event := range s.Events() {
		if event.Type == v1.EventTypeWarning || event.Reason == "Preempted" {
			failures = append(failures, event)
		}
	}
	sort.Slice(failures, func(i, j int) bool {
		return failures[i].Object+failures[i].Reason < failures[j].Object+failures[j].Reason
	})
	return decisions, failures
}

// lastCalls waits for the calls after the end of the scenario: PostBind of three pods.
func lastCalls(t *testing.T, log *plugintest.Log, postBinds int) []map[string]string {
	t.Helper()
	plugintest.WaitFor(t, fmt.Sprintf("%d PostBind", postBinds), func() bool { return counts(calls(t, log))["PostBind"] >= postBinds })
	return calls(t, log)
}

// TestEveryExtensionPointIsLoggedOncePerCall also checks that the plugin changes no decision.
func TestEveryExtensionPointIsLoggedOncePerCall(t *testing.T) {
	plainDecisions, plainFailures := smallCluster(t, "")
	log := plugintest.CaptureLog(t)
	decisions, failures := smallCluster(t, loggerConfiguration())
	if !reflect.DeepEqual(decisions, plainDecisions) || !reflect.DeepEqual(failures, plainFailures) {
		t.Errorf("with the plugin: %v and %v; without: %v and %v", decisions, failures, plainDecisions, plainFailures)
	}
	calls := lastCalls(t, log, 3)

	bound := map[string]int{"PreFilter": 1, "Filter": 3, "Reserve": 1, "Permit": 1, "PreBind": 1, "Bind": 1, "PostBind": 1}
	tests := []struct {
		pod  string
		why  string
		want map[string]int
	}{
		{
			pod:  "choosing",
			why:  "three nodes filtered, two of them scored; the one to which the preemptor is nominated is filtered with it added",
			want: plus(bound, map[string]int{"AddPod": 1, "PreScore": 1, "Score": 2, "NormalizeScore": 1}),
		},
		{
			pod:  "pinned",
			why:  "a single node that fits is not scored",
			want: plus(bound, map[string]int{"AddPod": 1}),
		},
		{
			pod:  "unbindable",
			why:  "Unreserve instead of PostBind",
			want: plus(bound, map[string]int{"AddPod": 1, "PostBind": -1, "Unreserve": 1}),
		},
		{
			pod: "huge",
			why: "PostFilter, and no pod to preempt. The preemptor is nominated to a node, which is filtered with it added: by " +
				"the first pass, which fails, so that there is no second one",
			want: map[string]int{"PreFilter": 1, "Filter": 3, "AddPod": 1, "PostFilter": 1},
		},
		{
			pod: "preemptor",
			why: "first cycle: 3 nodes filtered; then on the one node that preemption might help the victim is removed (Filter " +
				"passes), put back (Filter fails) and removed. Second cycle: bound; only one node fits",
			want: plus(bound, map[string]int{"PreFilter": 1, "Filter": 3 + 2, "PostFilter": 1, "RemovePod": 2, "AddPod": 1}),
		},
	}
	for _, tt := range tests {
		t.Run(tt.pod, func(t *testing.T) {
			got := of("secret-namespace/secret-"+tt.pod, calls)
			n := counts(got)
			delete(n, "QueueSort")
			if !reflect.DeepEqual(n, tt.want) {
				t.Errorf("%s: logged %v, want %v", tt.why, n, tt.want)
			}
			for _, one := range got {
				checkFields(t, one)
			}
		})
	}
	// The number of comparisons in a heap of five is not checked.
	if counts(calls)["QueueSort"] < 4 {
		t.Errorf("%d comparisons of the five pods", counts(calls)["QueueSort"])
	}
	// Pods come in the order of priority; the preemptor, the first, is retried at the end.
	cycles := map[string]string{}
	for i, name := range []string{"preemptor", "choosing", "pinned", "unbindable", "huge", "preemptor"} {
		cycles[fmt.Sprint(i+1)] = "secret-namespace/secret-" + name
	}
	for _, one := range calls {
		if one["extensionPoint"] != "QueueSort" && cycles[one["cycle"]] != one["pod"] {
			t.Errorf("a line about %s has the cycle %s, which is that of %s", one["pod"], one["cycle"], cycles[one["cycle"]])
		}
	}
}

func plus(a, b map[string]int) map[string]int {
	sum := maps.Clone(a)
	for key := range b {
		if sum[key] += b[key]; sum[key] == 0 {
			delete(sum, key)
		}
	}
	return sum
}

// checkFields checks that a line has exactly the fields of its extension point.
func checkFields(t *testing.T, one map[string]string) {
	t.Helper()
	keys := map[string][]string{
		"QueueSort":      {"otherPod"},
		"PreFilter":      {"cycle", "duration"},
		"AddPod":         {"cycle", "duration", "node", "otherPod"},
		"RemovePod":      {"cycle", "duration", "node", "otherPod"},
		"Filter":         {"cycle", "duration", "node"},
		"PostFilter":     {"cycle", "duration", "nodes", "status"},
		"PreScore":       {"cycle", "duration", "nodes"},
		"Score":          {"cycle", "duration", "node"},
		"NormalizeScore": {"cycle", "duration", "nodes"},
		"Reserve":        {"cycle", "duration", "node"},
		"Unreserve":      {"cycle", "duration", "node"},
		"Permit":         {"cycle", "duration", "node"},
		"PreBind":        {"cycle", "duration", "node"},
		"Bind":           {"cycle", "duration", "node", "status"},
		"PostBind":       {"cycle", "duration", "node"},
	}[one["extensionPoint"]]
	if len(one) != len(keys)+3 || one["profile"] != "default-scheduler" {
		t.Errorf("want extensionPoint, profile, pod and %v, got %v", keys, one)
	}
	for _, key := range keys {
		if one[key] == "" {
			t.Errorf("no %s in %v", key, one)
		}
	}
	if want := map[string]string{"PostFilter": "Unschedulable", "Bind": "Skip"}[one["extensionPoint"]]; one["status"] != want {
		t.Errorf("status %q in %v, want %q", one["status"], one, want)
	}
}

func TestRedactLeavesNoName(t *testing.T) {
	log := plugintest.CaptureLog(t)
	smallCluster(t, loggerConfiguration())
	plain := lastCalls(t, log, 3)
	smallCluster(t, loggerConfiguration("redact: true"))
	all := lastCalls(t, log, 6)
	redacted := all[len(plain):]
	if !reflect.DeepEqual(without(counts(redacted), "QueueSort"), without(counts(plain), "QueueSort")) {
		t.Fatalf("redacted %v, plain %v", counts(redacted), counts(plain))
	}
	hash, podHash := regexp.MustCompile(`^[0-9a-f]{12}$`), regexp.MustCompile(`^[0-9a-f]{12}/[0-9a-f]{12}$`)
	values := map[string]map[string]bool{"pod": {}, "node": {}}
	for _, one := range redacted {
		for key, value := range one {
			if strings.Contains(value, "secret") {
				t.Fatalf("%s in %v", key, one)
			}
			switch key {
			case "pod", "otherPod":
				if !podHash.MatchString(value) {
					t.Errorf("%s=%q", key, value)
				}
			case "node":
				if !hash.MatchString(value) {
					t.Errorf("%s=%q", key, value)
				}
			}
			if values[key] != nil {
				values[key][value] = true
			}
		}
	}
	if len(values["pod"]) != 5 || len(values["node"]) != 3 {
		t.Errorf("5 pods and 3 nodes have the hashes %v", values)
	}
}

func without(n map[string]int, key string) map[string]int {
	delete(n, key)
	return n
}
