// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
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
	current   *currentSnapshot
	// weights is the sum of the weights of the score plugins; 0 if there are none.
	weights int64
	// turn holds a token while a request is answered.
	turn chan struct{}
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
	current := &currentSnapshot{}
	made, err := frameworkruntime.NewFramework(profile.registry, &profile.profile,
		frameworkruntime.WithClientSet(with.client),
		frameworkruntime.WithKubeConfig(with.config),
		frameworkruntime.WithInformerFactory(with.factory),
		frameworkruntime.WithEventRecorder(with.events),
		frameworkruntime.WithSnapshotSharedLister(current),
		frameworkruntime.WithPodNominator(noNominations{}),
		frameworkruntime.WithParallelism(profile.parallelism),
	)
	if err != nil {
		return nil, fmt.Errorf("cannot create the plugins of the profile %s: %w; next: correct the configuration",
			profile.profile.SchedulerName, err)
	}
	survivePanics()
	d := &Decider{framework: made, cluster: newCluster(with.factory), current: current, turn: make(chan struct{}, 1)}
	for _, plugin := range made.ListPlugins().Score.Enabled {
		// The scheduler accepts a negative weight, but a weighted mean needs positive ones.
		if plugin.Weight < 0 {
			return nil, fmt.Errorf("the plugin %s has the weight %d, which an extender's scores of 0 to 10 cannot express; "+
				"next: give it a weight of 1 or more in the configuration", plugin.Name, plugin.Weight)
		}
		d.weights += int64(plugin.Weight)
	}
	return d, nil
}

// Serves returns the plugins by extension point.
func (d *Decider) Serves() (preFilter, filter, preScore, score []schedulerconfig.Plugin) {
	plugins := d.framework.ListPlugins()
	return plugins.PreFilter.Enabled, plugins.Filter.Enabled, plugins.PreScore.Enabled, plugins.Score.Enabled
}

// inTurn waits for its turn, and then decodes and answers a request. The turn ends with the answer, even if the request
// has timed out before.
func inTurn[Question, Answer any](
	ctx context.Context, d *Decider, body []byte,
	decode func([]byte) (*Question, error), answer func(context.Context, *Question) (Answer, error),
) (none Answer, err error) {
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return none, ctx.Err()
	}
	defer func() { <-d.turn }()
	// The deadline may have passed while waiting.
	if err := ctx.Err(); err != nil {
		return none, err
	}
	question, err := decode(body)
	if err != nil {
		return none, err
	}
	return answer(ctx, question)
}

// Filter returns the nodes that pass the plugins' filters, and the reasons of the others.
func (d *Decider) Filter(ctx context.Context, body []byte) (*filterResult, error) {
	return inTurn(ctx, d, body, decodeQuestion, d.filter)
}

func (d *Decider) filter(ctx context.Context, q *question) (*filterResult, error) {
	nodes, unknown := d.nodesOf(q)
	if err := d.look(nodes); err != nil {
		return nil, err
	}
	verdicts, err := d.verdicts(ctx, q.pod, nodes)
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
		if node := d.cluster.node(name); node != nil {
			nodes = append(nodes, node)
		} else {
			unknown = append(unknown, name)
		}
	}
	return nodes, unknown
}

// look sets the plugins' snapshot to a new one, for a request with these nodes.
func (d *Decider) look(nodes []*corev1.Node) error {
	snapshot, err := newSnapshot(d.cluster, nodes)
	if err != nil {
		return err
	}
	d.current.snapshot.Store(snapshot)
	return nil
}

// verdicts runs the filter plugins on nodes of the current snapshot. A node with no verdict, or with nil, has passed.
func (d *Decider) verdicts(
	ctx context.Context, pod *corev1.Pod, nodes []*corev1.Node,
) (map[string]*framework.Status, error) {
	verdicts := make(map[string]*framework.Status, len(nodes))
	state := framework.NewCycleState()
	if status := d.framework.RunPreFilterPlugins(ctx, state, pod); !status.IsSuccess() {
		for _, node := range nodes {
			verdicts[node.Name] = status
		}
		return verdicts, rejected(status)
	}
	infos := d.current.snapshot.Load().asked
	statuses := make([]*framework.Status, len(infos))
	for i := range statuses {
		// nil would be a success.
		statuses[i] = framework.AsStatus(errNotDone)
	}
	d.framework.Parallelizer().Until(ctx, len(infos), func(i int) {
		statuses[i] = d.framework.RunFilterPlugins(ctx, state, pod, infos[i]).Merge()
	})
	// At the deadline some nodes have not been filtered, and must not pass.
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for i, info := range infos {
		if err := rejected(statuses[i]); err != nil {
			return nil, err
		}
		verdicts[info.Node().Name] = statuses[i]
	}
	return verdicts, nil
}

// rejected returns the error of a status that is neither a success nor a rejection.
func rejected(status *framework.Status) error {
	if status.IsSuccess() || status.IsUnschedulable() {
		return nil
	}
	return status.AsError()
}

// answer sorts the nodes of the request into those that pass, fail, and fail for good.
func (q *question) answer(verdicts map[string]*framework.Status) *filterResult {
	result := &filterResult{FailedNodes: extenderv1.FailedNodesMap{}, FailedAndUnresolvableNodes: extenderv1.FailedNodesMap{}}
	names, sent := []string{}, []json.RawMessage{}
	for i, name := range q.names {
		switch status := verdicts[name]; {
		case status.IsSuccess() && q.nodes != nil:
			sent = append(sent, q.sent[i])
		case status.IsSuccess():
			names = append(names, name)
		case status.Code() == framework.UnschedulableAndUnresolvable:
			result.FailedAndUnresolvableNodes[name] = status.Message()
		default:
			result.FailedNodes[name] = status.Message()
		}
	}
	if q.nodes != nil {
		result.Nodes = &nodeList{Items: sent}
	} else {
		result.NodeNames = &names
	}
	return result
}

// Prioritize returns a score from 0 to 10 for every node.
func (d *Decider) Prioritize(ctx context.Context, body []byte) (extenderv1.HostPriorityList, error) {
	return inTurn(ctx, d, body, decodeQuestion, d.prioritize)
}

func (d *Decider) prioritize(ctx context.Context, q *question) (extenderv1.HostPriorityList, error) {
	nodes, unknown := d.nodesOf(q)
	if len(unknown) > 0 {
		// A score of 0 would make an unknown node the worst.
		return nil, fmt.Errorf("node(s) not known to the extender (yet): %d of %d, for example %s",
			len(unknown), len(q.names), unknown[0])
	}
	if err := d.look(nodes); err != nil {
		return nil, err
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

// sums runs the score plugins on the nodes of the current snapshot, and returns the sum of weight × score of each.
func (d *Decider) sums(ctx context.Context, pod *corev1.Pod, nodes []*corev1.Node) ([]int64, error) {
	state := framework.NewCycleState()
	// Score plugins may read state of PreFilter. That of the filter request is not kept, because it is unknown how long
	// it would be needed, and by which of several schedulers.
	if status := d.framework.RunPreFilterPlugins(ctx, state, pod); !status.IsSuccess() {
		return nil, status.AsError()
	}
	if status := d.framework.RunPreScorePlugins(ctx, state, pod, nodes); !status.IsSuccess() {
		return nil, status.AsError()
	}
	scores, status := d.framework.RunScorePlugins(ctx, state, pod, nodes)
	if !status.IsSuccess() {
		return nil, status.AsError()
	}
	// At the deadline some nodes have no score.
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	sums := make([]int64, len(nodes))
	for _, ofPlugin := range scores {
		for i := range ofPlugin {
			if ofPlugin[i].Name != nodes[i].Name {
				return nil, errNotDone
			}
			sums[i] += ofPlugin[i].Score
		}
	}
	return sums, nil
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

// Preempt returns the candidates that pass the plugins' filters once their victims are gone, with unchanged victims.
func (d *Decider) Preempt(ctx context.Context, body []byte) (*extenderv1.ExtenderPreemptionResult, error) {
	return inTurn(ctx, d, body, decodePreemption, d.preempt)
}

func (d *Decider) preempt(ctx context.Context, p *preemption) (*extenderv1.ExtenderPreemptionResult, error) {
	result := &extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{}}
	var candidates []candidate
	var nodes []*corev1.Node
	for _, candidate := range p.candidates {
		// An unknown node cannot be filtered, so it is left out.
		if node := d.cluster.node(candidate.node); node != nil {
			candidates, nodes = append(candidates, candidate), append(nodes, node)
		}
	}
	if err := d.look(nodes); err != nil {
		return nil, err
	}
	state := framework.NewCycleState()
	if status := d.framework.RunPreFilterPlugins(ctx, state, p.pod); !status.IsSuccess() {
		return result, rejected(status)
	}
	infos := d.current.snapshot.Load().asked
	for i, candidate := range candidates {
		status, err := d.without(ctx, state.Clone(), p.pod, infos[i].Clone(), candidate.victims)
		if err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if status.IsSuccess() {
			result.NodeNameToMetaVictims[candidate.node] = metaVictims(candidate)
		}
	}
	return result, nil
}

// without runs the filter plugins on a node after removing some of its pods. It modifies the state and the node.
func (d *Decider) without(
	ctx context.Context, state *framework.CycleState, pod *corev1.Pod, info *framework.NodeInfo, victims []types.UID,
) (*framework.Status, error) {
	for _, uid := range victims {
		victim := podOn(info, uid)
		if victim == nil {
			// It may have ended, or not have been watched yet. The node is left out; others may pass.
			return framework.NewStatus(framework.Unschedulable, fmt.Sprintf("the victim with the UID %q is not known to be on the node", uid)), nil
		}
		if err := info.RemovePod(victim.Pod); err != nil {
			return nil, err
		}
		if status := d.framework.RunPreFilterExtensionRemovePod(ctx, state, pod, victim, info); !status.IsSuccess() {
			return nil, status.AsError()
		}
	}
	status := d.framework.RunFilterPlugins(ctx, state, pod, info).Merge()
	return status, rejected(status)
}

func podOn(info *framework.NodeInfo, uid types.UID) *framework.PodInfo {
	for _, pod := range info.Pods {
		if pod.Pod.UID == uid {
			return pod
		}
	}
	return nil
}

func metaVictims(c candidate) *extenderv1.MetaVictims {
	victims := &extenderv1.MetaVictims{NumPDBViolations: c.violations}
	for _, uid := range c.victims {
		victims.Pods = append(victims.Pods, &extenderv1.MetaPod{UID: string(uid)})
	}
	return victims
}

// verdictLevel is the log level of the verdict on each node.
const verdictLevel = 2

// errNotSynced is the error of a request that comes too early.
var errNotSynced = errors.New("the caches of nodes and pods have not synced yet; next: try again in a moment")

// Ready returns nil if requests can be answered.
func (d *Decider) Ready() error {
	if !d.cluster.hasSynced() {
		return errNotSynced
	}
	return nil
}

// noNominations is the nominator of an extender, which does not know the nominated pods. The scheduler counts them in
// its own plugins.
type noNominations struct{}

func (noNominations) AddNominatedPod(*framework.PodInfo, *framework.NominatingInfo) {}
func (noNominations) DeleteNominatedPodIfExists(*corev1.Pod)                        {}
func (noNominations) UpdateNominatedPod(*corev1.Pod, *framework.PodInfo)            {}
func (noNominations) NominatedPodsForNode(string) []*framework.PodInfo              { return nil }
