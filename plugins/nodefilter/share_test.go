// SPDX-License-Identifier: Apache-2.0

package nodefilter

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/whatif"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	internalcache "k8s.io/kubernetes/pkg/scheduler/internal/cache"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/pointer"
)

func TestShareAdmits(t *testing.T) {
	tests := []struct {
		name        string
		least, most int64
		now         standing
		// inside and outside say whether one more pod may go to a node of the rule, and to another one.
		inside, outside bool
	}{
		// At most 30 %.
		{"1 pod: 30 % of it are 0", 0, 30, standing{pods: 0, inside: 0}, false, true},
		{"4 pods: 1.2 are 1", 0, 30, standing{pods: 3, inside: 0}, true, true},
		{"10 pods: 3, which are there", 0, 30, standing{pods: 9, inside: 3}, false, true},
		{"too many are there, since others are gone", 0, 30, standing{pods: 4, inside: 3}, false, true},
		// At least 70 %: at most 30 % are outside.
		{"1 pod: 0.7 are 1", 70, 100, standing{pods: 0, inside: 0}, true, false},
		{"10 pods: 7, and 6 are there", 70, 100, standing{pods: 9, inside: 6}, true, false},
		{"10 pods: 7, which are there", 70, 100, standing{pods: 9, inside: 7}, true, true},
		{"all are outside, since others are gone", 70, 100, standing{pods: 5, inside: 0}, true, false},
		// Both.
		{"30 % to 60 % of 1 pod is no whole number: 0.6 are 0, and no more are asked for", 30, 60, standing{pods: 0, inside: 0}, false, true},
		{"2 pods: 1.2 are 1, and 0.6 are 1", 30, 60, standing{pods: 1, inside: 0}, true, false},
		{"10 pods: 3 to 6, and 2 are there", 30, 60, standing{pods: 9, inside: 2}, true, false},
		{"10 pods: 3 to 6, and 6 are there", 30, 60, standing{pods: 9, inside: 6}, false, true},
		{"half of 3 pods: 1.5 are 1, not 2", 50, 50, standing{pods: 2, inside: 1}, false, true},
		// What is none.
		{"at most nothing", 0, 0, standing{pods: 1000, inside: 0}, false, true},
		{"at least all", 100, 100, standing{pods: 1000, inside: 1000}, true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := share{least: tt.least, most: tt.most}
			if inside, outside := s.admits(tt.now, true), s.admits(tt.now, false); inside != tt.inside || outside != tt.outside {
				t.Errorf("inside %t, outside %t; want %t, %t", inside, outside, tt.inside, tt.outside)
			}
		})
	}
}

// TestShareAlwaysAdmitsOneSide: whatever the bounds and the standing, one kind of nodes is open.
func TestShareAlwaysAdmitsOneSide(t *testing.T) {
	for least := int64(0); least <= 100; least++ {
		for most := least; most <= 100; most++ {
			s := share{least: least, most: most}
			for pods := int64(0); pods < 12; pods++ {
				for inside := int64(0); inside <= pods; inside++ {
					if now := (standing{pods: pods, inside: inside}); !s.admits(now, true) && !s.admits(now, false) {
						t.Fatalf("%d to %d %%, and %d of %d pods inside: no place for one more", least, most, inside, pods)
					}
				}
			}
		}
	}
}

// spotShare bounds the share of the pods app=web of the namespace default that is on nodes with spot=true.
func spotShare(least, most int32) config.NodeFilterRule {
	return config.NodeFilterRule{
		Name: "spot-share", Action: config.FilterShare, NodeSelector: labelled("spot", "true"), Namespaces: []string{"default"},
		PodSelector: labelled("app", "web"), MinPercent: pointer.Int32(least), MaxPercent: pointer.Int32(most),
		WhenUnsatisfiable: v1.DoNotSchedule,
	}
}

func web(name string) *v1.Pod {
	return st.MakePod().Namespace("default").Name(name).UID(name).Label("app", "web").Obj()
}

func spot(name string) *v1.Node     { return st.MakeNode().Name(name).Label("spot", "true").Obj() }
func onDemand(name string) *v1.Node { return st.MakeNode().Name(name).Label("spot", "false").Obj() }

// at puts copies of pods on a node.
func at(node string, pods ...*v1.Pod) []*v1.Pod {
	var placed []*v1.Pod
	for _, pod := range pods {
		pod = pod.DeepCopy()
		pod.Spec.NodeName = node
		placed = append(placed, pod)
	}
	return placed
}

// of gives a pod a controlling owner, or none.
func of(owner types.UID, pod *v1.Pod) *v1.Pod {
	if owner != "" {
		pod.OwnerReferences = []metav1.OwnerReference{{UID: "other"}, {UID: owner, Controller: pointer.Bool(true)}}
	}
	return pod
}

func webs(prefix string, count int) []*v1.Pod {
	var pods []*v1.Pod
	for i := 0; i < count; i++ {
		pods = append(pods, web(fmt.Sprintf("%s-%d", prefix, i)))
	}
	return pods
}

// newFramework returns a profile with the plugin at all of its points.
func newFramework(t testing.TB, snapshot framework.SharedLister, rules ...config.NodeFilterRule) *plugintest.Profile {
	t.Helper()
	return plugintest.NewProfile(t, plugintest.Options{
		Plugin: Name, New: New, Args: &config.NodeFilterArgs{Rules: rules, DefaultAction: config.FilterAllow}, Lister: snapshot,
	})
}

// filter begins a cycle, and returns the message for each node; empty if it passes.
func filter(t testing.TB, f *plugintest.Profile, state *framework.CycleState, pod *v1.Pod) map[string]string {
	t.Helper()
	said := map[string]string{}
	for node, status := range f.Filter(t, state, pod) {
		if !status.IsSuccess() && status.Code() != framework.Unschedulable && !strings.Contains(status.Message(), "denied by rule") {
			t.Errorf("%s: %v", node, status.Code())
		}
		said[node] = status.Message()
	}
	return said
}

const (
	full  = `node(s) had the most pods that rule "spot-share" of NodeFilter allows them`
	short = `node(s) were outside rule "spot-share" of NodeFilter, whose nodes had too few pods`
)

func TestFilterByShare(t *testing.T) {
	nodes := []*v1.Node{spot("spot-1"), spot("spot-2"), onDemand("on-demand")}
	all := func(spot, onDemand string) map[string]string {
		return map[string]string{"spot-1": spot, "spot-2": spot, "on-demand": onDemand}
	}
	deleted := web("deleted")
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	other := st.MakePod().Namespace("default").Name("other").UID("other").Label("app", "database").Obj()
	elsewhere := st.MakePod().Namespace("else").Name("elsewhere").UID("elsewhere").Label("app", "web").Obj()
	join := func(of ...[]*v1.Pod) (pods []*v1.Pod) {
		for _, some := range of {
			pods = append(pods, some...)
		}
		return pods
	}
	owned := join(at("spot-1", of("a", web("a")), of("a", web("b"))), at("on-demand", of("b", web("c")), of("b", web("d"))))
	nine := join(at("spot-1", webs("a", 2)...), at("spot-2", webs("b", 1)...), at("on-demand", webs("c", 6)...))
	tests := []struct {
		name  string
		rules []config.NodeFilterRule
		pods  []*v1.Pod
		pod   *v1.Pod
		want  map[string]string
	}{
		{"10 pods, 3 on spot nodes of at most 30 %", []config.NodeFilterRule{spotShare(0, 30)}, nine, web("new"), all(full, "")},
		{"10 pods, 3 on spot nodes of at most 40 %", []config.NodeFilterRule{spotShare(0, 40)}, nine, web("new"), all("", "")},
		{"10 pods, 3 on spot nodes of at least 40 %", []config.NodeFilterRule{spotShare(40, 100)}, nine, web("new"), all("", short)},
		{"a pod that no rule concerns", []config.NodeFilterRule{spotShare(0, 30)}, nine, other, all("", "")},
		{"a pod of another namespace", []config.NodeFilterRule{spotShare(0, 30)}, nine, elsewhere, all("", "")},
		{
			"pods that are deleted, and others, do not count", []config.NodeFilterRule{spotShare(0, 50)},
			join(at("spot-1", deleted, other, elsewhere), at("on-demand", web("a"))), web("new"), all("", ""),
		},
		{"half of the pods of owner a, which are on spot nodes", []config.NodeFilterRule{spotShare(50, 50)}, owned, of("a", web("new")), all(full, "")},
		{"half of the pods of owner b, which are elsewhere", []config.NodeFilterRule{spotShare(50, 50)}, owned, of("b", web("new")), all("", short)},
		{"half of the pods of a new owner", []config.NodeFilterRule{spotShare(50, 50)}, owned, of("c", web("new")), all(full, "")},
		{"half of the pods without an owner", []config.NodeFilterRule{spotShare(50, 50)}, join(owned, at("on-demand", web("e"))), web("new"), all("", short)},
		{
			"an Allow before it", []config.NodeFilterRule{
				{Name: "allow", Action: config.FilterAllow, NodeNames: []string{"spot-2"}}, spotShare(0, 30),
			}, nine, web("new"), map[string]string{"spot-1": full, "spot-2": "", "on-demand": ""},
		},
		{
			"an Allow after it comes too late", []config.NodeFilterRule{
				spotShare(0, 30), {Name: "allow", Action: config.FilterAllow, NodeNames: []string{"spot-2"}},
			}, nine, web("new"), all(full, ""),
		},
		{
			"two shares, and the first that denies", []config.NodeFilterRule{
				{Name: "other", Action: config.FilterShare, NodeNames: []string{"spot-1"}, MaxPercent: pointer.Int32(50), WhenUnsatisfiable: v1.DoNotSchedule}, spotShare(0, 30),
			}, nine, web("new"), all(full, ""),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFramework(t, internalcache.NewSnapshot(tt.pods, nodes), tt.rules...)
			if got := filter(t, f, framework.NewCycleState(), tt.pod); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %q\nwant %q", got, tt.want)
			}
		})
	}
}

// TestAShareDoesNotWaitForClosedNodes has 6 of 10 pods on the spot node, at least 80 % of which must be there, or 2 of
// 10, of which at most 10 % may be there.
func TestAShareDoesNotWaitForClosedNodes(t *testing.T) {
	taint := v1.Taint{Key: "for", Value: "others", Effect: v1.TaintEffectNoSchedule}
	tolerating := web("new")
	tolerating.Spec.Tolerations = []v1.Toleration{{Key: "for", Operator: v1.TolerationOpExists}}
	selecting := web("new")
	selecting.Spec.NodeSelector = map[string]string{"spot": "false"}
	condition := func(kind v1.NodeConditionType, status v1.ConditionStatus) func(*v1.Node) {
		return func(node *v1.Node) { node.Status.Conditions = []v1.NodeCondition{{Type: kind, Status: status}} }
	}
	deny := config.NodeFilterRule{Name: "deny", Action: config.FilterDeny, NodeNames: []string{"wanted"}}
	tests := []struct {
		name   string
		change func(*v1.Node)
		pod    *v1.Pod
		rules  []config.NodeFilterRule
		waits  bool
	}{
		{"an open node", func(*v1.Node) {}, web("new"), nil, true},
		{"a ready node", condition(v1.NodeReady, v1.ConditionTrue), web("new"), nil, true},
		{"a node with another condition", condition(v1.NodeMemoryPressure, v1.ConditionFalse), web("new"), nil, true},
		{"a node that is not ready", condition(v1.NodeReady, v1.ConditionFalse), web("new"), nil, false},
		{"a cordoned node", func(node *v1.Node) { node.Spec.Unschedulable = true }, web("new"), nil, false},
		{"a node that is being deleted", func(node *v1.Node) { node.DeletionTimestamp = &metav1.Time{} }, web("new"), nil, false},
		{"a tainted node", func(node *v1.Node) { node.Spec.Taints = []v1.Taint{taint} }, web("new"), nil, false},
		{"a tolerated taint", func(node *v1.Node) { node.Spec.Taints = []v1.Taint{taint} }, tolerating, nil, true},
		{"a taint that only repels", func(node *v1.Node) {
			node.Spec.Taints = []v1.Taint{{Key: "for", Effect: v1.TaintEffectPreferNoSchedule}}
		}, web("new"), nil, true},
		{"a node that another rule denies", func(*v1.Node) {}, web("new"), []config.NodeFilterRule{deny}, false},
		{"a pod that selects the others cannot override the share", func(*v1.Node) {}, selecting, nil, true},
		{"no node", nil, web("new"), nil, false},
	}
	for _, tt := range tests {
		for _, side := range []struct {
			name           string
			wanted, other  *v1.Node
			share          config.NodeFilterRule
			inside, others int
			reason         string
		}{
			{"the share wants spot nodes", spot("wanted"), onDemand("other"), spotShare(80, 100), 6, 4, short},
			{"the share wants other nodes", onDemand("wanted"), spot("other"), spotShare(0, 10), 8, 2, full},
		} {
			t.Run(tt.name+", "+side.name, func(t *testing.T) {
				nodes := []*v1.Node{side.other}
				pods := at("other", webs("other", side.others)...)
				if tt.change != nil {
					tt.change(side.wanted)
					nodes, pods = append(nodes, side.wanted), append(pods, at("wanted", webs("wanted", side.inside)...)...)
				}
				f := newFramework(t, internalcache.NewSnapshot(pods, nodes), append([]config.NodeFilterRule{side.share}, tt.rules...)...)
				want, state := "", framework.NewCycleState()
				if tt.waits {
					want = side.reason
				}
				if got := filter(t, f, state, tt.pod)["other"]; got != want {
					t.Errorf("the other node: got %q, want %q", got, want)
				}
				if got := f.Plugin.(*NodeFilter).Explain(state, tt.pod, nil); strings.Contains(got, "allowed") != !tt.waits {
					t.Errorf("got %q", got)
				}
			})
		}
	}
}

// TestFilterContinuesAfterAShare: a share that rejects nothing leaves the node to the rules after it.
func TestFilterContinuesAfterAShare(t *testing.T) {
	plugin := mustNew(t, "after", &config.NodeFilterArgs{DefaultAction: config.FilterAllow, Rules: []config.NodeFilterRule{
		spotShare(0, 100), {Name: "deny", Action: config.FilterDeny, NodeNames: []string{"spot-*"}},
	}})
	plugin.handle = plugintest.Handle(t, "profile", frameworkruntime.WithSnapshotSharedLister(internalcache.NewSnapshot(nil, []*v1.Node{spot("spot-1")})))
	state := framework.NewCycleState()
	plugin.PreFilter(context.Background(), state, web("new"))
	status := plugin.Filter(context.Background(), state, web("new"), plugintest.NodeInfo(spot("spot-1")))
	if status.Code() != framework.UnschedulableAndUnresolvable || status.Message() != `node(s) were denied by rule "deny" of NodeFilter` {
		t.Errorf("got %v %q", status.Code(), status.Message())
	}
}

func TestFilterAfterAddPodAndRemovePod(t *testing.T) {
	nodes := []*v1.Node{spot("spot-1"), onDemand("on-demand")}
	pods := append(at("spot-1", webs("a", 3)...), at("on-demand", webs("b", 6)...)...)
	f := newFramework(t, internalcache.NewSnapshot(pods, nodes), spotShare(0, 30))
	ctx, state, pod := context.Background(), framework.NewCycleState(), web("new")
	if got := filter(t, f, state, pod)["spot-1"]; got != full {
		t.Fatalf("got %q", got)
	}
	simulated, copied := state.Clone(), f.Node(t, "spot-1").Clone()
	verdict := func(state *framework.CycleState) string {
		return f.RunFilterPlugins(ctx, state, pod, copied).Merge().Message()
	}
	victim := framework.NewPodInfo(pods[0])
	if err := copied.RemovePod(victim.Pod); err != nil {
		t.Fatal(err)
	}
	f.RunPreFilterExtensionRemovePod(ctx, simulated, pod, victim, copied)
	// 2 of 8 are left; with the pod 3 of 9, of which 30 % are 2.
	if got := verdict(simulated); got != full {
		t.Errorf("with 2 of 8 pods on spot nodes: %q", got)
	}
	second := framework.NewPodInfo(pods[1])
	f.RunPreFilterExtensionRemovePod(ctx, simulated, pod, second, copied)
	// 1 of 7; with the pod 2 of 8, of which 30 % are 2.
	if got := verdict(simulated); got != "" {
		t.Errorf("with 1 of 7 pods on spot nodes: %q", got)
	}
	if got := verdict(state); got != full {
		t.Errorf("the cycle's own state has changed: %q", got)
	}
	f.RunPreFilterExtensionAddPod(ctx, simulated, pod, second, copied)
	if got := verdict(simulated); got != full {
		t.Errorf("with one victim put back: %q", got)
	}
}

// TestPopulation changes nodes and pods at random, and counts again.
func TestPopulation(t *testing.T) {
	rules := []config.NodeFilterRule{
		spotShare(0, 30), {
			Name: "by-name", Action: config.FilterShare, WhenUnsatisfiable: v1.DoNotSchedule, NodeNames: []string{"node-[0-4]"}, MinPercent: pointer.Int32(10),
		},
	}
	for seed := int64(1); seed <= 20; seed++ {
		plugin := mustNew(t, "population", &config.NodeFilterArgs{DefaultAction: config.FilterAllow, Rules: rules})
		random := rand.New(rand.NewSource(seed))
		nodes, placed := map[string]*v1.Node{}, map[string]*v1.Pod{}
		for step := 0; step < 100; step++ {
			for n := random.Intn(4); n > 0; n-- {
				name := fmt.Sprintf("node-%d", random.Intn(8))
				pod := fmt.Sprintf("pod-%d", random.Intn(40))
				switch random.Intn(8) {
				case 0:
					delete(nodes, name)
				case 1, 2:
					nodes[name] = st.MakeNode().Name(name).Label("spot", fmt.Sprint(random.Intn(2) == 0)).Obj()
				case 3:
					delete(placed, pod)
				case 4:
					// Its labels change, or it is being deleted.
					if old := placed[pod]; old != nil {
						changed := old.DeepCopy()
						changed.Labels["app"] = []string{"web", "database"}[random.Intn(2)]
						if random.Intn(2) == 0 {
							changed.DeletionTimestamp = &metav1.Time{}
						}
						placed[pod] = changed
					}
				default:
					placed[pod] = at(name, of([]types.UID{"", "a", "b"}[random.Intn(3)], web(pod)))[0]
				}
			}
			snapshot := &settled{}
			want := []map[types.UID]standing{{}, {}}
			count := func(share int, pod *v1.Pod, inside bool) {
				now := want[share][ownerOf(pod)]
				now.count(1, inside)
				want[share][ownerOf(pod)] = now
			}
			for _, node := range nodes {
				info := plugintest.NodeInfo(node)
				for _, pod := range placed {
					if pod.Spec.NodeName != node.Name {
						continue
					}
					info.AddPod(pod)
					if pod.DeletionTimestamp != nil {
						continue
					}
					count(1, pod, strings.Contains("node-0 node-1 node-2 node-3 node-4", node.Name))
					if pod.Labels["app"] == "web" {
						count(0, pod, node.Labels["spot"] == "true")
					}
				}
				snapshot.all = append(snapshot.all, info)
			}
			_, err := plugin.population.follow(snapshot, true)
			if got := plugin.population.standings; err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, step %d: got %v, %v; want %v", seed, step, got, err, want)
			}
			if kept := len(plugin.population.nodes); kept != len(nodes) {
				t.Fatalf("seed %d, step %d: %d nodes are kept of %d", seed, step, kept, len(nodes))
			}
		}
	}
}

// settled is a snapshot of some nodes.
type settled struct {
	framework.SharedLister
	framework.NodeInfoLister
	all []*framework.NodeInfo
	err error
}

func (s *settled) NodeInfos() framework.NodeInfoLister  { return s }
func (s *settled) List() ([]*framework.NodeInfo, error) { return s.all, s.err }
func (s *settled) Get(name string) (*framework.NodeInfo, error) {
	for _, info := range s.all {
		if info.Node().Name == name {
			return info, nil
		}
	}
	return nil, errors.New(name)
}

func TestFilterByShareWithoutPreFilter(t *testing.T) {
	args := &config.NodeFilterArgs{DefaultAction: config.FilterAllow, Rules: []config.NodeFilterRule{spotShare(0, 30)}}
	plugin, pod := mustNew(t, "unknown", args), web("new")
	plugin.handle = plugintest.Handle(t, "profile", frameworkruntime.WithSnapshotSharedLister(&settled{err: errors.New("no list")}))
	if status := plugin.PreFilter(context.Background(), framework.NewCycleState(), pod); status.Code() != framework.Error {
		t.Errorf("the snapshot cannot be read: %v", status)
	}
	status := plugin.Filter(context.Background(), framework.NewCycleState(), pod, plugintest.NodeInfo(spot("spot-1")))
	if status.Code() != framework.Error || !strings.Contains(status.Message(), "preFilter") {
		t.Errorf("PreFilter was not called: %v", status)
	}
}

func TestEventsToRegisterOfShares(t *testing.T) {
	args := &config.NodeFilterArgs{DefaultAction: config.FilterAllow, Rules: []config.NodeFilterRule{spotShare(0, 30)}}
	plugin := mustNew(t, "events", args)
	want := framework.ClusterEvent{Resource: framework.Pod, ActionType: framework.Add | framework.Update | framework.Delete}
	if events := plugin.EventsToRegister(); len(events) != 2 || events[1] != want {
		t.Errorf("got %v", events)
	}
	if plugin.PreFilterExtensions() == nil {
		t.Error("preemption cannot say what it removes")
	}
	if mustNew(t, "events", &config.NodeFilterArgs{DefaultAction: config.FilterAllow, Rules: denyOthersNodes()}).PreFilterExtensions() != nil {
		t.Error("without shares preemption has to say what it removes")
	}
}

// TestExplain has 7 shares, of which it names 5.
func TestExplain(t *testing.T) {
	args, want := &config.NodeFilterArgs{DefaultAction: config.FilterDeny}, ""
	for i := 0; i < 7; i++ {
		args.Rules = append(args.Rules, config.NodeFilterRule{Name: fmt.Sprintf("share-%d", i), Action: config.FilterShare,
			NodeNames: []string{"other-*"}, MaxPercent: pointer.Int32(90), WhenUnsatisfiable: v1.DoNotSchedule})
		if i < 5 {
			want += fmt.Sprintf("Rule share-%d: 0 of 0 pods are on its nodes, and 0 to 90 %% should be. ", i)
		}
	}
	plugin, state := mustNew(t, "the-most", args), framework.NewCycleState()
	nodes := []*v1.Node{spot("spot-1"), st.MakeNode().Name("other-1").Obj()}
	plugin.handle = plugintest.Handle(t, "profile", frameworkruntime.WithSnapshotSharedLister(internalcache.NewSnapshot(nil, nodes)))
	plugin.PreFilter(context.Background(), state, web("new"))
	if got := plugin.Explain(state, nil, nil); got != want+"And 2 more with a share." {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestExplainInADryRun(t *testing.T) {
	nodes := []*v1.Node{spot("spot-1"), spot("spot-2"), onDemand("on-demand"), onDemand("old-1")}
	pods := append(at("spot-1", webs("a", 3)...), at("on-demand", webs("b", 6)...)...)
	f := newFramework(t, internalcache.NewSnapshot(pods, nodes), spotShare(0, 30),
		config.NodeFilterRule{Name: "gone", Action: config.FilterDeny, NodeNames: []string{"gone-*"}})
	made := f.Plugin.(*NodeFilter)
	count := func() float64 { return plugintest.MetricValue(t, rejections.WithLabelValues(t.Name(), "spot-share")) }
	state := framework.NewCycleState()
	if got := made.Explain(state, web("new"), nil); got != "" {
		t.Errorf("without a cycle: %q", got)
	}
	for attempt := 1; attempt <= 2; attempt++ {
		state = framework.NewCycleState()
		pod := web("new")
		filter(t, f, state, pod)
		want := "Rule spot-share: 3 of 9 pods are on its nodes, and 0 to 30 % should be."
		if got := made.Explain(state, pod, nil); got != want {
			t.Errorf("attempt %d: got %q, want %q", attempt, got, want)
		}
	}
	if got := count(); got != 4 {
		t.Errorf("%g rejections are counted, want 4", got)
	}
	state = framework.NewCycleState()
	whatif.Mark(state)
	if got := filter(t, f, state, web("new"))["spot-1"]; got != full {
		t.Errorf("a what-if is told %q", got)
	}
	if got := count(); got != 4 {
		t.Errorf("a what-if is counted: %g", got)
	}
	// A pod that no share concerns.
	state = framework.NewCycleState()
	other := st.MakePod().Namespace("else").Name("other").Obj()
	filter(t, f, state, other)
	if got := made.Explain(state, other, nil); got != "" {
		t.Errorf("of a pod that is not concerned: %q", got)
	}
}
