// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
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
}

// cycleFilter is a Filter plugin that may reject a node in a cycle.
type cycleFilter struct {
	name   string
	plugin framework.FilterPlugin
	filter func(*framework.NodeInfo) *framework.Status // nil for a plugin that does not prepare
	// rejected is 1 if a rejection was measured.
	rejected int32
}

// prepare stores in the state the filters that may reject a node.
func (f *frameworkImpl) prepare(state *framework.CycleState, pod *v1.Pod) {
	if state == nil {
		return
	}
	c := &cycle{framework: f, pod: pod, filters: make([]cycleFilter, 0, len(f.filterPlugins))}
	for _, pl := range f.filterPlugins {
		filter := cycleFilter{name: pl.Name(), plugin: pl}
		if preparing, ok := pl.(framework.PreparedFilterPlugin); ok && framework.HasOwn(pl, preparedFilterPlugin) {
			if filter.filter = preparing.PrepareFilter(state, pod); filter.filter == nil {
				continue
			}
		}
		c.filters = append(c.filters, filter)
	}
	state.SetPrepared(c)
}

// filterNode runs the filters on a node, and returns the status of the first one that rejects it.
func (f *frameworkImpl) filterNode(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodeInfo *framework.NodeInfo) *framework.Status {
	c, _ := state.Prepared().(*cycle)
	if c == nil || nodeInfo.Node() == nil || c.framework != f || c.pod != pod || f.runAllFilters {
		return f.RunFilterPlugins(ctx, state, pod, nodeInfo).Merge()
	}
	sampled := state.ShouldRecordPluginMetrics()
	measure := sampled && atomic.LoadInt32(&c.measured) < maxMeasured
	if measure {
		atomic.AddInt32(&c.measured, 1)
	}
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
	nodeInfos []*framework.NodeInfo
	scores    framework.NodeScoreList
	lists     []framework.NodeScoreList
}

var scoreBuffers = sync.Pool{New: func() interface{} { return new(scoreBuffer) }}

// reset allocates room for the given numbers of plugins and nodes.
func (b *scoreBuffer) reset(plugins, nodes int) {
	if cap(b.nodeInfos) < nodes {
		b.nodeInfos = make([]*framework.NodeInfo, nodes)
	}
	if cap(b.scores) < plugins*nodes {
		b.scores = make(framework.NodeScoreList, plugins*nodes)
	}
	b.nodeInfos, b.scores = b.nodeInfos[:nodes], b.scores[:plugins*nodes]
	for i := range b.scores {
		b.scores[i] = framework.NodeScore{}
	}
	b.lists = b.lists[:0]
	for i := 0; i < plugins; i++ {
		b.lists = append(b.lists, b.scores[i*nodes:(i+1)*nodes:(i+1)*nodes])
	}
}

// forget drops the buffer's references to nodes.
func (b *scoreBuffer) forget() {
	for i := range b.nodeInfos {
		b.nodeInfos[i] = nil
	}
	for i := range b.lists {
		b.lists[i] = nil
	}
}

// ScoreTotals returns the sum of the scores of RunScorePlugins for each node. It only allocates the result.
func (f *frameworkImpl) ScoreTotals(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodes []*v1.Node) (framework.NodeScoreList, *framework.Status) {
	buffer := scoreBuffers.Get().(*scoreBuffer)
	buffer.reset(len(f.scorePlugins), len(nodes))
	defer func() {
		buffer.forget()
		scoreBuffers.Put(buffer)
	}()
	for i, pl := range f.scorePlugins {
		if batchOf(pl) == nil {
			// The plugin may retain the scores that NormalizeScore gets.
			buffer.lists[i] = make(framework.NodeScoreList, len(nodes))
		}
	}
	if status := f.scoreInto(ctx, state, pod, nodes, buffer); !status.IsSuccess() {
		return nil, status
	}
	totals := make(framework.NodeScoreList, len(nodes))
	for i, node := range nodes {
		totals[i].Name = node.Name
	}
	for _, list := range buffer.lists {
		for i := range list {
			totals[i].Score += list[i].Score
		}
	}
	return totals, nil
}

// scoreLists returns the weighted scores of all nodes by plugin.
func (f *frameworkImpl) scoreLists(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodes []*v1.Node) (framework.PluginToNodeScores, *framework.Status) {
	buffer := new(scoreBuffer)
	buffer.reset(len(f.scorePlugins), len(nodes))
	if status := f.scoreInto(ctx, state, pod, nodes, buffer); !status.IsSuccess() {
		return nil, status
	}
	scores := make(framework.PluginToNodeScores, len(f.scorePlugins))
	for i, pl := range f.scorePlugins {
		scores[pl.Name()] = buffer.lists[i]
	}
	return scores, nil
}

// scoreInto runs the Score plugins, normalizes their scores and applies their weights.
func (f *frameworkImpl) scoreInto(ctx context.Context, state *framework.CycleState, pod *v1.Pod, nodes []*v1.Node, buffer *scoreBuffer) (status *framework.Status) {
	startTime := time.Now()
	defer func() {
		metrics.FrameworkExtensionPointDuration.WithLabelValues(score, status.Code().String(), f.profileName).Observe(metrics.SinceInSeconds(startTime))
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errCh := parallelize.NewErrorChannel()
	send := func(pl framework.Plugin, status *framework.Status) bool {
		if !status.IsSuccess() {
			errCh.SendErrorWithCancel(fmt.Errorf("plugin %q failed with: %w", pl.Name(), status.AsError()), cancel)
		}
		return !status.IsSuccess()
	}

	size := f.scoreChunk(len(nodes))
	f.until(ctx, (len(nodes)+size-1)/size, func(chunk int) {
		first, end := chunk*size, (chunk+1)*size
		if end > len(nodes) {
			end = len(nodes)
		}
		known := f.findNodeInfos(nodes[first:end], buffer.nodeInfos[first:end])
		for i, pl := range f.scorePlugins {
			if send(pl, f.scoreChunkOf(ctx, pl, state, pod, nodes[first:end], buffer.nodeInfos[first:end], known, buffer.lists[i][first:end])) {
				return
			}
		}
	})
	if err := errCh.ReceiveError(); err != nil {
		return framework.AsStatus(fmt.Errorf("running Score plugins: %w", err))
	}

	// Batch plugins normalize in microseconds; others may take long.
	var slow []int
	for i, pl := range f.scorePlugins {
		if pl.ScoreExtensions() == nil {
			continue
		}
		if batchOf(pl) == nil {
			slow = append(slow, i)
		} else if send(pl, f.runScoreExtension(ctx, pl, state, pod, buffer.lists[i])) {
			break
		}
	}
	f.until(ctx, len(slow), func(i int) {
		pl := f.scorePlugins[slow[i]]
		send(pl, f.runScoreExtension(ctx, pl, state, pod, buffer.lists[slow[i]]))
	})
	if err := errCh.ReceiveError(); err != nil {
		return framework.AsStatus(fmt.Errorf("running Normalize on Score plugins: %w", err))
	}

	for i, pl := range f.scorePlugins {
		// The weights of score plugins were validated when the framework was created.
		weight := int64(f.scorePluginWeight[pl.Name()])
		list := buffer.lists[i]
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
	nodes []*v1.Node, nodeInfos []*framework.NodeInfo, known bool, scores framework.NodeScoreList) *framework.Status {
	for i, node := range nodes {
		scores[i] = framework.NodeScore{Name: node.Name}
	}
	measure := state.ShouldRecordPluginMetrics()
	if batch := batchOf(pl); batch != nil && known {
		if !measure {
			return batch.ScoreNodes(state, pod, nodeInfos, scores)
		}
		startTime := time.Now()
		status := batch.ScoreNodes(state, pod, nodeInfos, scores)
		f.metricsRecorder.observePluginDurationAsync(score, pl.Name(), status, metrics.SinceInSeconds(startTime)/float64(len(nodes)))
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
