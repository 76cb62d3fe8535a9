// SPDX-License-Identifier: Apache-2.0

package podtopologyspread

import (
	"context"
	"fmt"
	"math/rand"
	"sort"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/parallelize"
	plugintesting "k8s.io/kubernetes/pkg/scheduler/framework/plugins/testing"
	"k8s.io/kubernetes/pkg/scheduler/internal/cache"
	"k8s.io/kubernetes/pkg/scheduler/internal/podindex"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// The next three functions count like Kubernetes v1.23, node by node and without a cache. The plugin is compared with
// them.

func stockPreFilterState(
	pod *v1.Pod, constraints []topologySpreadConstraint, nodes []*framework.NodeInfo,
) *preFilterState {
	s := &preFilterState{
		Constraints:          constraints,
		TpKeyToCriticalPaths: make(map[string]*criticalPaths),
		TpPairToMatchNum:     make(map[topologyPair]*int32),
	}
	required := nodeaffinity.GetRequiredNodeAffinity(pod)
	for _, n := range nodes {
		node := n.Node()
		if match, _ := required.Match(node); !match || !nodeLabelsMatchSpreadConstraints(node.Labels, constraints) {
			continue
		}
		for _, c := range constraints {
			s.TpPairToMatchNum[topologyPair{key: c.TopologyKey, value: node.Labels[c.TopologyKey]}] = new(int32)
		}
	}
	for _, n := range nodes {
		for _, c := range constraints {
			pair := topologyPair{key: c.TopologyKey, value: n.Node().Labels[c.TopologyKey]}
			if count := s.TpPairToMatchNum[pair]; count != nil {
				*count += int32(countPodsMatchSelector(n.Pods, c.Selector, pod.Namespace))
			}
		}
	}
	for _, c := range constraints {
		s.TpKeyToCriticalPaths[c.TopologyKey] = newCriticalPaths()
	}
	for pair, num := range s.TpPairToMatchNum {
		s.TpKeyToCriticalPaths[pair.key].update(pair.value, *num)
	}
	return s
}

func stockPreScoreState(
	pod *v1.Pod, constraints []topologySpreadConstraint, nodes []*framework.NodeInfo, filtered []*v1.Node, all bool,
) *preScoreState {
	s := &preScoreState{
		Constraints:             constraints,
		IgnoredNodes:            sets.NewString(),
		TopologyPairToPodCounts: make(map[topologyPair]*int64),
	}
	if len(constraints) == 0 {
		return s
	}
	sizes := make([]int, len(constraints))
	for _, node := range filtered {
		if all && !nodeLabelsMatchSpreadConstraints(node.Labels, constraints) {
			s.IgnoredNodes.Insert(node.Name)
			continue
		}
		for i, c := range constraints {
			pair := topologyPair{key: c.TopologyKey, value: node.Labels[c.TopologyKey]}
			if c.TopologyKey != v1.LabelHostname && s.TopologyPairToPodCounts[pair] == nil {
				s.TopologyPairToPodCounts[pair] = new(int64)
				sizes[i]++
			}
		}
	}
	for i, c := range constraints {
		if c.TopologyKey == v1.LabelHostname {
			sizes[i] = len(filtered) - len(s.IgnoredNodes)
		}
		s.TopologyNormalizingWeight = append(s.TopologyNormalizingWeight, topologyNormalizingWeight(sizes[i]))
	}
	required := nodeaffinity.GetRequiredNodeAffinity(pod)
	for _, n := range nodes {
		node := n.Node()
		match, _ := required.Match(node)
		if !match || all && !nodeLabelsMatchSpreadConstraints(node.Labels, constraints) {
			continue
		}
		for _, c := range constraints {
			pair := topologyPair{key: c.TopologyKey, value: node.Labels[c.TopologyKey]}
			if count := s.TopologyPairToPodCounts[pair]; count != nil {
				*count += int64(countPodsMatchSelector(n.Pods, c.Selector, pod.Namespace))
			}
		}
	}
	return s
}

func stockScore(s *preScoreState, pod *v1.Pod, n *framework.NodeInfo) int64 {
	node := n.Node()
	if s.IgnoredNodes.Has(node.Name) {
		return 0
	}
	var score float64
	for i, c := range s.Constraints {
		if value, ok := node.Labels[c.TopologyKey]; ok {
			var count int64
			if c.TopologyKey == v1.LabelHostname {
				count = int64(countPodsMatchSelector(n.Pods, c.Selector, pod.Namespace))
			} else {
				count = *s.TopologyPairToPodCounts[topologyPair{key: c.TopologyKey, value: value}]
			}
			score += scoreForCount(count, c.MaxSkew, s.TopologyNormalizingWeight[i])
		}
	}
	return int64(score)
}

// randomCluster is a cluster whose nodes and pods change at random.
type randomCluster struct {
	*testing.T
	*rand.Rand
	cache    cache.Cache
	snapshot *cache.Snapshot
	nodes    []*v1.Node
	pods     []*v1.Pod
	made     int
	// most is the maximum number of nodes.
	most int
}

func newRandomCluster(t *testing.T, seed int64, most int) *randomCluster {
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	c := &randomCluster{
		T: t, Rand: rand.New(rand.NewSource(seed)),
		cache: cache.New(time.Hour, stop), snapshot: cache.NewEmptySnapshot(), most: most,
	}
	for i := 0; i < most; i++ {
		c.addNode()
	}
	for i := 0; i < 2*most; i++ {
		c.addPod()
	}
	c.update()
	return c
}

func (c *randomCluster) must(err error) {
	if err != nil {
		c.Helper()
		c.Fatal(err)
	}
}

func (c *randomCluster) update() { c.must(c.cache.UpdateSnapshot(c.snapshot)) }

// nodeLabels returns labels for a node. Some are missing, and some are empty.
func (c *randomCluster) nodeLabels(name string) map[string]string {
	set := map[string]string{}
	if c.Intn(10) > 0 {
		set[v1.LabelHostname] = name
	}
	if c.Intn(10) > 0 {
		set[v1.LabelTopologyZone] = fmt.Sprintf("zone-%d", c.Intn(4))
	}
	if n := c.Intn(6); n == 0 {
		set["rack"] = ""
	} else if n > 1 {
		set["rack"] = fmt.Sprintf("rack-%d", c.Intn(20))
	}
	if c.Intn(2) == 0 {
		set["disk"] = "ssd"
	}
	return set
}

func (c *randomCluster) addNode() {
	c.made++
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", c.made)}}
	node.Labels = c.nodeLabels(node.Name)
	c.nodes = append(c.nodes, node)
	c.cache.AddNode(node)
}

func (c *randomCluster) podLabels() map[string]string {
	set := map[string]string{"app": fmt.Sprintf("app-%d", c.Intn(4))}
	if c.Intn(2) == 0 {
		set["tier"] = fmt.Sprintf("tier-%d", c.Intn(3))
	}
	return set
}

func (c *randomCluster) newPod() *v1.Pod {
	c.made++
	pod := st.MakePod().Namespace(fmt.Sprintf("namespace-%d", c.Intn(2))).
		Name(fmt.Sprintf("pod-%d", c.made)).UID(fmt.Sprintf("pod-%d", c.made)).Obj()
	pod.Labels = c.podLabels()
	if c.Intn(10) == 0 {
		pod.DeletionTimestamp = &metav1.Time{}
	}
	return pod
}

func (c *randomCluster) addPod() {
	pod := c.newPod()
	pod.Spec.NodeName = c.nodes[c.Intn(len(c.nodes))].Name
	c.pods = append(c.pods, pod)
	c.must(c.cache.AddPod(pod))
}

// change makes one random change.
func (c *randomCluster) change() {
	node, pod := c.Intn(len(c.nodes)), c.Intn(len(c.pods))
	switch c.Intn(8) {
	case 0:
		if len(c.nodes) < c.most {
			c.addNode()
		}
	case 1:
		if len(c.nodes) > 1 {
			c.must(c.cache.RemoveNode(c.nodes[node]))
			c.nodes = append(c.nodes[:node], c.nodes[node+1:]...)
		}
	case 2:
		changed := c.nodes[node].DeepCopy()
		changed.Labels = c.nodeLabels(changed.Name)
		c.cache.UpdateNode(c.nodes[node], changed)
		c.nodes[node] = changed
	case 3, 4:
		c.addPod()
	case 5, 6:
		if len(c.pods) > 1 {
			c.must(c.cache.RemovePod(c.pods[pod]))
			c.pods = append(c.pods[:pod], c.pods[pod+1:]...)
		}
	default:
		changed := c.pods[pod].DeepCopy()
		changed.Labels = c.podLabels()
		c.must(c.cache.UpdatePod(c.pods[pod], changed))
		c.pods[pod] = changed
	}
}

func (c *randomCluster) selector() *metav1.LabelSelector {
	one := st.MakeLabelSelector()
	switch c.Intn(8) {
	case 0:
		return nil
	case 1:
		return one.Obj()
	case 2:
		return one.Exists("tier").Obj()
	case 3:
		return one.NotIn("app", []string{fmt.Sprintf("app-%d", c.Intn(4)), fmt.Sprintf("app-%d", c.Intn(100))}).Obj()
	case 4:
		return one.In("app", []string{fmt.Sprintf("app-%d", c.Intn(4)), fmt.Sprintf("app-%d", c.Intn(100))}).Obj()
	}
	return one.Label("app", fmt.Sprintf("app-%d", c.Intn(4))).Obj()
}

// podToSchedule returns a pod with constraints of both kinds, possibly several with one key.
func (c *randomCluster) podToSchedule() *v1.Pod {
	pod := c.newPod()
	pod.DeletionTimestamp = nil
	keys := []string{v1.LabelHostname, v1.LabelTopologyZone, "rack", "disk"}
	actions := []v1.UnsatisfiableConstraintAction{v1.DoNotSchedule, v1.ScheduleAnyway}
	for i := c.Intn(6); i > 0; i-- {
		pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, v1.TopologySpreadConstraint{
			MaxSkew: int32(1 + c.Intn(5)), TopologyKey: keys[c.Intn(len(keys))],
			WhenUnsatisfiable: actions[c.Intn(2)], LabelSelector: c.selector(),
		})
	}
	switch c.Intn(6) {
	case 0:
		pod.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	case 1:
		zones := []string{"zone-0", "zone-1"}
		pod.Spec.Affinity = st.MakePod().NodeAffinityIn(v1.LabelTopologyZone, zones).Obj().Spec.Affinity
	}
	return pod
}

func TestCountsEqualStock(t *testing.T) {
	service := func(app string) *v1.Service {
		return &v1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "namespace-0", Name: app},
			Spec:       v1.ServiceSpec{Selector: map[string]string{"app": app}},
		}
	}
	lists := map[string]*config.PodTopologySpreadArgs{
		"system": {DefaultingType: config.SystemDefaulting},
		"list": {DefaultingType: config.ListDefaulting, DefaultConstraints: []v1.TopologySpreadConstraint{
			{MaxSkew: 2, TopologyKey: "rack", WhenUnsatisfiable: v1.ScheduleAnyway},
			{MaxSkew: 1, TopologyKey: v1.LabelTopologyZone, WhenUnsatisfiable: v1.DoNotSchedule},
		}},
	}
	for name, args := range lists {
		for _, size := range []int{3, 25, 200} {
			for _, workers := range []int{1, 16} {
				args, size, workers := args, size, workers
				t.Run(fmt.Sprintf("%s/nodes=%d/workers=%d", name, size, workers), func(t *testing.T) {
					c := newRandomCluster(t, int64(size), size)
					pl := plugintesting.SetupPluginWithInformers(context.Background(), t, New, args, c.snapshot,
						[]runtime.Object{service("app-0"), service("app-1")}).(*PodTopologySpread)
					pl.parallelizer = parallelize.NewParallelizer(workers)
					for i := 0; i < 400; i++ {
						for n := c.Intn(6); n > 0; n-- {
							c.change()
						}
						c.update()
						pod := c.podToSchedule()
						c.compareFilter(pl, pod)
						c.compareScore(pl, pod)
						if t.Failed() {
							t.Fatalf("in cycle %d, with the constraints %v", i, pod.Spec.TopologySpreadConstraints)
						}
					}
				})
			}
		}
	}
}

// constraints returns the constraints of the pod, or the default ones.
func (c *randomCluster) constraints(
	pl *PodTopologySpread, pod *v1.Pod, action v1.UnsatisfiableConstraintAction,
) []topologySpreadConstraint {
	constraints, err := filterTopologySpreadConstraints(pod.Spec.TopologySpreadConstraints, action)
	if len(pod.Spec.TopologySpreadConstraints) == 0 {
		constraints, err = pl.buildDefaultConstraints(pod, action)
	}
	c.must(err)
	return constraints
}

func (c *randomCluster) compareFilter(pl *PodTopologySpread, pod *v1.Pod) {
	ctx := context.Background()
	nodes, err := c.snapshot.List()
	c.must(err)
	state := framework.NewCycleState()
	c.must(pl.PreFilter(ctx, state, pod).AsError())

	if differs := pl.CompareCache(c.cache.Dump().Nodes); len(differs) > 0 {
		c.Errorf("the index differs: %q", differs)
	}
	constraints := c.constraints(pl, pod, v1.DoNotSchedule)
	// An index is not dropped when nodes are removed.
	if hard := getHardSpread(state); hard == nil && len(constraints) > 0 && len(nodes) >= podindex.MinNodes {
		c.Errorf("PreFilter did not use the index, with %d constraints and %d nodes", len(constraints), len(nodes))
	}
	prepared := pl.PrepareFilter(state, pod)
	if (prepared == nil) != (len(constraints) == 0) {
		c.Errorf("PrepareFilter returned a function: %t, with %d constraints", prepared != nil, len(constraints))
	}
	if len(constraints) == 0 {
		for _, node := range nodes {
			if status := pl.Filter(ctx, state, pod, node); !status.IsSuccess() {
				c.Errorf("Filter(%s) = %v without constraints", node.Node().Name, status)
			}
		}
		return
	}
	want := stockPreFilterState(pod, constraints, nodes)
	stock := framework.NewCycleState()
	stock.Write(preFilterStateKey, want)
	c.compareStates(want, state, false)
	for _, node := range nodes {
		want := pl.Filter(ctx, stock, pod, node)
		if got := pl.Filter(ctx, state, pod, node); !want.Equal(got) {
			c.Errorf("Filter(%s) = %v, want %v", node.Node().Name, got, want)
		}
		got := prepared(node)
		if !want.Equal(got) {
			c.Errorf("prepared filter(%s) = %v, want %v", node.Node().Name, got, want)
		}
		if !got.IsSuccess() && got.FailedPlugin() != Name {
			c.Errorf("prepared filter(%s) failed by %q, want %q", node.Node().Name, got.FailedPlugin(), Name)
		}
	}

	// Pods are removed and added, as when preemption looks for victims.
	clone, stockClone := state.Clone(), stock.Clone()
	node := nodes[c.Intn(len(nodes))]
	for _, podInfo := range node.Pods {
		c.must(pl.RemovePod(ctx, clone, pod, podInfo, node).AsError())
		c.must(updateStock(stockClone, pod, podInfo.Pod, node, -1))
	}
	for i := 0; i < 3; i++ {
		added := framework.NewPodInfo(c.newPod())
		c.must(pl.AddPod(ctx, clone, pod, added, node).AsError())
		c.must(updateStock(stockClone, pod, added.Pod, node, 1))
	}
	changed, err := getPreFilterState(stockClone)
	c.must(err)
	c.compareStates(changed, clone, true)
	for _, node := range nodes {
		if want, got := pl.Filter(ctx, stockClone, pod, node), pl.Filter(ctx, clone, pod, node); !want.Equal(got) {
			c.Errorf("with other pods, Filter(%s) = %v, want %v", node.Node().Name, got, want)
		}
	}
	// The cloned state is unchanged.
	c.compareStates(want, state, false)
}

// updateStock removes or adds a pod.
func updateStock(
	state *framework.CycleState, podToSchedule, pod *v1.Pod, node *framework.NodeInfo, delta int32,
) error {
	s, err := getPreFilterState(state)
	if err == nil {
		s.updateWithPod(pod, podToSchedule, node.Node(), delta)
	}
	return err
}

// preFilterState returns an equivalent state.
func (s *hardSpread) preFilterState() *preFilterState {
	state := &preFilterState{
		Constraints:          s.constraints,
		TpKeyToCriticalPaths: make(map[string]*criticalPaths),
		TpPairToMatchNum:     make(map[topologyPair]*int32),
	}
	for i, d := range s.domains {
		key, paths := s.constraints[i].TopologyKey, newCriticalPaths()
		state.TpKeyToCriticalPaths[key] = paths
		for number := range d.pods {
			if d.pods[number] != uncounted {
				state.TpPairToMatchNum[topologyPair{key: key, value: d.Names[number]}] = &d.pods[number]
			}
		}
		for j, path := range d.critical {
			if path.value != podindex.NoValue {
				paths[j].TopologyValue, paths[j].MatchNum = d.Names[path.value], path.pods
			}
		}
	}
	return state
}

func (c *randomCluster) compareStates(want *preFilterState, state *framework.CycleState, changed bool) {
	c.Helper()
	var got *preFilterState
	if hard := getHardSpread(state); hard != nil {
		got = hard.preFilterState()
	} else {
		var err error
		got, err = getPreFilterState(state)
		c.must(err)
	}
	// The choice of a critical path among domains with equally few pods is random, and so is the second number after
	// an update.
	fewest := cmp.Comparer(func(a, b *criticalPaths) bool {
		return a[0].MatchNum == b[0].MatchNum && (changed || a[1].MatchNum == b[1].MatchNum)
	})
	selectors := cmp.Comparer(func(a, b labels.Selector) bool {
		return a.String() == b.String() && a.Empty() == b.Empty()
	})
	if diff := cmp.Diff(want, got, fewest, selectors); diff != "" {
		c.Errorf("the state of PreFilter differs from stock's (-want, +got):\n%s", diff)
	}
}

func (c *randomCluster) compareScore(pl *PodTopologySpread, pod *v1.Pod) {
	ctx := context.Background()
	nodes, err := c.snapshot.List()
	c.must(err)
	var filtered []*v1.Node
	var infos []*framework.NodeInfo
	place := make(map[*framework.NodeInfo]int)
	for i, node := range nodes {
		place[node] = i
	}
	for _, i := range c.Perm(len(nodes))[:1+c.Intn(len(nodes))] {
		filtered, infos = append(filtered, nodes[i].Node()), append(infos, nodes[i])
	}
	other := c.Intn(4)
	switch other {
	case 0:
		// An extender returned another object. Its labels count here, but not in the scores.
		filtered[0] = filtered[0].DeepCopy()
		filtered[0].Labels = c.nodeLabels(filtered[0].Name)
	case 1:
		sort.Slice(infos, func(i, j int) bool { return place[infos[i]] < place[infos[j]] })
		for i := range infos {
			filtered[i] = infos[i].Node()
		}
	}
	all := len(pod.Spec.TopologySpreadConstraints) > 0 || !pl.systemDefaulted
	want := stockPreScoreState(pod, c.constraints(pl, pod, v1.ScheduleAnyway), nodes, filtered, all)

	state := framework.NewCycleState()
	c.must(pl.PreScore(ctx, state, pod, filtered).AsError())
	got, err := getPreScoreState(state)
	c.must(err)
	if diff := cmp.Diff(want, got, cmpOpts...); diff != "" {
		c.Errorf("the state of PreScore differs from stock's (-want, +got):\n%s", diff)
		return
	}
	data, _ := state.Read(preScoreStateKey)
	if _, ok := data.(*softSpread); ok != (len(want.Constraints) > 0 && other != 0) && len(nodes) >= podindex.MinNodes {
		c.Errorf("PreScore found the scores: %t; %d constraints, another object: %t",
			ok, len(want.Constraints), other == 0)
	}
	if other == 0 {
		infos = infos[1:]
		if len(infos) == 0 {
			return
		}
	}
	scores := make(framework.NodeScoreList, len(infos))
	for i, node := range infos {
		scores[i] = framework.NodeScore{Name: node.Node().Name, Score: -1}
	}
	half := len(infos) / 2
	c.must(pl.ScoreNodes(state, pod, infos[:half], scores[:half]).AsError())
	c.must(pl.ScoreNodes(state, pod, infos[half:], scores[half:]).AsError())
	for i, node := range infos {
		want := stockScore(want, pod, node)
		one, status := pl.Score(ctx, state, pod, node.Node().Name)
		c.must(status.AsError())
		if scores[i].Score != want || one != want {
			c.Errorf("ScoreNodes(%s) = %d, Score = %d, want %d", node.Node().Name, scores[i].Score, one, want)
		}
	}
}

// TestStateIsImmutable checks that later cycles do not change the state of an earlier one.
func TestStateIsImmutable(t *testing.T) {
	c := newRandomCluster(t, 1, 20)
	args := &config.PodTopologySpreadArgs{DefaultingType: config.ListDefaulting}
	pl := plugintesting.SetupPlugin(t, New, args, c.snapshot).(*PodTopologySpread)
	pod := c.newPod()
	for _, key := range []string{v1.LabelHostname, "rack"} {
		pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, v1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{},
		})
	}
	constraints := c.constraints(pl, pod, v1.DoNotSchedule)
	for i := 0; i < 50; i++ {
		nodes, err := c.snapshot.List()
		c.must(err)
		want, stock := stockPreFilterState(pod, constraints, nodes), framework.NewCycleState()
		stock.Write(preFilterStateKey, want)
		state := framework.NewCycleState()
		c.must(pl.PreFilter(context.Background(), state, pod).AsError())
		for n := 0; n < 10; n++ {
			c.change()
		}
		c.update()
		c.must(pl.PreFilter(context.Background(), framework.NewCycleState(), pod).AsError())
		c.compareStates(want, state, false)
		nodes, err = c.snapshot.List()
		c.must(err)
		for _, node := range nodes {
			want := pl.Filter(context.Background(), stock, pod, node)
			got := pl.Filter(context.Background(), state, pod, node)
			if !want.Equal(got) {
				c.Errorf("Filter(%s) = %v after other cycles, want %v", node.Node().Name, got, want)
			}
		}
	}
}
