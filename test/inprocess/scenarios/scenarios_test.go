// SPDX-License-Identifier: Apache-2.0

// Package scenarios compares configurations by their results for generated workloads of hours and days. The simulator
// schedules the pods in virtual time, so each run gives the same figures.
package scenarios

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	// The plugins' args, in every version.
	_ "k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/datalocality"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodecost"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodefilter"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/input"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/replay"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/result"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/workloadtopology"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

const (
	// priceLabel is the label with a node's price per hour, for the simulator's figures.
	priceLabel = "example.com/price"
	// hot is the load above which a node is hot.
	hot = 0.8
)

// scenario is the input that is independent of the configuration.
type scenario struct {
	length time.Duration
	nodes  []*corev1.Node
	pods   []input.Event
	reads  map[string][]held // by pod
}

// add creates a pod at a time. It ends after a duration, unless that is 0.
func (s *scenario) add(at, runs time.Duration, pod *corev1.Pod) *input.Workload {
	pod.Namespace = corev1.NamespaceDefault
	w := &input.Workload{Pod: pod, Count: 1, Duration: runs}
	s.pods = append(s.pods, input.Event{At: at, Pods: w})
	return w
}

// scenarios are made from a seed in the process of each run.
var scenarios = map[string]func(seed int64) scenario{
	"cost": dayOfPods, "data": dataJobs, "data by hand": dataJobsByHand, "share": podEachMinute, "share by hand": podEachMinuteByHand,
	"mixed": mixed, "streaming": streaming, "graphs": graphs, "graphs by hand": graphsByHand,
}

// way is a scenario with a configuration.
type way struct{ name, scenario, config string }

// order is a run of a scenario with a configuration.
type order struct {
	Scenario, Config string
	Seed             int64
}

func TestMain(m *testing.M) {
	if !replay.IsChild() {
		os.Exit(m.Run())
	}
	var o order
	start := func() (time.Time, error) { return time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC), nil }
	replay.Serve(&o, start, func(replay.Progress) (any, error) { return o.simulate() })
}

func (o order) simulate() (result.Run, error) {
	object, version, err := scheme.Codecs.UniversalDecoder().Decode([]byte(o.Config), nil, nil)
	if err != nil {
		return result.Run{}, err
	}
	config := object.(*schedulerconfig.KubeSchedulerConfiguration)
	config.TypeMeta.APIVersion = version.GroupVersion().String()
	made := scenarios[o.Scenario](o.Seed)
	s, err := replay.New(context.Background(), replay.Options{
		Config: config, Cluster: &input.Cluster{Nodes: made.nodes}, Seed: o.Seed, Hot: hot, PriceLabel: priceLabel,
		Registry: frameworkruntime.Registry{
			datalocality.Name: datalocality.New, nodecost.Name: nodecost.New, nodefilter.Name: nodefilter.New,
			nodeload.Name: nodeload.Factory(collector.New()), workloadtopology.Name: workloadtopology.New,
		},
	})
	if err != nil {
		return result.Run{}, err
	}
	var workloads []*input.Workload
	for _, event := range made.pods {
		workloads = append(workloads, event.Pods)
		s.At(event.At, func() { s.Apply(&event) })
	}
	s.Expect(workloads, made.length)
	s.At(made.length, func() {}) // The run is that long.
	err = s.Advance(made.length, made.length, func(time.Duration, int64) {})
	return s.Outcome(), err
}

// run simulates a scenario with a configuration, in a process.
func run(t *testing.T, way way, seed int64) (outcome result.Run) {
	t.Helper()
	if err := (replay.Process{}).Do(t.Context(), order{way.scenario, way.config, seed}, &outcome); err != nil {
		t.Fatalf("scenario %s, seed %d: %v", way.scenario, seed, err)
	}
	return outcome
}

// figure returns a figure of the simulator.
func figure(t *testing.T, of result.Run, name string) float64 {
	t.Helper()
	i := slices.IndexFunc(of.Figures, func(f result.Figure) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("the simulator has no figure %s", name)
	}
	return of.Figures[i].Value
}

// compare logs a table in Markdown with a row for each way, and returns the ways' figures.
func compare[figures any](t *testing.T, title, columns string, ways []way, of func(way) (figures, []any)) []figures {
	t.Helper()
	text := fmt.Sprintf("%s\n| | %s |\n|---|%s\n", title, columns, strings.Repeat("---:|", 1+strings.Count(columns, "|")))
	var all []figures
	for _, way := range ways {
		got, cells := of(way)
		all, text = append(all, got), text+"| "+way.name
		for _, cell := range cells {
			text += fmt.Sprintf(" | %v", cell)
		}
		text += " |\n"
	}
	t.Log(text)
	return all
}

// stock is the default configuration.
const stock = "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n"

// manifest reads a published configuration of manifests/config, and replaces texts in it.
func manifest(t *testing.T, name string, replacements ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "manifests", "config", name))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(replacements); i += 2 {
		if !strings.Contains(string(text), replacements[i]) {
			t.Fatalf("%s does not contain %q", name, replacements[i])
		}
	}
	return strings.NewReplacer(replacements...).Replace(string(text))
}

// life is a pod on its node.
type life struct {
	*input.Workload
	node     string
	from, to time.Duration
}

func (l life) at(at time.Duration) bool { return l.from <= at && at < l.to }

// lives returns the pods of a run in the order of their bindings. At least that share of all pods must have found a node.
func (s scenario) lives(t *testing.T, of result.Run, share float64) []life {
	t.Helper()
	workloads := map[string]*input.Workload{}
	for _, event := range s.pods {
		workloads[event.Pods.Pod.Namespace+"/"+event.Pods.Pod.Name] = event.Pods
	}
	var all []life
	for _, pod := range of.Pods {
		if pod.Node == "" {
			t.Logf("Pod %s has no node: %s", pod.Name, pod.Reason)
			continue
		}
		l := life{Workload: workloads[pod.Name], node: pod.Node, from: time.Duration(pod.Bound * float64(time.Second)), to: s.length}
		if l.Duration > 0 {
			l.to = min(s.length, l.from+l.Duration)
		}
		all = append(all, l)
	}
	if float64(len(all)) < share*float64(len(s.pods)) {
		t.Fatalf("only %d of %d pods ran, too few for a comparison", len(all), len(s.pods))
	}
	slices.SortStableFunc(all, func(a, b life) int { return int(a.from - b.from) })
	return all
}

func node(name string, cores, gibibytes int, labels map[string]string) *corev1.Node {
	made := st.MakeNode().Name(name).Label(corev1.LabelHostname, name).Capacity(map[corev1.ResourceName]string{
		corev1.ResourceCPU: fmt.Sprint(cores), corev1.ResourceMemory: fmt.Sprintf("%dGi", gibibytes), corev1.ResourcePods: "110",
	})
	for key, value := range labels {
		made.Label(key, value)
	}
	return made.Obj()
}

func requests(milliCPU, mebibytes int) map[corev1.ResourceName]string {
	return map[corev1.ResourceName]string{
		corev1.ResourceCPU: fmt.Sprintf("%dm", milliCPU), corev1.ResourceMemory: fmt.Sprintf("%dMi", mebibytes),
	}
}

// prefer makes a pod prefer nodes with a label.
func prefer(pod *corev1.Pod, weight int32, label corev1.NodeSelectorRequirement) {
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
	}
	terms := &pod.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	*terms = append(*terms, corev1.PreferredSchedulingTerm{
		Weight: weight, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{label}},
	})
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }
