// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/parallelize"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// maxMeasured is the number of nodes for which each plugin is measured in a sampled cycle. The recorder holds 1,000
// observations and drops the rest: with all nodes, one cycle of a large cluster would fill it. The first rejection by
// each plugin is measured in addition, so that each status has its series.
const maxMeasured = 8

// cycle is the framework's data of a pod's scheduling cycle after its PreFilter plugins have run.
type cycle struct {
	framework *frameworkImpl
	pod       *v1.Pod
	filters   []cycleFilter
	measured  int32 // number of nodes measured so far
	sampled   bool
}

// cycleFilter is a Filter plugin that may reject a node in a cycle.
type cycleFilter struct {
	name   string
	place  int // in the profile
	plugin framework.FilterPlugin
	filter func(*framework.NodeInfo) *framework.Status // nil for a plugin that does not prepare
	// rejected is 1 if a rejection was measured.
	rejected int32
}

// prepare stores in the state the filters that may reject a node.
func (f *frameworkImpl) prepare(state *framework.CycleState, pod *v1.Pod) {
	if state != nil {
		state.SetPrepared(f.newCycle(state, pod))
	}
}

func (f *frameworkImpl) newCycle(state *framework.CycleState, pod *v1.Pod) *cycle {
	c := &cycle{framework: f, pod: pod, filters: make([]cycleFilter, 0, len(f.filterPlugins)), sampled: state.ShouldRecordPluginMetrics()}
	for i, pl := range f.filterPlugins {
		if filter, rejects := newCycleFilter(state, pod, i, pl); rejects {
			c.filters = append(c.filters, filter)
		}
	}
	return c
}

// newCycleFilter returns a filter of a cycle, and false if it passes every node.
func newCycleFilter(state *framework.CycleState, pod *v1.Pod, place int, pl framework.FilterPlugin) (cycleFilter, bool) {
	filter := cycleFilter{name: pl.Name(), place: place, plugin: pl}
	if preparing, ok := pl.(framework.PreparedFilterPlugin); ok && framework.HasOwn(pl, preparedFilterPlugin) {
		filter.filter = preparing.PrepareFilter(state, pod)
		return filter, filter.filter != nil
	}
	return filter, true
}

// filterNode runs the filters on a node, and returns the status of the first one that rejects it.
func (f *frameworkImpl) filterNode(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeInfo *framework.NodeInfo) *framework.Status {
	c, _ := state.Prepared().(*cycle)
	if c == nil || nodeInfo.Node() == nil || c.framework != f || c.pod != pod || f.runAllFilters {
		return f.RunFilterPlugins(ctx, state, pod, nodeInfo).Merge()
	}
	sampled := state.ShouldRecordPluginMetrics()
	measure := sampled && c.measureNext()
	for i := range c.filters {
		filter := &c.filters[i]
		var startTime time.Time
		if measure || sampled && filter.filter == nil && atomic.LoadInt32(&filter.rejected) == 0 {
			startTime = time.Now()
		}
		var status *framework.Status
		if filter.filter != nil {
			status = filter.filter(nodeInfo)
		} else {
			status = filter.plugin.Filter(ctx, state, pod, nodeInfo)
		}
		first := sampled && !status.IsSuccess() && atomic.CompareAndSwapInt32(&filter.rejected, 0, 1)
		if first && startTime.IsZero() {
			// A prepared filter has no side effects.
			startTime = time.Now()
			status = filter.filter(nodeInfo)
		}
		if measure || first {
			f.metricsRecorder.observePluginDurationAsync(Filter, filter.name, status, metrics.SinceInSeconds(startTime))
		}
		if status.IsSuccess() {
			continue
		}
		if !status.IsUnschedulable() {
			return framework.AsStatus(fmt.Errorf("running %q filter plugin: %w", filter.name, status.AsError())).WithFailedPlugin(filter.name)
		}
		if filter.filter != nil && status.FailedPlugin() == filter.name {
			return status
		}
		// The plugin may return the same status for another node or another pod.
		return status.Copy().WithFailedPlugin(filter.name)
	}
	return nil
}

// measureNext reports whether the filters are measured on the next node of a sampled cycle.
func (c *cycle) measureNext() bool {
	measure := c.sampled && atomic.LoadInt32(&c.measured) < maxMeasured
	if measure {
		atomic.AddInt32(&c.measured, 1)
	}
	return measure
}

// unshare replaces shared statuses by copies, if a PostFilter plugin might change them.
func (f *frameworkImpl) unshare(statuses framework.NodeToStatusMap) {
	for _, pl := range f.postFilterPlugins {
		if t := reflect.TypeOf(pl); t.Kind() == reflect.Ptr && t.Elem().Name() == "DefaultPreemption" &&
			strings.HasSuffix(t.Elem().PkgPath(), "k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption") {
			continue
		}
		for node, status := range statuses {
			statuses[node] = status.Copy()
		}
		return
	}
}

var (
	preparedFilterPlugin = reflect.TypeOf((*framework.PreparedFilterPlugin)(nil)).Elem()
	batchScorePlugin     = reflect.TypeOf((*framework.BatchScorePlugin)(nil)).Elem()
	alikeScorePlugin     = reflect.TypeOf((*framework.AlikeScorePlugin)(nil)).Elem()
)

// batchOf returns the plugin as a BatchScorePlugin, or nil if it does not score in batches.
func batchOf(pl framework.ScorePlugin) framework.BatchScorePlugin {
	if batch, ok := pl.(framework.BatchScorePlugin); ok && framework.HasOwn(pl, batchScorePlugin) {
		return batch
	}
	return nil
}

// scoreBuffer is reusable memory for the scores of one call.
type scoreBuffer struct {
	nodes     []*v1.Node
	nodeInfos []*framework.NodeInfo
	// known is true if nodeInfos has all nodes.
	known   bool
	scores  framework.NodeScoreList
	weights []int64 // by plugin
	// lists has the scores by plugin: one for each node; or a single one, which is that of all nodes.
	lists []framework.NodeScoreList
}

// reset prepares a call for some nodes.
func (b *scoreBuffer) reset(f *frameworkImpl, nodes []*v1.Node) {
	n, plugins := len(nodes), len(f.scorePlugins)
	if cap(b.nodeInfos) < n {
		b.nodeInfos = make([]*framework.NodeInfo, n)
	}
	if len(b.lists) != plugins {
		b.lists = make([]framework.NodeScoreList, plugins)
	}
	b.nodes, b.nodeInfos, b.known = nodes, b.nodeInfos[:n], false
}

// find finds the NodeInfos, for plugins that are called.
func (b *scoreBuffer) find(f *frameworkImpl) {
	b.known = f.findNodeInfos(b.nodes, b.nodeInfos)
}

// list makes the list of a plugin for the first n nodes, with their names.
func (b *scoreBuffer) list(plugin int, pl framework.ScorePlugin, n int) framework.NodeScoreList {
	all := len(b.nodes)
	if len(b.scores) < len(b.lists)*all {
		b.scores = make(framework.NodeScoreList, len(b.lists)*all)
	}
	list := b.scores[plugin*all : plugin*all+n : plugin*all+n]
	if batchOf(pl) == nil {
		// The plugin may retain the scores that NormalizeScore gets.
		list = make(framework.NodeScoreList, n)
	}
	for i := range list {
		list[i] = framework.NodeScore{Name: b.nodes[i].Name}
	}
	b.lists[plugin] = list
	return list
}

// release drops the buffer's references.
func (b *scoreBuffer) release() {
	b.nodes = nil
	for i := range b.nodeInfos {
		b.nodeInfos[i] = nil
	}
	for i := range b.lists {
		b.lists[i] = nil
	}
}

// ScoreTotals returns the sum of the scores of RunScorePlugins for each node. It only allocates the result.
func (f *frameworkImpl) ScoreTotals(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodes []*v1.Node) (framework.NodeScoreList, *framework.Status) {
	buffer, totals := &f.scores, make(framework.NodeScoreList, len(nodes))
	defer buffer.release()
	buffer.reset(f, nodes)
	if status := f.scoreInto(ctx, state, pod, buffer, true); !status.IsSuccess() {
		return nil, status
	}
	same := int64(0)
	for _, list := range buffer.lists {
		if len(list) == 1 {
			same += list[0].Score
		}
	}
	for i := range totals {
		totals[i] = framework.NodeScore{Name: nodes[i].Name, Score: same}
	}
	for _, list := range buffer.lists {
		for j := 0; len(list) > 1 && j < len(list); j++ {
			totals[j].Score += list[j].Score
		}
	}
	return totals, nil
}

// weightOf returns the weight of a Score plugin, which was validated when the framework was created.
func (f *frameworkImpl) weightOf(plugin int) int64 {
	if f.scores.weights == nil {
		for _, pl := range f.scorePlugins {
			f.scores.weights = append(f.scores.weights, int64(f.scorePluginWeight[pl.Name()]))
		}
	}
	return f.scores.weights[plugin]
}

// scoreLists returns the weighted scores of all nodes by plugin.
func (f *frameworkImpl) scoreLists(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodes []*v1.Node) (framework.PluginToNodeScores, *framework.Status) {
	buffer := new(scoreBuffer)
	buffer.reset(f, nodes)
	if status := f.scoreInto(ctx, state, pod, buffer, false); !status.IsSuccess() {
		return nil, status
	}
	scores := make(framework.PluginToNodeScores, len(f.scorePlugins))
	for i, pl := range f.scorePlugins {
		scores[pl.Name()] = buffer.lists[i]
	}
	return scores, nil
}

// scoreInto runs the Score plugins, normalizes their scores and applies their weights. With short, lists may have less than one score for each node.
func (f *frameworkImpl) scoreInto(ctx context.Context, state *framework.CycleState, pod *v1.Pod, buffer *scoreBuffer, short bool) (status *framework.Status) {
	startTime := time.Now()
	defer func() {
		metrics.FrameworkExtensionPointDuration.WithLabelValues(score, status.Code().String(), f.profileName).Observe(metrics.SinceInSeconds(startTime))
	}()
	if status := f.runScores(ctx, state, pod, buffer, short); !status.IsSuccess() {
		return status
	}
	// Batch plugins normalize in microseconds; others may take long.
	var slow []int
	for i, pl := range f.scorePlugins {
		if pl.ScoreExtensions() == nil {
			continue
		}
		if batchOf(pl) == nil {
			slow = append(slow, i)
		} else if status := f.runScoreExtension(ctx, pl, state, pod, buffer.lists[i]); !status.IsSuccess() {
			return failed("running Normalize on Score plugins", pl, status)
		}
	}
	if status := f.normalize(ctx, state, pod, buffer, slow); !status.IsSuccess() {
		return status
	}

	for i, pl := range f.scorePlugins {
		weight, list := f.weightOf(i), buffer.lists[i]
		for j := range list {
			if s := list[j].Score; s > framework.MaxNodeScore || s < framework.MinNodeScore {
				err := fmt.Errorf("plugin %q returns an invalid score %v, it should in the range of [%v, %v] after normalizing",
					pl.Name(), s, framework.MinNodeScore, framework.MaxNodeScore)
				return framework.AsStatus(fmt.Errorf("applying score defaultWeights on Score plugins: %w", err))
			}
			list[j].Score *= weight
		}
	}
	return nil
}

// failed returns the status for a Score plugin that failed.
func failed(what string, pl framework.Plugin, status *framework.Status) *framework.Status {
	return framework.AsStatus(fmt.Errorf("%s: %w", what, fmt.Errorf("plugin %q failed with: %w", pl.Name(), status.AsError())))
}

// received returns the status for an error that was sent.
func received(errCh *parallelize.ErrorChannel) *framework.Status {
	if err := errCh.ReceiveError(); err != nil {
		return framework.AsStatus(err)
	}
	return nil
}

// normalize normalizes the scores of some plugins at the same time.
func (f *frameworkImpl) normalize(ctx context.Context, state *framework.CycleState, pod *v1.Pod, buffer *scoreBuffer, plugins []int) *framework.Status {
	if len(plugins) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errCh := parallelize.NewErrorChannel()
	f.until(ctx, len(plugins), func(i int) {
		pl := f.scorePlugins[plugins[i]]
		if status := f.runScoreExtension(ctx, pl, state, pod, buffer.lists[plugins[i]]); !status.IsSuccess() {
			errCh.SendErrorWithCancel(failed("running Normalize on Score plugins", pl, status).AsError(), cancel)
		}
	})
	return received(errCh)
}

// runScores sets the raw scores of the buffer's nodes. With short, plugins that score all nodes alike only
// score one.
func (f *frameworkImpl) runScores(ctx context.Context, state *framework.CycleState, pod *v1.Pod, buffer *scoreBuffer, short bool) *framework.Status {
	var run []int
	for i, pl := range f.scorePlugins {
		if alike, ok := pl.(framework.AlikeScorePlugin); ok && short && framework.HasOwn(pl, alikeScorePlugin) && alike.ScoresAlike(state) {
			info, err := f.snapshotSharedLister.NodeInfos().Get(buffer.nodes[0].Name)
			if err == nil {
				if status := f.scoreChunkOf(ctx, pl, state, pod, []*framework.NodeInfo{info}, true, buffer.list(i, pl, 1)); !status.IsSuccess() {
					return failed("running Score plugins", pl, status)
				}
				continue
			}
		}
		buffer.list(i, pl, len(buffer.nodes))
		run = append(run, i)
	}
	if len(run) == 0 {
		return nil
	}
	buffer.find(f)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errCh := parallelize.NewErrorChannel()
	size := f.scoreChunk(len(buffer.nodes))
	f.until(ctx, (len(buffer.nodes)+size-1)/size, func(chunk int) {
		first, end := chunk*size, (chunk+1)*size
		if end > len(buffer.nodes) {
			end = len(buffer.nodes)
		}
		for _, i := range run {
			pl := f.scorePlugins[i]
			if status := f.scoreChunkOf(ctx, pl, state, pod, buffer.nodeInfos[first:end], buffer.known, buffer.lists[i][first:end]); !status.IsSuccess() {
				errCh.SendErrorWithCancel(failed("running Score plugins", pl, status).AsError(), cancel)
				return
			}
		}
	})
	return received(errCh)
}

// scoreChunk returns the number of nodes that a worker scores at a time. Below a few dozen, a goroutine costs more
// than it saves, unless a plugin scores nodes one by one, which may take long.
func (f *frameworkImpl) scoreChunk(nodes int) int {
	workers := f.Parallelizer().Parallelism()
	if workers == 1 {
		return nodes + 1
	}
	size := nodes/(2*workers) + 1
	if size < 64 {
		for _, pl := range f.scorePlugins {
			if batchOf(pl) == nil {
				return size
			}
		}
		size = 64
	}
	return size
}

// until is Parallelizer.Until, but starts no goroutine for a single piece.
func (f *frameworkImpl) until(ctx context.Context, pieces int, doWorkPiece func(int)) {
	if pieces == 1 {
		doWorkPiece(0)
	} else if pieces > 1 {
		f.Parallelizer().Until(ctx, pieces, doWorkPiece)
	}
}

// findNodeInfos looks up the nodes in the snapshot, and reports whether it has all of them.
func (f *frameworkImpl) findNodeInfos(nodes []*v1.Node, found []*framework.NodeInfo) bool {
	if f.snapshotSharedLister == nil {
		return false
	}
	lister := f.snapshotSharedLister.NodeInfos()
	for i, node := range nodes {
		nodeInfo, err := lister.Get(node.Name)
		if err != nil {
			return false
		}
		found[i] = nodeInfo
	}
	return true
}

// scoreChunkOf scores some nodes with one plugin: in one call, if the plugin supports it and the snapshot has all
// nodes.
func (f *frameworkImpl) scoreChunkOf(ctx context.Context, pl framework.ScorePlugin, state *framework.CycleState, pod *v1.Pod,
	nodeInfos []*framework.NodeInfo, known bool, scores framework.NodeScoreList) *framework.Status {
	measure := state.ShouldRecordPluginMetrics()
	if batch := batchOf(pl); batch != nil && known {
		if !measure {
			return batch.ScoreNodes(state, pod, nodeInfos, scores)
		}
		startTime := time.Now()
		status := batch.ScoreNodes(state, pod, nodeInfos, scores)
		f.metricsRecorder.observePluginDurationAsync(score, pl.Name(), status, metrics.SinceInSeconds(startTime)/float64(len(scores)))
		return status
	}
	for i := range scores {
		if ctx.Err() != nil {
			return nil
		}
		var status *framework.Status
		if measure && i < maxMeasured {
			scores[i].Score, status = f.runScorePlugin(ctx, pl, state, pod, scores[i].Name)
		} else {
			scores[i].Score, status = pl.Score(ctx, state, pod, scores[i].Name)
		}
		if !status.IsSuccess() {
			return status
		}
	}
	return nil
}
