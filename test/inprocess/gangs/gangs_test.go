// SPDX-License-Identifier: Apache-2.0

// Package gangs tests the decisions about gangs with the whole scheduler in virtual time. It needs the patched tree: see
// ../../patched-tree.sh.
package gangs

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	_ "k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/input"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/replay"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

const (
	// groupLabel is the label with the name of a pod's PodGroup.
	groupLabel = "pod-group.scheduling.sigs.k8s.io"
	// requiredKey is the annotation of a PodGroup with the label whose value all nodes of the gang share.
	requiredKey = "coscheduling.scheduler/required-topology-key"
	// low, normal and high are priorities of pods.
	low, normal, high = 0, 100, 200
)

// order is a task: cases of a test.
type order struct {
	Task         string
	First, Count int
}

// report is what a process found.
type report struct {
	Failures []string
	Counts   map[string]int
	// Reasons are those of the pods without a node, by name.
	Reasons map[string]string
}

func (r *report) fail(format string, arguments ...any) {
	r.Failures = append(r.Failures, fmt.Sprintf(format, arguments...))
}

var tasks = map[string]func(order, *report) error{
	"exhaustive": exhaustive, "interleaved": interleaved, "bad input": badInput, "too many": tooMany,
	"reservation": reserving, "quiet": quiet, "situation": situation,
}

func TestMain(m *testing.M) {
	if !replay.IsChild() {
		os.Exit(m.Run())
	}
	var o order
	start := func() (time.Time, error) { return time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC), nil }
	replay.Serve(&o, start, func(replay.Progress) (any, error) {
		found := &report{Counts: map[string]int{}, Reasons: map[string]string{}}
		return found, tasks[o.Task](o, found)
	})
}

// run runs a task in a process.
func run(t *testing.T, o order) (found report) {
	t.Helper()
	if err := (replay.Process{Environment: []string{"GOGC=400"}}).Do(t.Context(), o, &found); err != nil {
		t.Fatalf("%+v: %v", o, err)
	}
	return found
}

// runCases runs cases in two processes, and returns the sums of their counts. At most ten failures are shown.
func runCases(t *testing.T, name string, count int) map[string]int {
	t.Helper()
	const processes = 2
	reports := make(chan report, processes)
	t.Run("cases", func(t *testing.T) {
		for i := range processes {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				reports <- run(t, order{name, 1 + i*count/processes, count / processes})
			})
		}
	})
	close(reports)
	sums, shown := map[string]int{}, 0
	for found := range reports {
		for what, count := range found.Counts {
			sums[what] += count
		}
		for _, failure := range found.Failures {
			if shown++; shown <= 10 {
				t.Error(failure)
			}
		}
	}
	if shown > 10 {
		t.Errorf("%d failures in all", shown)
	}
	return sums
}

// plugins are PreFilter plugins of tests.
var plugins = frameworkruntime.Registry{}

// world is a simulated cluster with gang.yaml, and a second profile like the first one.
type world struct {
	*replay.Simulation
	passed time.Duration
	names  []string // of the nodes
}

func newWorld(groups []*unstructured.Unstructured) (*world, error) {
	return newWorldWith("", groups)
}

// newWorldWith returns a world with an argument of Coscheduling.
func newWorldWith(argument string, groups []*unstructured.Unstructured) (*world, error) {
	text, err := os.ReadFile("../../../manifests/config/gang.yaml")
	if err != nil {
		return nil, err
	}
	const known = "permitWaitingTimeSeconds: 60"
	text = bytes.Replace(text, []byte(known), []byte(cmp.Or(argument, known)), 1)
	object, version, err := scheme.Codecs.UniversalDecoder().Decode(text, nil, nil)
	if err != nil {
		return nil, err
	}
	config := object.(*schedulerconfig.KubeSchedulerConfiguration)
	config.TypeMeta.APIVersion = version.GroupVersion().String()
	for name := range plugins {
		at := &config.Profiles[0].Plugins.PreFilter
		at.Enabled = append(at.Enabled, schedulerconfig.Plugin{Name: name})
	}
	second := config.Profiles[0].DeepCopy()
	second.SchedulerName = "second"
	config.Profiles = append(config.Profiles, *second)
	s, err := replay.New(context.Background(), replay.Options{
		Config: config, Cluster: &input.Cluster{Custom: groups}, Seed: 1, Registry: plugins,
	})
	return &world{Simulation: s}, err
}

// newGroup returns a PodGroup of the namespace default.
func newGroup(name string, minMember int, annotations map[string]string) *unstructured.Unstructured {
	group := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup", "spec": map[string]any{"minMember": int64(minMember)},
	}}
	group.SetNamespace(metav1.NamespaceDefault)
	group.SetName(name)
	group.SetAnnotations(annotations)
	group.SetCreationTimestamp(metav1.Now())
	return group
}

// newPod returns a workload of one pod that ends a second after its eviction.
func newPod(name, group string, cores int, priority int32) *input.Workload {
	pod := st.MakePod().Namespace(metav1.NamespaceDefault).Name(name).SchedulerName("default-scheduler").Priority(priority).
		Req(map[v1.ResourceName]string{v1.ResourceCPU: fmt.Sprint(cores)}).Obj()
	if pod.Spec.TerminationGracePeriodSeconds = new(int64); group != "" {
		pod.Labels = map[string]string{groupLabel: group}
	}
	*pod.Spec.TerminationGracePeriodSeconds = 1
	return &input.Workload{Pod: pod, Count: 1}
}

func newNode(name string, cores int) *st.NodeWrapper {
	return st.MakeNode().Name(name).Label(v1.LabelHostname, name).Capacity(map[v1.ResourceName]string{
		v1.ResourceCPU: fmt.Sprint(cores), v1.ResourceMemory: "64Gi", v1.ResourcePods: "110",
	})
}

// add adds a node.
func (w *world) add(node *v1.Node) {
	w.names = append(w.names, node.Name)
	w.AddNode(node)
}

// create creates pods at the same time.
func (w *world) create(pods ...*input.Workload) {
	w.At(w.passed, func() {
		for _, pod := range pods {
			w.Create(pod)
		}
	})
}

// advance simulates for a time.
func (w *world) advance(by time.Duration) error {
	w.passed += by
	return w.Advance(w.passed, 0, func(time.Duration, int64) {})
}

// placed returns the pods on nodes, by name.
func (w *world) placed() map[string]*v1.Pod {
	pods := map[string]*v1.Pod{}
	for _, node := range w.SchedulerCache.Dump().Nodes {
		for _, info := range node.Pods {
			pods[info.Pod.Name] = info.Pod
		}
	}
	return pods
}

// clear removes all nodes and pods.
func (w *world) clear() error {
	at := w.passed
	for _, pod := range w.SchedulingQueue.PendingPods() {
		w.At(at, func() { w.Apply(&input.Event{Delete: pod.Namespace + "/" + pod.Name}) })
	}
	for _, name := range w.names {
		w.At(at, func() { w.Apply(&input.Event{Node: name, Change: input.RemoveNode}) })
	}
	w.names = nil
	if err := w.advance(2 * time.Second); err != nil {
		return err
	}
	if left := len(w.SchedulingQueue.PendingPods()) + len(w.placed()); left > 0 {
		return fmt.Errorf("%d pods are left of a case", left)
	}
	return nil
}
