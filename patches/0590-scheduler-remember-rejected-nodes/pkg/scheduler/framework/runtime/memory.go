// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// localFilters only read the NodeInfo, and of the pod what localSpec keeps.
var localFilters = sets.NewString(names.NodeUnschedulable, names.NodeName, names.TaintToleration, names.NodeAffinity,
	names.NodePorts, names.NodeResourcesFit)

const (
	// maxKinds is the number of kinds of pods in a memory: a byte a node each.
	maxKinds = 256
	// maxKind is the length of a kind that is remembered.
	maxKind = 4096
	// maxIdle is the number of searches without use after which a memory is cleared.
	maxIdle = 1000
)

// memory has the rejections of all nodes for kinds of pods that fit none, so that the next attempt evaluates only nodes
// that have changed.
//
//  1. Two pods are of one kind if they have in common what local filters read of a pod. The memory is used only in cycles
//     in which no other filter may reject a node.
//  2. A NodeInfo that changes gets a new Generation, which no other NodeInfo had before. A rejection holds as long as the
//     node with its index has the same Generation.
//  3. Nominated pods are no part of the NodeInfo: nodes that have some are evaluated each time, and once more afterwards.
//  4. If a node fits, the memory of the kind is dropped, and all nodes are searched.
type memory struct {
	// mutex is for CompareCache: all else is done by the scheduling cycle.
	mutex sync.Mutex
	kinds map[string]*remembered
	// generations are those of the nodes of the snapshot; changed has the number of the search that found a new one.
	generations, changed []int64
	search               int64
	idle                 int
}

type remembered struct {
	*framework.Rejected
	// search is the number of the last search that used it.
	search int64
	// nominated are the nodes that were evaluated with nominated pods.
	nominated sets.String
}

// localSpec returns what local filters read of a pod, and its priority, which preemption reads.
func localSpec(pod *v1.Pod) *v1.PodSpec {
	from := &pod.Spec
	spec := &v1.PodSpec{NodeName: from.NodeName, NodeSelector: from.NodeSelector, Tolerations: from.Tolerations,
		Overhead: from.Overhead, Priority: from.Priority}
	if a := from.Affinity; a != nil && a.NodeAffinity != nil {
		required := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
	}
	local := func(containers []v1.Container) (of []v1.Container) {
		for i := range containers {
			of = append(of, v1.Container{
				Ports: containers[i].Ports, Resources: v1.ResourceRequirements{Requests: containers[i].Resources.Requests},
			})
		}
		return of
	}
	spec.Containers, spec.InitContainers = local(from.Containers), local(from.InitContainers)
	return spec
}

// kind returns the kind of the cycle's pod; empty if a filter that may reject a node is not local.
func (c *cycle) kind() string {
	for i := range c.filters {
		if c.filters[i].filter == nil || !localFilters.Has(c.filters[i].name) {
			return ""
		}
	}
	encoded, err := localSpec(c.pod).Marshal()
	if err != nil || len(encoded) > maxKind || c.framework.runAllFilters {
		return ""
	}
	return string(encoded)
}

// look compares the Generations of the snapshot's nodes with those of the last search.
func (m *memory) look(nodes []*framework.NodeInfo) {
	if len(m.generations) != len(nodes) {
		m.kinds, m.generations, m.changed = map[string]*remembered{}, make([]int64, len(nodes)), make([]int64, len(nodes))
	}
	m.search++
	for i, node := range nodes {
		if g := node.Generation; g != m.generations[i] || g == 0 {
			m.generations[i], m.changed[i] = g, m.search
		}
	}
}

// Recall returns the rejections of all nodes for the cycle's pod, and the indexes of the nodes that it has evaluated for
// this; or nil, if all nodes must be searched. The search begins at the index start.
func (c *cycle) Recall(ctx context.Context, state *framework.CycleState, nodes []*framework.NodeInfo, start int) (*framework.Rejected, []int) {
	m := &c.framework.memory
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.idle++; m.idle > maxIdle || len(m.kinds) == 0 {
		m.kinds, m.generations, m.changed = nil, nil, nil
		return nil, nil
	}
	kind := c.kind()
	known := m.kinds[kind]
	if known == nil {
		return nil, nil
	}
	m.look(nodes)
	if known = m.kinds[kind]; known == nil {
		return nil, nil
	}
	evaluated := c.toEvaluate(state, known, nodes, start)
	for _, i := range evaluated {
		status := c.framework.RunFilterPluginsWithNominatedPods(ctx, state, c.pod, nodes[i])
		if !status.IsUnschedulable() || !known.Set(i, status) {
			delete(m.kinds, kind)
			return nil, nil
		}
	}
	known.search, known.nominated, m.idle = m.search, sets.NewString(c.withNominated...), 0
	return known.Rejected, evaluated
}

// toEvaluate returns the indexes of the nodes whose rejections may no longer hold; and in a sampled cycle also those of
// nodes on which plugins are measured.
func (c *cycle) toEvaluate(state *framework.CycleState, known *remembered, nodes []*framework.NodeInfo, start int) []int {
	m, nominated, measured := &c.framework.memory, known.nominated, sets.String{}
	if nominator, ok := c.framework.PodNominator.(interface{ NominatedNodes() []string }); ok {
		nominated = nominated.Union(sets.NewString(nominator.NominatedNodes()...))
	}
	evaluated := []int{}
	for n := range nodes {
		i := (start + n) % len(nodes)
		measure := false
		if state.ShouldRecordPluginMetrics() {
			plugin := known.Status(i).FailedPlugin()
			measure = n < maxMeasured || !measured.Has(plugin)
			measured.Insert(plugin)
		}
		if m.changed[i] > known.search || measure || len(nominated) > 0 && nominated.Has(nodes[i].Node().Name) {
			evaluated = append(evaluated, i)
		}
	}
	return evaluated
}

// Remember keeps the rejections of all nodes for the cycle's pod, and reports whether it can.
func (c *cycle) Remember(rejected *framework.Rejected, nodes []*framework.NodeInfo) bool {
	kind := c.kind()
	if _, ok := c.framework.PodNominator.(interface{ NominatedNodes() []string }); kind == "" || !ok {
		return false
	}
	m := &c.framework.memory
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.look(nodes)
	if len(m.kinds) >= maxKinds {
		oldest := kind
		for other, known := range m.kinds {
			if oldest == kind || known.search < m.kinds[oldest].search {
				oldest = other
			}
		}
		delete(m.kinds, oldest)
	}
	m.kinds[kind] = &remembered{rejected, m.search, sets.NewString(c.withNominated...)}
	m.idle = 0
	return true
}

// compare evaluates these nodes again for all kinds, if their rejections were remembered for the same Generation.
func (m *memory) compare(f *frameworkImpl, nodes map[string]*framework.NodeInfo) []string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	index := make(map[int64]int, len(m.generations))
	for i, generation := range m.generations {
		index[generation] = i
	}
	var differs []string
	for kind, known := range m.kinds {
		filter, err := f.localFilter(kind)
		if err != nil {
			return append(differs, err.Error())
		}
		for name, node := range nodes {
			i, found := index[node.Generation]
			if !found || node.Node() == nil || m.changed[i] > known.search || known.nominated.Has(name) {
				continue
			}
			if now := filter(node); !framework.Same(now, known.Status(i)) {
				differs = append(differs, fmt.Sprintf("%s is remembered with %q, and now has %q", name, known.Status(i).Message(), now.Message()))
			}
			if known.Overlooks(i, node) {
				differs = append(differs, fmt.Sprintf("%s is remembered without pods of lower priority, and has some", name))
			}
		}
	}
	return differs
}

// localFilter returns a function that runs the local filters for a kind of pods.
func (f *frameworkImpl) localFilter(kind string) (func(*framework.NodeInfo) *framework.Status, error) {
	pod, state := &v1.Pod{}, framework.NewCycleState()
	if err := pod.Spec.Unmarshal([]byte(kind)); err != nil {
		return nil, err
	}
	for _, pl := range f.preFilterPlugins {
		if localFilters.Has(pl.Name()) {
			pl.PreFilter(context.TODO(), state, pod)
		}
	}
	var filters []func(*framework.NodeInfo) *framework.Status
	for _, pl := range f.filterPlugins {
		if preparing, ok := pl.(framework.PreparedFilterPlugin); ok && localFilters.Has(pl.Name()) {
			if filter := preparing.PrepareFilter(state, pod); filter != nil {
				filters = append(filters, filter)
			}
		}
	}
	return func(node *framework.NodeInfo) *framework.Status {
		for _, filter := range filters {
			if status := filter(node); !status.IsSuccess() {
				return status
			}
		}
		return nil
	}, nil
}
