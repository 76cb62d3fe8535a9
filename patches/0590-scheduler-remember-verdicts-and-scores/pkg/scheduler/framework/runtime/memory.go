// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/whatif"
)

const (
	// maxBytes limits a memory, whatever the number of nodes, and maxKinds its kinds.
	maxBytes = 16 << 20
	maxKinds = 256
	// maxKind limits the length of a kind's key, and of its pod.
	maxKind = 64 << 10
	// maxStatuses limits the different statuses of a kind. Nodes with others are evaluated each time.
	maxStatuses = 64
	// maxIdle is the number of searches without use after which a memory is cleared.
	maxIdle = 1000
	// maxMet is the number of kinds that are known to have been met once.
	maxMet = 1024
)

// fits and scored are the verdicts on a node that no node-local filter rejects, without and with scores. Others are an
// index in the statuses of the kind, plus 1.
const fits, scored = 0, math.MaxUint8

// memory has the results of the node-local plugins of a profile for kinds of pods, so that a decision only evaluates nodes
// that have changed since.
//
//  1. Two pods are of one kind if the keys of all node-local plugins are equal, and so are their priorities.
//  2. A NodeInfo that changes gets a new Generation, which no other NodeInfo had before. What is known about a node holds
//     as long as the node with its index has the same Generation.
//  3. Nominated pods are no part of the NodeInfo: nodes that have some are evaluated each time, and nothing is learned.
//  4. Plugins that are not node-local are called in their order, for nodes that all node-local filters before them pass.
//  5. A kind is remembered from its second pod on, or if its first one fits no node.
type memory struct {
	// mutex is for CompareCache: all else is done by the scheduling cycle and its workers, each for other nodes.
	mutex sync.Mutex
	// plugins are the node-local ones of the profile, at most 64.
	plugins []localPlugin
	found   bool
	// refreshes is true if a PreFilter plugin of others may have changed NodeInfos of the snapshot.
	refreshes bool
	kinds     map[string]*kind
	// spare is a kind that was dropped, whose memory is used again.
	spare  *kind
	nodes  int
	bytes  int
	met    []uint64
	seed   maphash.Seed
	search int64
	idle   int
	key    []byte
	// totals is reused by ScoreTotals, and missing for nodes whose scores are not known.
	totals  framework.NodeScoreList
	missing scoreBuffer
}

// remembered is what a cycle knows from its memory.
type remembered struct {
	// kind is that of the pod, if it is remembered; recalling is true from Recall to Release.
	kind      *kind
	recalling bool
	// local has a bit for each of the memory's plugins that is node-local for the pod, and firstOther the place of the
	// first filter that is not, and may reject a node.
	local      uint64
	firstOther int
	// nominatedNodes have nominated pods; evaluated were evaluated in this cycle.
	nominatedNodes map[int32]bool
	evaluated      []int32
	lackedVictims  bool
	// previous is the status that Remember has set last, with its verdict.
	previous        *framework.Status
	previousVerdict uint8
	// found are the indexes in table of the nodes that passed all filters.
	found []int32
	table *framework.NodeTable
}

type localPlugin struct {
	framework.NodeLocalPlugin
	// filter and score are its places in the profile, or -1.
	filter, score int
}

// kind is what is known about the nodes for a kind of pods.
type kind struct {
	// pod is the first of them, and local has a bit for each node-local plugin, for CompareCache.
	pod   *v1.Pod
	local uint64
	// generations are those of the nodes when they were evaluated; 0 if they were not.
	generations []int64
	verdicts    []uint8
	// statuses are the first count ones, and filters has the place in the profile of the filter of each of them. The
	// mutex is for workers that add some.
	mutex    sync.Mutex
	statuses [maxStatuses]*framework.Status
	filters  [maxStatuses]int
	count    int
	full     bool
	// scores has the raw scores by Score plugin; nil for one that is not node-local.
	scores [][]int16
	// unscorable is true if a score does not fit in 16 bits.
	unscorable bool
	noVictims  int32
	// used is the number of the last search that used it, and bytes is its size.
	used  int64
	bytes int
}

var nodeLocalPlugin = reflect.TypeOf((*framework.NodeLocalPlugin)(nil)).Elem()

// findPlugins finds the node-local plugins of the profile.
func (m *memory) findPlugins(f *frameworkImpl) {
	places := map[string]int{}
	add := func(pl framework.Plugin) *localPlugin {
		local, ok := pl.(framework.NodeLocalPlugin)
		if !ok || !framework.HasOwn(pl, nodeLocalPlugin) {
			return nil
		}
		if _, known := places[pl.Name()]; !known {
			places[pl.Name()] = len(m.plugins)
			m.plugins = append(m.plugins, localPlugin{local, -1, -1})
		}
		return &m.plugins[places[pl.Name()]]
	}
	for i, pl := range f.filterPlugins {
		if local := add(pl); local != nil {
			local.filter = i
		}
	}
	for i, pl := range f.scorePlugins {
		if local := add(pl); local != nil {
			local.score = i
		}
	}
	if len(m.plugins) > 64 {
		m.plugins = nil
	}
	for _, pl := range f.preFilterPlugins {
		t := reflect.TypeOf(pl)
		if t.Kind() == reflect.Ptr {
			t = t.Elem()
		}
		m.refreshes = m.refreshes || !strings.Contains(t.PkgPath(), "k8s.io/kubernetes/pkg/scheduler/framework/plugins/")
	}
	m.found, m.met, m.seed = true, make([]uint64, maxMet), maphash.MakeSeed()
}

// forget drops all kinds.
func (m *memory) forget() {
	m.kinds, m.spare, m.bytes, m.idle = map[string]*kind{}, nil, 0, 0
}

// keyOf sets key to that of a pod, and returns the plugins that are node-local for it, one bit each.
func (m *memory) keyOf(pod *v1.Pod) (local uint64) {
	key := framework.AppendNumber(m.key[:0], int64(corev1helpers.PodPriority(pod)))
	for i := range m.plugins {
		before, length := len(key), ^uint32(0)
		part, ok := m.plugins[i].NodeLocalKey(pod, key)
		if ok {
			local |= 1 << i
			key, length = part, uint32(len(part)-before)
		}
		// With its length behind it, no part can be mistaken for another one.
		key = append(key, 0, 0, 0, 0)
		binary.LittleEndian.PutUint32(key[len(key)-4:], length)
	}
	m.key = key
	return local
}

// again reports whether the kind of key was met before.
func (m *memory) again() bool {
	hash := maphash.Bytes(m.seed, m.key)
	at := &m.met[hash%maxMet]
	if *at == hash {
		return true
	}
	*at = hash
	return false
}

// size is the number of bytes of a kind with this pod, without scores.
func (m *memory) size(pod *v1.Pod) int {
	statuses := maxStatuses
	if m.nodes < statuses {
		statuses = m.nodes
	}
	// A pod in memory is several times as large as its encoding.
	return m.nodes*(8+1) + len(m.key) + 10*pod.Size() + 150*statuses
}

// makeRoom drops the oldest kinds, but not one, until there is room for so many bytes of another kind, or of this one.
func (m *memory) makeRoom(size int, but *kind) {
	for len(m.kinds) > 0 && (m.bytes+size > maxBytes || but == nil && len(m.kinds) == maxKinds) {
		var oldest string
		var old *kind
		for other, k := range m.kinds {
			if k != but && (old == nil || k.used < old.used) {
				oldest, old = other, k
			}
		}
		if old == nil {
			return
		}
		m.bytes -= old.bytes
		m.spare = old
		delete(m.kinds, oldest)
	}
}

// add adds a kind for key. The oldest ones give way. It returns nil if the kind takes too much.
func (m *memory) add(pod *v1.Pod, local uint64) *kind {
	size := m.size(pod)
	if len(m.key) > maxKind || pod.Size() > maxKind || size > maxBytes {
		return nil
	}
	m.makeRoom(size, nil)
	k := &kind{pod: pod, local: local, used: m.search, bytes: size}
	if m.spare != nil {
		k.generations, k.verdicts = m.spare.generations, m.spare.verdicts
		m.spare = nil
		k.clear()
	} else {
		k.generations, k.verdicts = make([]int64, m.nodes), make([]uint8, m.nodes)
	}
	m.kinds[string(m.key)] = k
	m.bytes += size
	return k
}

// addScores makes room for the scores of a kind by a plugin.
func (m *memory) addScores(k *kind, place int) {
	m.makeRoom(2*m.nodes, k)
	m.spare = nil
	k.scores[place] = make([]int16, m.nodes)
	k.bytes += 2 * m.nodes
	m.bytes += 2 * m.nodes
}

// clear forgets all nodes.
func (k *kind) clear() {
	for i := range k.generations {
		k.generations[i] = 0
	}
	k.statuses, k.count, k.full, k.noVictims = [maxStatuses]*framework.Status{}, 0, false, 0
}

// forgetRejected forgets the nodes that are rejected.
func (k *kind) forgetRejected() {
	for i := range k.verdicts {
		if k.status(int32(i)) != nil {
			k.generations[i] = 0
		}
	}
	k.statuses, k.count, k.full = [maxStatuses]*framework.Status{}, 0, false
}

// knows reports whether what is known about a node holds for its Generation.
func (k *kind) knows(node int32, generation int64) bool {
	return generation != 0 && k.generations[node] == generation
}

// status returns the status with which a node is rejected, or nil.
func (k *kind) status(node int32) *framework.Status {
	if verdict := k.verdicts[node]; verdict != fits && verdict != scored {
		return k.statuses[verdict-1]
	}
	return nil
}

// set sets the verdict on a node, and the Generation for which it holds: 0 if it only holds in this cycle. It returns
// false if there are too many different statuses.
func (k *kind) set(node int32, status *framework.Status, generation int64, filter func(plugin string) int) bool {
	k.generations[node] = 0
	verdict := uint8(fits)
	if !status.IsSuccess() {
		k.mutex.Lock()
		defer k.mutex.Unlock()
		at := 0
		for at < k.count && k.statuses[at] != status {
			at++
		}
		if at == k.count && !k.full {
			for at = 0; at < k.count && !framework.Same(k.statuses[at], status); {
				at++
			}
		}
		if at == maxStatuses {
			k.full = true
			return false
		}
		if at == k.count {
			k.statuses[at], k.filters[at] = status, filter(status.FailedPlugin())
			k.count++
		}
		verdict = uint8(at + 1)
	}
	k.verdicts[node], k.generations[node] = verdict, generation
	return true
}

// Recall finds what earlier cycles have learned about nodes for the cycle's pod, until Release. It reports whether it
// remembers this kind of pods.
func (c *cycle) Recall(table *framework.NodeTable) bool {
	m := &c.framework.memory
	nominator, ok := c.framework.PodNominator.(interface{ NominatedNodes() []string })
	if c.framework.runAllFilters || !ok || table == nil {
		return false
	}
	m.mutex.Lock()
	c.recalling = true
	if !m.found {
		m.findPlugins(c.framework)
	}
	if m.idle++; m.idle > maxIdle || m.nodes != len(table.Generations) || m.kinds == nil {
		m.forget()
	}
	m.nodes, c.table = len(table.Generations), table
	if m.refreshes {
		table.Refresh()
	}
	m.search++
	c.classify(m.keyOf(c.pod))
	k := m.kinds[string(m.key)]
	if k == nil {
		if !m.again() {
			return false
		}
		if k = m.add(c.pod, c.local); k == nil {
			return false
		}
	}
	if k.full {
		k.forgetRejected()
	}
	k.used, m.idle = m.search, 0
	c.kind, c.lackedVictims, k.noVictims = k, k.noVictims == 1, 0
	c.setNominated(nominator.NominatedNodes())
	return true
}

// setNominated sets the nodes that have nominated pods. Nothing holds for them any longer than for this cycle.
func (c *cycle) setNominated(names []string) {
	for _, name := range names {
		if nodeInfo, err := c.framework.snapshotSharedLister.NodeInfos().Get(name); err == nil {
			if i, ok := c.table.Index(nodeInfo); ok {
				if c.nominatedNodes == nil {
					c.nominatedNodes = map[int32]bool{}
				}
				c.nominatedNodes[i], c.kind.generations[i] = true, 0
			}
		}
	}
}

// Release ends the use of the memory that Recall began.
func (c *cycle) Release() {
	if c.recalling {
		c.recalling = false
		c.framework.memory.mutex.Unlock()
	}
}

// filters reports whether the filter at a place in the profile is one of the node-local plugins, of which local has a bit
// each.
func (m *memory) filters(local uint64, place int) bool {
	for i := range m.plugins {
		if m.plugins[i].filter == place {
			return local&(1<<i) != 0
		}
	}
	return false
}

// classify marks the filters of node-local plugins.
func (c *cycle) classify(local uint64) {
	c.local, c.firstOther = local, math.MaxInt32
	for i := range c.filters {
		filter := &c.filters[i]
		if filter.local = c.framework.memory.filters(local, filter.place); !filter.local && filter.place < c.firstOther {
			c.firstOther = filter.place
		}
	}
}

// FitsFrom finds nodes that are known to fit, from the first one on: all indexes, or those of a part of the nodes. It
// stops at one that does not, or is not known to, or when found is full, and returns their number.
func (c *cycle) FitsFrom(first, end int, indexes, found []int32) int {
	k, generations, n := c.kind, c.table.Generations, 0
	if c.sampled || c.firstOther != math.MaxInt32 {
		return 0
	}
	for ; first < end && n < len(found); first++ {
		i := int32(first)
		if indexes != nil {
			i = indexes[first]
		}
		if !k.knows(i, generations[i]) || k.status(i) != nil {
			break
		}
		found[n] = i
		n++
	}
	return n
}

// Verdict returns the status of a node, if it is known.
func (c *cycle) Verdict(node int32) (*framework.Status, bool) {
	k := c.kind
	if !k.knows(node, c.table.Generations[node]) {
		return nil, false
	}
	status := k.status(node)
	if status == nil {
		return nil, c.firstOther == math.MaxInt32 && !(c.sampled && atomic.LoadInt32(&c.measured) < maxMeasured)
	}
	if place := k.filters[k.verdicts[node]-1]; place > c.firstOther || c.sampled && !c.rejectionMeasured(place) {
		return nil, false
	}
	return status, true
}

// rejectionMeasured reports whether enough nodes are measured in a sampled cycle, and a rejection by this filter.
func (c *cycle) rejectionMeasured(place int) bool {
	for i := range c.filters {
		if c.filters[i].place == place {
			return atomic.LoadInt32(&c.measured) >= maxMeasured && atomic.LoadInt32(&c.filters[i].rejected) == 1
		}
	}
	return true
}

// Evaluate filters a node whose status is not known, and remembers the result of the node-local filters.
func (c *cycle) Evaluate(ctx context.Context, state *framework.CycleState, node int32, nodeInfo *framework.NodeInfo) *framework.Status {
	k := c.kind
	if c.nominatedNodes[node] {
		status := c.framework.RunFilterPluginsWithNominatedPods(ctx, state, c.pod, nodeInfo)
		if status.Code() != framework.Error {
			k.set(node, status, 0, c.placeOf)
		}
		c.addEvaluated(node)
		return status
	}
	measure, generation := c.measureNext(), c.table.Generations[node]
	var status *framework.Status
	if known := k.knows(node, generation); known && !c.sampled {
		status = k.status(node)
	} else {
		status = c.run(ctx, state, nodeInfo, localFilters, math.MaxInt32, measure)
		if status.Code() == framework.Error {
			// A filter before it may reject the node.
			return c.run(ctx, state, nodeInfo, allFilters, math.MaxInt32, false)
		}
		if !known {
			k.set(node, status, generation, c.placeOf)
		}
		c.addEvaluated(node)
	}
	before := math.MaxInt32
	if !status.IsSuccess() {
		before = c.placeOf(status.FailedPlugin())
	}
	if c.firstOther < before {
		if other := c.run(ctx, state, nodeInfo, otherFilters, before, measure); !other.IsSuccess() {
			return other
		}
	}
	return status
}

func (c *cycle) addEvaluated(node int32) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.evaluated = append(c.evaluated, node)
}

// placeOf returns the place of a filter in the profile.
func (c *cycle) placeOf(plugin string) int {
	for i := range c.filters {
		if c.filters[i].name == plugin {
			return c.filters[i].place
		}
	}
	return math.MaxInt32
}

// Remember learns the statuses of a search that rejected all nodes, for a kind that Recall did not know. It is called
// once for each node, and reports whether it can be called for the next one.
func (c *cycle) Remember(node int32, status *framework.Status) bool {
	m := &c.framework.memory
	if !c.recalling || c.firstOther != math.MaxInt32 {
		return false
	}
	if c.kind == nil {
		if c.kind = m.add(c.pod, c.local); c.kind == nil {
			return false
		}
		c.setNominated(c.withNominated)
	}
	generation := c.table.Generations[node]
	if c.nominatedNodes[node] {
		generation = 0
	}
	k := c.kind
	if c.previous != nil && c.previous == status { // Most nodes have the status of the one before.
		k.verdicts[node], k.generations[node] = c.previousVerdict, generation
		return true
	}
	if !k.set(node, status, generation, c.placeOf) {
		return false
	}
	c.previous, c.previousVerdict = status, k.verdicts[node]
	return true
}

// Rejected returns the statuses of all nodes after a search that rejected all of them; nil if they are not known.
func (c *cycle) Rejected(nodes []*framework.NodeInfo) *framework.Search {
	k := c.kind
	if k == nil || k.full || c.firstOther != math.MaxInt32 {
		return nil
	}
	rejected := &framework.Rejected{ByNode: k.verdicts, Statuses: k.statuses[:k.count], NoVictims: &k.noVictims}
	if !rejected.Count(c.pod) {
		return nil
	}
	return &framework.Search{Rejected: rejected, Nodes: nodes, Evaluated: c.evaluated, LackedVictims: c.lackedVictims}
}

// Slow reports whether a filter must be called for each node that may take long, because it does not prepare.
func (c *cycle) Slow() bool {
	for i := range c.filters {
		if c.filters[i].filter == nil && !c.filters[i].local {
			return true
		}
	}
	return false
}

// Found keeps the indexes of the nodes that passed all filters.
func (c *cycle) Found(at []int32) { c.found = at }

// hasFound reports whether these are the nodes of Found: extenders may have removed some, or changed their order.
func (c *cycle) hasFound(nodes []*v1.Node) bool {
	if c.table == nil || len(c.found) != len(nodes) {
		return false
	}
	for i, index := range c.found {
		if c.table.Nodes[index] != nodes[i] {
			return false
		}
	}
	return true
}

// Forget drops what the cycle knows.
func (c *cycle) Forget() { c.remembered = remembered{firstOther: math.MaxInt32} }

// recallScores sets the columns of the buffer to the raw scores of the node-local plugins, if the kind is remembered. It
// scores nodes whose scores are not known.
func (c *cycle) recallScores(ctx context.Context, state *framework.CycleState, buffer *scoreBuffer) *framework.Status {
	k, m, f := c.kind, &c.framework.memory, c.framework
	if k == nil || k.unscorable {
		return nil
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if k.scores == nil {
		k.scores = make([][]int16, len(f.scorePlugins))
	}
	columns := buffer.columns
	for i := range m.plugins {
		if place := m.plugins[i].score; place >= 0 && c.local&(1<<i) != 0 {
			if k.scores[place] == nil {
				m.addScores(k, place)
			}
			columns[place] = k.scores[place]
		}
	}
	var missing []int32
	var nodes []*v1.Node
	for i, index := range buffer.at {
		if !k.knows(index, c.table.Generations[index]) || k.verdicts[index] != scored || c.sampled && i < maxMeasured {
			missing, nodes = append(missing, index), append(nodes, buffer.nodes[i])
		}
	}
	if len(missing) > 0 {
		some := &m.missing
		defer some.release()
		some.reset(f, nodes, missing, c.table)
		if status := f.runScores(ctx, state, c.pod, some, false, func(i int) bool { return columns[i] != nil }); !status.IsSuccess() {
			return status
		}
		for place, list := range some.lists {
			least, most := int64(framework.MinNodeScore), int64(framework.MaxNodeScore)
			if f.scorePlugins[place].ScoreExtensions() != nil {
				least, most = math.MinInt16, math.MaxInt16
			}
			for i := range list {
				if list[i].Score < least || list[i].Score > most {
					k.unscorable, k.scores = true, nil // Its bytes stay counted.
					nodes := buffer.nodes
					buffer.release()
					buffer.reset(f, nodes, c.found, c.table)
					return nil
				}
				columns[place][missing[i]] = int16(list[i].Score)
			}
		}
		for _, index := range missing {
			if k.knows(index, c.table.Generations[index]) && k.verdicts[index] == fits {
				k.verdicts[index] = scored
			}
		}
	}
	return nil
}

// compare evaluates these nodes again for all kinds, if they were remembered for the same Generation.
func (m *memory) compare(f *frameworkImpl, nodes map[string]*framework.NodeInfo) []string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	var differs []string
	for _, k := range m.kinds {
		index := make(map[int64]int32, len(k.generations))
		for i, generation := range k.generations {
			index[generation] = int32(i)
		}
		state := framework.NewCycleState()
		// Scheduling goes on meanwhile: plugins must neither count nor update what they keep between cycles.
		whatif.Mark(state)
		c := m.localCycle(f, state, k)
		scorers := m.scorers(f, state, k)
		for name, node := range nodes {
			i, found := index[node.Generation]
			if !found || node.Node() == nil || node.Generation == 0 {
				continue
			}
			known := k.status(i)
			if now := c.run(context.TODO(), state, node, localFilters, math.MaxInt32, false); !framework.Same(now, known) {
				differs = append(differs, fmt.Sprintf("%s is remembered with %q, and now has %q", name, known.Message(), now.Message()))
			}
			if k.noVictims == 1 && known.Code() != framework.UnschedulableAndUnresolvable && hasLower(node, corev1helpers.PodPriority(k.pod)) {
				differs = append(differs, fmt.Sprintf("%s is remembered without pods of lower priority, and has some", name))
			}
			for place, score := range scorers {
				if now := score(node); k.verdicts[i] == scored && now != int64(k.scores[place][i]) {
					differs = append(differs, fmt.Sprintf("%s is remembered with a score of %d by %s, and now has %d", name, k.scores[place][i], f.scorePlugins[place].Name(), now))
				}
			}
		}
	}
	return differs
}

// localCycle returns a cycle with the node-local filters only: others may read what a scheduling cycle changes.
func (m *memory) localCycle(f *frameworkImpl, state *framework.CycleState, k *kind) *cycle {
	c := &cycle{framework: f, pod: k.pod}
	for place, pl := range f.filterPlugins {
		if !m.filters(k.local, place) {
			continue
		}
		if pl, ok := pl.(framework.PreFilterPlugin); ok {
			pl.PreFilter(context.TODO(), state, k.pod)
		}
		if filter, rejects := newCycleFilter(state, k.pod, place, pl); rejects {
			filter.local = true
			c.filters = append(c.filters, filter)
		}
	}
	return c
}

func hasLower(node *framework.NodeInfo, priority int32) bool {
	for _, podInfo := range node.Pods {
		if corev1helpers.PodPriority(podInfo.Pod) < priority {
			return true
		}
	}
	return false
}

// scorers returns functions that score a node with the Score plugins whose scores are remembered, by place. It leaves out
// plugins that read the snapshot, which changes meanwhile: those that do not score in batches, and ImageLocality, which
// reads the number of nodes.
func (m *memory) scorers(f *frameworkImpl, state *framework.CycleState, k *kind) map[int]func(*framework.NodeInfo) int64 {
	scorers := map[int]func(*framework.NodeInfo) int64{}
	for i := range m.plugins {
		place := m.plugins[i].score
		if k.local&(1<<i) == 0 || place < 0 || len(k.scores) == 0 || k.scores[place] == nil {
			continue
		}
		batch := batchOf(f.scorePlugins[place])
		if batch == nil || batch.Name() == names.ImageLocality {
			continue
		}
		if pl, ok := batch.(framework.PreScorePlugin); ok {
			pl.PreScore(context.TODO(), state, k.pod, []*v1.Node{{}})
		}
		scorers[place] = func(node *framework.NodeInfo) int64 {
			scores := framework.NodeScoreList{{Name: node.Node().Name}}
			batch.ScoreNodes(state, k.pod, []*framework.NodeInfo{node}, scores)
			return scores[0].Score
		}
	}
	return scorers
}
