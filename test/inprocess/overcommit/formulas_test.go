// SPDX-License-Identifier: Apache-2.0

package overcommit

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/overcommit"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/overcommitting"
)

// The formulas to compare with. What overcommitting pods may ask for on a node is a share of its CPU, minus for each
// ordinary pod:
const (
	// fixedFactor: its request, so that all requests together are at most a multiple of the CPU.
	fixedFactor = "fixed factor"
	// koordinator: its use, as koordinator's default policy has it.
	koordinator = "koordinator"
	// koordinatorMost: the larger of its use and its request, as koordinator's policy maxUsageRequest has it.
	koordinatorMost = "koordinator, max(use, request)"
)

// formula is a plugin that places overcommitting pods by a formula.
type formula struct {
	kind   string
	share  float64
	handle framework.Handle
	asked  time.Time
	// uses are the uses of pods in cores.
	uses map[string]float64
}

const formulaName = "Formula"

func (f *formula) new(_ runtime.Object, handle framework.Handle) (framework.Plugin, error) {
	f.handle = handle
	return f, nil
}

func (*formula) Name() string { return formulaName }

// PreFilter measures the pods once in a minute, as koordinator does.
func (f *formula) PreFilter(ctx context.Context, _ *framework.CycleState, _ *corev1.Pod) *framework.Status {
	if time.Since(f.asked) < time.Minute {
		return nil
	}
	f.asked, f.uses = time.Now(), map[string]float64{}
	if f.kind == fixedFactor {
		return nil
	}
	got, err := f.handle.KubeConfig().Transport.(source.Source).Ask(ctx, []source.Query{
		{Name: source.OvercommitPods, Pods: true, Value: "quantile_over_time(0.5, (use)[5m:5m])"}})
	if err != nil {
		return framework.AsStatus(err)
	}
	for _, row := range got.Rows {
		if row.Kind == source.Value {
			f.uses[row.Label] = row.Value
		}
	}
	return nil
}

func (*formula) PreFilterExtensions() framework.PreFilterExtensions { return nil }

// left returns what a node has left for overcommitting pods, in cores. A pod that is not measured uses its request.
func (f *formula) left(node *framework.NodeInfo) float64 {
	rest := f.share*float64(node.Allocatable.MilliCPU) - float64(node.Requested.ScalarResources[config.OvercommitResource])
	for _, pod := range node.Pods {
		request := float64(pod.Pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue())
		use, measured := f.uses[pod.Pod.Namespace+"/"+pod.Pod.Name]
		if use *= 1000; !measured || request == 0 || f.kind == koordinatorMost && use < request {
			use = request
		}
		rest -= use
	}
	return rest / 1000
}

func (f *formula) Filter(_ context.Context, _ *framework.CycleState, pod *corev1.Pod, node *framework.NodeInfo) *framework.Status {
	if asks := float64(overcommitting.Asked(pod)) / 1000; asks > 0 && asks > f.left(node) {
		return framework.NewStatus(framework.Unschedulable, "node(s) had too little by the formula")
	}
	return nil
}

// Score prefers the node with the most left, as Overcommit does.
func (f *formula) Score(_ context.Context, _ *framework.CycleState, pod *corev1.Pod, name string) (int64, *framework.Status) {
	node, err := f.handle.SnapshotSharedLister().NodeInfos().Get(name)
	if err != nil {
		return 0, framework.AsStatus(err)
	}
	return int64(min(100, max(0, 100*(f.left(node)-float64(overcommitting.Asked(pod))/1000)/cores))), nil
}

func (*formula) ScoreExtensions() framework.ScoreExtensions { return nil }

// header is a configuration with what the study needs. Pods that wait are tried again once in half a minute.
const header = `apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
podInitialBackoffSeconds: 30
podMaxBackoffSeconds: 30
profiles:
- plugins:
    multiPoint: {enabled: [{name: PrioritySort}, {name: DefaultBinder}, {name: %s}], disabled: [{name: "*"}]}
    preFilter: {enabled: [{name: NodeResourcesFit}, {name: NodeAffinity}]}
    filter: {enabled: [{name: NodeResourcesFit}, {name: NodeAffinity}]}
  pluginConfig:
  - {name: NodeResourcesFit, args: {ignoredResourceGroups: [overcommit.scheduler]}}
`

// formulas returns the runs of a formula with several shares.
func formulas(kind string, shares ...float64) (runs []run) {
	for _, share := range shares {
		runs = append(runs, run{Group: kind, Name: fmt.Sprint(kind, " ", share), Formula: kind, Share: share,
			Config: fmt.Sprintf(header, formulaName)})
	}
	return runs
}

// predicted returns the run of Overcommit with a predictor.
func predicted(predictor string, headroom int) run {
	return run{Group: predictor, Name: fmt.Sprintf("%s, headroom %d %%", predictor, headroom),
		Config: fmt.Sprintf(header, overcommit.Name) + fmt.Sprintf("  - {name: Overcommit, args: {%s, predictor: %s, headroomPercent: %d}}\n",
			`prometheus: {endpoints: ["http://prometheus.invalid"]}`, predictor, headroom)}
}
