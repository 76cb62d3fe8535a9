// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// Decider answers filter, prioritize and preempt with the plugins of a profile.
//
// The plugins are created once and share one snapshot, so requests are answered one at a time. A scheduler loses
// nothing by this, because it schedules one pod at a time and sends one request after the other; several schedulers
// wait for each other. (Plugins created for each request would each count attempts, and index pods, on their own.)
type Decider struct {
	framework framework.Framework
	cluster   *cluster
	scorers   []scorer
	// weights is the sum of the weights of the score plugins; 0 if there are none.
	weights int64
	// turn holds a token while a request is answered.
	turn chan struct{}
}

// scorer is a score plugin with its weight.
type scorer struct {
	framework.ScorePlugin
	weight int64
}

// connections are the clients that plugins may use.
type connections struct {
	client  kubernetes.Interface
	config  *restclient.Config
	factory informers.SharedInformerFactory
	events  events.EventRecorder
}

// newDecider creates the plugins of a profile. The factory is from newInformerFactory. It is started afterwards, when
// the plugins have added their informers.
func newDecider(profile *Profile, with connections) (*Decider, error) {
	d := &Decider{cluster: newCluster(with.factory), turn: make(chan struct{}, 1)}
	created, registry := map[string]framework.Plugin{}, frameworkruntime.Registry{}
	for name, factory := range profile.registry {
		registry[name] = func(args runtime.Object, handle framework.Handle) (plugin framework.Plugin, err error) {
			if plugin, err = factory(args, handle); err == nil {
				created[plugin.Name()] = plugin
			}
			return plugin, err
		}
	}
	var err error
	d.framework, err = frameworkruntime.NewFramework(registry, &profile.profile,
		frameworkruntime.WithClientSet(with.client),
		frameworkruntime.WithKubeConfig(with.config),
		frameworkruntime.WithInformerFactory(with.factory),
		frameworkruntime.WithEventRecorder(with.events),
		frameworkruntime.WithSnapshotSharedLister(d.cluster),
		frameworkruntime.WithParallelism(profile.parallelism),
	)
	if err != nil {
		return nil, fmt.Errorf("cannot create the plugins of the profile %s: %w; next: correct the configuration",
			profile.profile.SchedulerName, err)
	}
	served := d.framework.ListPlugins()
	if len(served.PreFilter.Enabled)+len(served.Filter.Enabled)+len(served.PreScore.Enabled)+len(served.Score.Enabled) == 0 {
		return nil, fmt.Errorf("the profile %s enables no plugin of this project at preFilter, filter, preScore or score; "+
			"next: enable one at multiPoint (v1beta3) or at these points", profile.profile.SchedulerName)
	}
	for _, plugin := range served.Score.Enabled {
		// The scheduler accepts a negative weight, but a weighted mean needs positive ones.
		if plugin.Weight < 0 {
			return nil, fmt.Errorf("the plugin %s has the weight %d, which an extender's scores of 0 to 10 cannot express; "+
				"next: give it a weight of 1 or more in the configuration", plugin.Name, plugin.Weight)
		}
		d.scorers = append(d.scorers, scorer{created[plugin.Name].(framework.ScorePlugin), int64(plugin.Weight)})
		d.weights += int64(plugin.Weight)
	}
	return d, nil
}

// errNotSynced is the error of a request that comes too early.
var errNotSynced = refused{
	errors.New("the caches of nodes and pods have not synced yet; next: try again in a moment"), http.StatusServiceUnavailable,
}

// Ready returns nil if requests can be answered.
func (d *Decider) Ready() error {
	if !d.cluster.nodesSynced() || !d.cluster.podsSynced() {
		return errNotSynced
	}
	return nil
}

// inTurn returns a function that waits for its turn, and then decodes and answers a request. The turn ends with the
// answer, even if the request has timed out before.
func inTurn[Question any](
	d *Decider, decode func([]byte) (Question, error), answer func(context.Context, Question) (any, error),
) answerFunc {
	return func(ctx context.Context, body []byte) (result any, _ error) {
		if err := d.Ready(); err != nil {
			return nil, err
		}
		select {
		case d.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		defer func() { <-d.turn }()
		// The deadline may have passed while waiting.
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		question, err := decode(body)
		if err != nil {
			return nil, err
		}
		err = recovering(func() (err error) {
			result, err = answer(ctx, question)
			return err
		})
		return result, err
	}
}

// verdictLevel is the log level of the verdict on each node.
const verdictLevel = 2

// filter returns the nodes that pass the plugins' filters, and the reasons of the others.
func (d *Decider) filter(ctx context.Context, q *question) (any, error) {
	nodes, unknown := d.nodesOf(q)
	verdicts, err := d.verdicts(ctx, q.pod, nodes, nil)
	if err != nil {
		return nil, err
	}
	for _, name := range unknown {
		verdicts[name] = framework.NewStatus(framework.Unschedulable, "node(s) not known to the extender (yet)")
	}
	if klog.V(verdictLevel).Enabled() {
		for _, name := range q.names {
			status := verdicts[name]
			klog.InfoS("Filtered node", "pod", klog.KObj(q.pod), "node", name, "fits", status.IsSuccess(), "reasons", status.Message())
		}
	}
	return q.answer(verdicts), nil
}

// nodesOf returns the nodes of a request, and the names of unknown ones.
func (d *Decider) nodesOf(q *question) (nodes []*corev1.Node, unknown []string) {
	if q.nodes != nil {
		return q.nodes, nil
	}
	for _, name := range q.names {
		if node, err := d.cluster.nodes.Get(name); err == nil { // not found is the only error
			nodes = append(nodes, node)
		} else {
			unknown = append(unknown, name)
		}
	}
	return nodes, unknown
}

// verdicts runs the filter plugins on nodes, without some of their pods. nil is a success.
func (d *Decider) verdicts(
	ctx context.Context, pod *corev1.Pod, nodes []*corev1.Node, victims map[string]*extenderv1.MetaVictims,
) (map[string]*framework.Status, error) {
	infos, err := d.cluster.look(nodes)
	if err != nil {
		return nil, err
	}
	verdicts := make(map[string]*framework.Status, len(nodes))
	state := framework.NewCycleState()
	if status := d.framework.RunPreFilterPlugins(ctx, state, pod); !status.IsSuccess() {
		for _, node := range nodes {
			verdicts[node.Name] = status
		}
		return verdicts, failure(status)
	}
	statuses, err := d.each(ctx, len(infos), func(i int) *framework.Status {
		return d.filterOne(ctx, state, pod, infos[i], victims[nodes[i].Name])
	})
	for i, status := range statuses {
		verdicts[nodes[i].Name] = status
	}
	return verdicts, err
}

// each calls plugins for some nodes in parallel, and returns their statuses: successes and rejections.
func (d *Decider) each(ctx context.Context, nodes int, call func(i int) *framework.Status) ([]*framework.Status, error) {
	statuses := make([]*framework.Status, nodes)
	d.framework.Parallelizer().Until(ctx, nodes, func(i int) {
		if err := recovering(func() error { statuses[i] = call(i); return nil }); err != nil {
			statuses[i] = framework.AsStatus(err)
		}
	})
	// At the deadline plugins have not been called for some nodes, which must not pass.
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, status := range statuses {
		if err := failure(status); err != nil {
			return nil, err
		}
	}
	return statuses, nil
}

// recovering calls plugins. A panic in their goroutine fails the request only: it is logged with its stack, and returned
// as an error. The workers of upstream's Parallelizer would end the process.
func recovering(call func() error) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			klog.Errorf("A plugin panicked: %v\n%s", reason, debug.Stack())
			err = fmt.Errorf("a plugin panicked: %v; next: see the stack in the extender's log", reason)
		}
	}()
	return call()
}

// filterOne runs the filter plugins on a node, without the victims if there are any.
func (d *Decider) filterOne(
	ctx context.Context, state *framework.CycleState, pod *corev1.Pod, info *framework.NodeInfo, victims *extenderv1.MetaVictims,
) *framework.Status {
	if victims != nil {
		state, info = state.Clone(), info.Clone()
		for _, uid := range victims.Pods {
			i := slices.IndexFunc(info.Pods, func(pod *framework.PodInfo) bool { return string(pod.Pod.UID) == uid.UID })
			if i < 0 {
				// It may have ended, or not have been watched yet. The node is left out; others may pass.
				return framework.NewStatus(framework.Unschedulable, "a victim is not known to be on the node")
			}
			victim := info.Pods[i]
			if err := info.RemovePod(victim.Pod); err != nil {
				return framework.AsStatus(err)
			}
			if status := d.framework.RunPreFilterExtensionRemovePod(ctx, state, pod, victim, info); !status.IsSuccess() {
				return framework.AsStatus(status.AsError())
			}
		}
	}
	return d.framework.RunFilterPlugins(ctx, state, pod, info).Merge()
}

// failure returns the error of a status that is neither a success nor a rejection.
func failure(status *framework.Status) error {
	if status.IsSuccess() || status.IsUnschedulable() {
		return nil
	}
	return status.AsError()
}

// preempt returns the candidates that pass the plugins' filters once their victims are gone, with unchanged victims. It
// leaves out unknown nodes, which cannot be filtered.
func (d *Decider) preempt(ctx context.Context, p *preemption) (any, error) {
	nodes, _ := d.nodesOf(&question{names: p.names})
	verdicts, err := d.verdicts(ctx, p.pod, nodes, p.victims)
	if err != nil {
		return nil, err
	}
	result := extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{}}
	for node, status := range verdicts {
		if status.IsSuccess() {
			result.NodeNameToMetaVictims[node] = p.victims[node]
		}
	}
	return result, nil
}

// prioritize returns a score from 0 to 10 for every node.
func (d *Decider) prioritize(ctx context.Context, q *question) (any, error) {
	nodes, unknown := d.nodesOf(q)
	if len(unknown) > 0 {
		// A score of 0 would make an unknown node the worst.
		return nil, fmt.Errorf("node(s) not known to the extender (yet): %d of %d, for example %s",
			len(unknown), len(q.names), unknown[0])
	}
	sums, err := d.sums(ctx, q.pod, nodes)
	if err != nil {
		return nil, err
	}
	scores := make(extenderv1.HostPriorityList, len(nodes))
	for i, node := range nodes {
		scores[i] = extenderv1.HostPriority{Host: node.Name, Score: scaled(sums[i], d.weights)}
		klog.V(verdictLevel).InfoS("Scored node", "pod", klog.KObj(q.pod), "node", node.Name, "score", scores[i].Score)
	}
	return scores, nil
}

// sums runs the score plugins on nodes, and returns the sum of weight × score of each.
func (d *Decider) sums(ctx context.Context, pod *corev1.Pod, nodes []*corev1.Node) ([]int64, error) {
	if _, err := d.cluster.look(nodes); err != nil {
		return nil, err
	}
	state := framework.NewCycleState()
	// Score plugins may read state of PreFilter. That of the filter request is not kept, because it is unknown how long
	// it would be needed, and by which of several schedulers.
	status := d.framework.RunPreFilterPlugins(ctx, state, pod)
	if status.IsSuccess() {
		status = d.framework.RunPreScorePlugins(ctx, state, pod, nodes)
	}
	if !status.IsSuccess() {
		return nil, status.AsError()
	}
	sums := make([]int64, len(nodes))
	for _, plugin := range d.scorers {
		scores, err := d.score(ctx, plugin, state, pod, nodes)
		if err != nil {
			return nil, fmt.Errorf("running the score plugin %s: %w", plugin.Name(), err)
		}
		for i := range scores {
			sums[i] += plugin.weight * scores[i].Score
		}
	}
	return sums, nil
}

// score returns a plugin's scores of nodes. The framework's RunScorePlugins does the same, except that a panic ends the
// process.
func (d *Decider) score(
	ctx context.Context, plugin framework.ScorePlugin, state *framework.CycleState, pod *corev1.Pod, nodes []*corev1.Node,
) (framework.NodeScoreList, error) {
	scores := make(framework.NodeScoreList, len(nodes))
	_, err := d.each(ctx, len(nodes), func(i int) (status *framework.Status) {
		scores[i].Name = nodes[i].Name
		scores[i].Score, status = plugin.Score(ctx, state, pod, nodes[i].Name)
		if !status.IsSuccess() {
			return framework.AsStatus(status.AsError())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if extensions := plugin.ScoreExtensions(); extensions != nil {
		if status := extensions.NormalizeScore(ctx, state, pod, scores); !status.IsSuccess() {
			return nil, status.AsError()
		}
	}
	for _, score := range scores {
		if score.Score < framework.MinNodeScore || score.Score > framework.MaxNodeScore {
			return nil, fmt.Errorf("it gives node %s the score %d, which is not in the range of %d to %d",
				score.Name, score.Score, framework.MinNodeScore, framework.MaxNodeScore)
		}
	}
	return scores, nil
}

// scaled returns a sum of weight × score, with scores from 0 to 100, as an extender's score of 0 to 10: the weighted
// mean divided by 10, rounded half up. Without plugins every node scores 0.
func scaled(sum, weights int64) int64 {
	if weights == 0 {
		return extenderv1.MinExtenderPriority
	}
	// sum ÷ (10 × weights) + ½, in whole numbers.
	step := framework.MaxNodeScore / extenderv1.MaxExtenderPriority * weights
	return (sum + step/2) / step
}
