// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"context"
	"fmt"
	"math/rand"
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	internalcache "k8s.io/kubernetes/pkg/scheduler/internal/cache"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/internal/queue"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// maker creates nodes and pods from few values, so that they match often.
type maker struct{ *rand.Rand }

func (m maker) of(values ...string) string { return values[m.Intn(len(values))] }

func (m maker) node(name string) *v1.Node {
	capacity := map[v1.ResourceName]string{"cpu": m.of("1", "4"), "memory": m.of("1Gi", "8Gi"), "pods": m.of("1", "10")}
	if m.Intn(2) == 0 {
		capacity["example.com/gpu"] = "2"
	}
	if m.Intn(2) == 0 {
		capacity["example.com/fpga"] = "1"
	}
	node := st.MakeNode().Name(name).Capacity(capacity).
		Label("zone", m.of("a", "b")).Label("kubernetes.io/hostname", name).
		Images(map[string]int64{m.of("web:v1", "db:latest"): int64(m.Intn(900)) << 20}).Obj()
	node.Spec.Unschedulable = m.Intn(5) == 0
	for m.Intn(3) == 0 {
		node.Spec.Taints = append(node.Spec.Taints, v1.Taint{
			Key: m.of("x", "y"), Value: m.of("1", "2"), Effect: v1.TaintEffect(m.of("NoSchedule", "PreferNoSchedule", "NoExecute")),
		})
	}
	return node
}

func (m maker) pod(name string) *v1.Pod {
	pod := st.MakePod().Name(name).UID(name).Namespace("default").Label("app", m.of("web", "db"))
	for i := m.Intn(4); i > 0; i-- {
		pod.Req(map[v1.ResourceName]string{"cpu": m.of("100m", "1", "2"), "memory": m.of("100Mi", "1Gi", "3Gi")})
	}
	if m.Intn(4) == 0 {
		pod.Req(map[v1.ResourceName]string{v1.ResourceName(m.of("example.com/gpu", "example.com/fpga")): "1"})
	}
	if m.Intn(4) == 0 {
		pod.Req(map[v1.ResourceName]string{"example.com/fpga": "1"})
	}
	if m.Intn(4) == 0 {
		pod.HostPort(int32(8080 + m.Intn(2)))
	}
	if m.Intn(3) == 0 {
		pod.Toleration(m.of("x", "y", v1.TaintNodeUnschedulable))
	}
	if m.Intn(4) == 0 {
		pod.NodeAffinityIn("zone", []string{m.of("a", "b", "c")})
	}
	kinds := []st.PodAffinityKind{st.PodAffinityWithRequiredReq, st.PodAffinityWithPreferredReq, st.PodAffinityWithRequiredPreferredReq}
	if m.Intn(4) == 0 {
		pod.PodAffinityExists(m.of("app", "none"), m.of("zone", "kubernetes.io/hostname"), kinds[m.Intn(len(kinds))])
	}
	kinds = []st.PodAffinityKind{st.PodAntiAffinityWithRequiredReq, st.PodAntiAffinityWithPreferredReq, st.PodAntiAffinityWithRequiredPreferredReq}
	if m.Intn(4) == 0 {
		pod.PodAntiAffinityExists("app", m.of("zone", "kubernetes.io/hostname"), kinds[m.Intn(len(kinds))])
	}
	for m.Intn(2) == 0 {
		pod.SpreadConstraint(1+m.Intn(2), m.of("zone", "kubernetes.io/hostname"),
			v1.UnsatisfiableConstraintAction(m.of("DoNotSchedule", "ScheduleAnyway")), st.MakeLabelSelector().In("app", []string{"web"}).Obj())
	}
	made := pod.Obj()
	for i := range made.Spec.Containers {
		made.Spec.Containers[i].Image = m.of("web:v1", "db")
	}
	if m.Intn(4) == 0 {
		made.Spec.Volumes = []v1.Volume{{VolumeSource: v1.VolumeSource{
			GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: m.of("one", "two")},
		}}}
	}
	return made
}

// TestPreparedFiltersAndBatchScores compares prepared filters and batch scores with Filter and Score for each node.
func TestPreparedFiltersAndBatchScores(t *testing.T) {
	client := fake.NewSimpleClientset(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	factory := informers.NewSharedInformerFactory(client, 0)
	stop := make(chan struct{})
	defer close(stop)
	var all map[string]framework.Plugin
	rejected, passed, scored := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for seed := int64(0); seed < 300; seed++ {
		m := maker{rand.New(rand.NewSource(seed))}
		var nodes []*v1.Node
		for i := 0; i < 8; i++ {
			nodes = append(nodes, m.node(fmt.Sprintf("node-%d", i)))
		}
		var pods []*v1.Pod
		for i := m.Intn(12); i > 0; i-- {
			pod := m.pod(fmt.Sprintf("pod-%d", i))
			pod.Spec.NodeName = nodes[m.Intn(len(nodes))].Name
			pods = append(pods, pod)
		}
		snapshot := internalcache.NewSnapshot(pods, nodes)
		pod := m.pod("new")
		var fwk framework.Framework
		fwk, all = newFramework(t, snapshot, client, factory)
		factory.Start(stop)
		factory.WaitForCacheSync(stop)
		ctx, state := context.Background(), framework.NewCycleState()
		if status := fwk.RunPreFilterPlugins(ctx, state, pod); !status.IsSuccess() {
			t.Fatal(status)
		}
		nodeInfos, _ := snapshot.NodeInfos().List()
		for name, pl := range all {
			preparing, ok := pl.(framework.PreparedFilterPlugin)
			if !ok {
				continue
			}
			filter := preparing.PrepareFilter(state, pod)
			for _, nodeInfo := range nodeInfos {
				want := preparing.Filter(ctx, state, pod, nodeInfo)
				var got *framework.Status
				if filter != nil {
					got = filter(nodeInfo)
				}
				if got.Code() != want.Code() || !reflect.DeepEqual(reasons(got), reasons(want)) {
					t.Fatalf("seed %d: %s: Filter of %s returned %q, the prepared filter %q", seed, name, nodeInfo.Node().Name, reasons(want), reasons(got))
				}
				rejected[name] = rejected[name] || !want.IsSuccess()
			}
			passed[name] = passed[name] || filter == nil
		}
		if status := fwk.RunPreScorePlugins(ctx, state, pod, nodes); !status.IsSuccess() {
			t.Fatal(status)
		}
		for name, pl := range all {
			batch, ok := pl.(framework.BatchScorePlugin)
			if !ok {
				continue
			}
			var want, got framework.NodeScoreList
			for _, nodeInfo := range nodeInfos {
				score, status := batch.Score(ctx, state, pod, nodeInfo.Node().Name)
				if !status.IsSuccess() {
					t.Fatal(status)
				}
				want = append(want, framework.NodeScore{Name: nodeInfo.Node().Name, Score: score})
				got = append(got, framework.NodeScore{Name: nodeInfo.Node().Name})
				scored[name] = scored[name] || score != 0
			}
			if status := batch.ScoreNodes(state, pod, nodeInfos, got); !status.IsSuccess() {
				t.Fatal(status)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d: %s: Score returned %v, ScoreNodes %v", seed, name, want, got)
			}
		}
	}
	for name, pl := range map[string][2]bool{
		"NodeUnschedulable": {true, true}, "TaintToleration": {true, false}, "NodeAffinity": {true, true}, "NodePorts": {true, true},
		"NodeResourcesFit": {true, false}, "VolumeRestrictions": {true, true}, "NodeName": {false, true}, "VolumeZone": {false, true},
	} {
		if _, ok := all[name].(framework.PreparedFilterPlugin); ok && pl != [2]bool{rejected[name], passed[name]} {
			t.Errorf("%s rejected a node: %v, passed every node in PrepareFilter: %v", name, rejected[name], passed[name])
		}
	}
	for _, name := range []string{"NodeResourcesFit", "NodeResourcesBalancedAllocation", "TaintToleration", "ImageLocality"} {
		if _, ok := all[name].(framework.BatchScorePlugin); ok && !scored[name] {
			t.Errorf("%s scored no node", name)
		}
	}
}

// reasons returns a status' reasons, sorted: scalar resources come in the order of a map.
func reasons(status *framework.Status) []string {
	if status == nil {
		return nil
	}
	return sets.NewString(status.Reasons()...).List()
}

// newFramework returns the default profile, and its plugins by name.
func newFramework(t *testing.T, snapshot *internalcache.Snapshot, client *fake.Clientset, factory informers.SharedInformerFactory) (framework.Framework, map[string]framework.Plugin) {
	all := map[string]framework.Plugin{}
	registry := frameworkruntime.Registry{}
	for name, factory := range NewInTreeRegistry() {
		name, factory := name, factory
		registry[name] = func(args runtime.Object, handle framework.Handle) (framework.Plugin, error) {
			pl, err := factory(args, handle)
			all[name] = pl
			return pl, err
		}
	}
	config, err := latest.Default()
	if err != nil {
		t.Fatal(err)
	}
	fwk, err := frameworkruntime.NewFramework(registry, &config.Profiles[0],
		frameworkruntime.WithSnapshotSharedLister(snapshot), frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithPodNominator(internalqueue.NewPodNominator(nil)))
	if err != nil {
		t.Fatal(err)
	}
	return fwk, all
}
