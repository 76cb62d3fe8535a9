// SPDX-License-Identifier: Apache-2.0

//go:debug default=go1.27
//go:debug randseednop=0

package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulerargs "k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/laterfields"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/input"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/pointer"
)

// The tests run each scenario in its own process, see Run. A scenario prints what the test expects.
var scenarios = map[string]func(*world){
	"preemption": preempting, "backoff": backoff, "permit": permit, "failed node": failedNode, "drain": drain,
	"stateful set": statefulSet, "template": template, "volume": volume, "load": load, "questions": questions, "custom": custom, "mixed": mixed,
	"gang again": gangAgain, "load again": loadAgain, "removed node": removedNode, "blocked drain": blockedDrain, "measured node": measuredNode, "check": check,
	"overcommit": overcommit, "drains agree": drainsAgree, "evictions": evictions, "later fields": laterFields,
	"history": replayHistory, "history of a node": historyOfNode, "check of a history": checkHistory,
}

// task is a scenario with a seed.
type task struct {
	Scenario string
	Seed     int64
}

func TestMain(m *testing.M) {
	if !IsChild() {
		os.Exit(m.Run())
	}
	var asked task
	start := func() (time.Time, error) { return time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), nil }
	Serve(&asked, start, func(Progress) (interface{}, error) {
		w := &world{cluster: &input.Cluster{}, seed: asked.Seed}
		scenarios[asked.Scenario](w)
		return w.printed.String(), nil
	})
}

// printed runs a scenario, and returns what it printed.
func printed(t *testing.T, scenario string, seed int64) (text string) {
	t.Helper()
	if err := (Process{}).Do(context.Background(), task{scenario, seed}, &text); err != nil {
		t.Fatal(err)
	}
	return text
}

// TestBubble verifies that testing/synctest.Test, which is meant for tests, needs nothing of its test: a program has none.
// If a newer Go needs more, this fails: docs/go-version.md.
func TestBubble(t *testing.T) {
	const day = 24 * time.Hour
	passed := time.Duration(0)
	synctest.Test(&testing.T{}, func(*testing.T) {
		began := time.Now()
		time.Sleep(day)
		passed = time.Since(began)
	})
	if passed != day {
		t.Errorf("in a bubble of an empty testing.T, %v passed instead of %v", passed, day)
	}
}

// world is a cluster of a scenario.
type world struct {
	*Simulation
	cluster  *input.Cluster
	config   string
	registry frameworkruntime.Registry
	seed     int64
	question bool
	history  bool
	printed  strings.Builder
}

func (w *world) printf(format string, arguments ...interface{}) {
	fmt.Fprintf(&w.printed, format, arguments...)
}

// start starts the scheduler on nodes with 4 cores each in two zones.
func (w *world) start(nodes int) {
	for i := 0; i < nodes; i++ {
		w.cluster.Nodes = append(w.cluster.Nodes, st.MakeNode().Name(fmt.Sprintf("node-%d", i)).Label(v1.LabelTopologyZone, fmt.Sprintf("zone-%d", i%2)).
			Capacity(map[v1.ResourceName]string{"cpu": "4", "memory": "16Gi", "pods": "110"}).Obj())
	}
	object, version, err := scheme.Codecs.UniversalDecoder().Decode([]byte("apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n"+w.config), nil, nil)
	utilruntime.Must(err)
	config := object.(*schedulerconfig.KubeSchedulerConfiguration)
	config.TypeMeta.APIVersion = version.GroupVersion().String()
	w.Simulation, err = New(context.Background(), Options{Config: config, Registry: w.registry, Cluster: w.cluster, Seed: w.seed, Hot: 0.8, Question: w.question, History: w.history})
	utilruntime.Must(err)
	w.Expect(nil, 0)
}

// web returns a workload of pods with a number of cores.
func web(name, cores string, count int) *input.Workload {
	pod := st.MakePod().Namespace("default").Name(name).SchedulerName("default-scheduler").Req(map[v1.ResourceName]string{"cpu": cores}).Obj()
	return &input.Workload{Pod: pod, Count: count, Owner: "ReplicaSet/" + name}
}

// advance simulates until a time since the start.
func (w *world) advance(until time.Duration) {
	utilruntime.Must(w.Advance(until, 0, func(time.Duration, int64) {}))
}

// show prints the pods at a time: their nodes, or the reasons why they wait, by number.
func (w *world) show(label string) {
	var lines []string
	for _, key := range namesOf(w.pods) {
		p := w.pods[key]
		where := "waits"
		if p.node != nil {
			where = "on " + p.node.name
		}
		if p.deleted {
			where += ", ends"
		}
		lines = append(lines, strings.TrimPrefix(key, "default/")+" "+where)
	}
	w.printf("%s: %s\n", label, strings.Join(lines, "; "))
}

func (w *world) figure(name string) float64 {
	for _, figure := range w.Outcome().Figures {
		if figure.Name == name {
			return figure.Value
		}
	}
	return -1
}

// preempting evicts two pods of 2 cores, which have run for a minute, for one with 4.
func preempting(w *world) {
	w.start(1)
	low := web("low", "2", 2)
	low.Pod.Spec.TerminationGracePeriodSeconds = pointer.Int64(10)
	high := web("high", "4", 1)
	high.Pod.Spec.Priority = pointer.Int32(1000)
	w.At(0, func() { w.Create(low) })
	w.At(time.Minute, func() { w.Create(high) })
	w.advance(65 * time.Second)
	w.show("within the grace period")
	w.advance(2 * time.Minute)
	w.show("after it")
	for _, of := range w.Outcome().Preemptions {
		w.printf("%.0f s: %s by %s on %s\n", of.Seconds, of.Victim, of.Preemptor, of.Node)
	}
	// 2 pods × 2 cores × 60 s.
	w.printf("lost: %.0f core-seconds\n", w.figure(`evicted_resource_seconds{resource="cpu"}`))
}

// backoff adds a node for a pod that waits.
func backoff(w *world) {
	w.start(1)
	w.removeNode("node-0")
	w.At(0, func() { w.Create(web("web", "1", 1)) })
	w.At(time.Hour, func() { w.Apply(&input.Event{Node: "node-0", Change: input.AddNode}) })
	w.advance(2 * time.Hour)
	w.show("at the end")
	of := w.Outcome().Pods[0]
	// The queue retries it each minute or half minute later, and at once when the node comes.
	w.printf("bound after %.0f s, more than 30 attempts: %v\n", of.Bound, of.Attempts > 30)
}

// permitPlugin makes pods wait.
type permitPlugin struct{}

func (permitPlugin) Name() string { return "Wait" }
func (permitPlugin) Permit(_ context.Context, _ *framework.CycleState, pod *v1.Pod, _ string) (*framework.Status, time.Duration) {
	if pod.Name != "web" {
		return nil, 0
	}
	return framework.NewStatus(framework.Wait), 100 * time.Second
}

// permit makes a pod wait for a plugin that never allows it, while its node is held.
func permit(w *world) {
	w.registry = frameworkruntime.Registry{"Wait": func(runtime.Object, framework.Handle) (framework.Plugin, error) { return permitPlugin{}, nil }}
	w.config = "profiles: [{plugins: {permit: {enabled: [{name: Wait}]}}}]"
	w.start(1)
	w.At(0, func() { w.Create(web("web", "4", 1)) })
	w.At(time.Second, func() { w.Create(web("other", "4", 1)) })
	w.advance(99 * time.Second)
	w.show("before the timeout")
	w.advance(110 * time.Second)
	w.show("after it")
	w.printf("%s\n", w.pods["default/web"].reason)
}

// pairPlugin places no pod of a gang before two of it exist.
type pairPlugin struct{ framework.Handle }

func (pairPlugin) Name() string { return "Pair" }
func (p pairPlugin) PreFilter(_ context.Context, _ *framework.CycleState, pod *v1.Pod) *framework.Status {
	members, err := p.SharedInformerFactory().Core().V1().Pods().Lister().List(labels.SelectorFromSet(labels.Set{gangLabel: "gang"}))
	if gangOf(pod) != "" && len(members) < 2 {
		return framework.NewStatus(framework.Unschedulable, fmt.Sprint("too few members ", err))
	}
	return nil
}
func (pairPlugin) PreFilterExtensions() framework.PreFilterExtensions { return nil }

// gangAgain places a gang again whose members were created before and after another pod.
func gangAgain(w *world) {
	w.registry = frameworkruntime.Registry{"Pair": func(_ runtime.Object, handle framework.Handle) (framework.Plugin, error) {
		return pairPlugin{handle}, nil
	}}
	w.config = "profiles: [{plugins: {preFilter: {enabled: [{name: Pair}]}}}]"
	w.start(1)
	var pods []*v1.Pod
	for _, name := range []string{"member-0", "other", "member-1"} {
		of := web(name, "2", 1).Pod
		if of.UID = types.UID(name); name != "other" {
			of.Labels = map[string]string{gangLabel: "gang"}
		}
		pods = append(pods, of)
	}
	w.PlaceAgain(pods, nil, nil, func(time.Duration, int64) {})
	w.show("at the end")
}

// failedNode moves the pods of a failed node after the time that they tolerate.
func failedNode(w *world) {
	w.start(1)
	short := web("short", "1", 1)
	short.Pod.Spec.Tolerations = []v1.Toleration{{Key: v1.TaintNodeUnreachable, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute, TolerationSeconds: pointer.Int64(30)}}
	w.At(0, func() { w.Create(short) })
	w.At(0, func() { w.Create(web("web", "1", 1)) })
	w.At(time.Minute, func() { w.Apply(&input.Event{Node: "node-0", Change: input.FailNode}) })
	w.advance(2 * time.Minute)
	w.show("after a minute")
	w.At(10*time.Minute, func() { w.Apply(&input.Event{Node: "node-0", Change: input.AddNode}) })
	w.advance(9 * time.Minute)
	w.show("after eight minutes")
	w.advance(11 * time.Minute)
	w.show("when it is back")
}

// drain moves pods one by one, as their budget allows.
func drain(w *world) {
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	one := intstr.FromInt(1)
	budget.Spec = policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}
	budget.Status.DisruptionsAllowed = 1
	w.cluster.Objects = append(w.cluster.Objects, budget)
	w.start(1)
	of := web("web", "1", 2)
	of.Pod.Labels = map[string]string{"app": "web"}
	of.StartDelay = 20 * time.Second
	w.At(0, func() { w.Create(of) })
	w.At(time.Minute, func() { w.AddNode(w.cluster.Nodes[0].DeepCopy()) })
	w.At(time.Minute, func() {
		other := w.cluster.Nodes[0].DeepCopy()
		other.Name = "node-1"
		w.AddNode(other)
	})
	w.At(time.Minute, func() { w.Apply(&input.Event{Node: "node-0", Change: input.DrainNode}) })
	w.advance(70 * time.Second)
	w.show("the first has not started elsewhere")
	w.advance(5 * time.Minute)
	w.show("at the end")
}

// laterFields replaces a pod with later fields, which the next one has too, and creates one with a gate.
func laterFields(w *world) {
	old := web("web", "1", 1)
	old.Pod.UID, old.Pod.Spec.NodeName, old.Pod.Status.Phase = "old", "node-0", v1.PodRunning
	old.Pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: pointer.Bool(true)}}
	w.cluster.Pods, w.cluster.Later = []*v1.Pod{old.Pod}, map[types.UID]*laterfields.Found{"old": {Refusal: "it asks for too much"}}
	w.start(2)
	gated := web("gated", "8", 1)
	gated.Later = &laterfields.Found{Gates: []string{"quota", "audit"}}
	w.At(0, func() {
		w.Create(gated)
		w.printf("%s\n", w.pods["default/gated"].reason)
		w.Apply(&input.Event{Node: "node-0", Change: input.DrainNode})
	})
	w.advance(time.Hour)
	for _, key := range namesOf(w.pods) {
		w.printf("%s: %+v\n", key, *laterfields.Pods.Of(w.current(key).UID))
	}
}

// removedNode removes the node of a pod, which counts as placed on it, and as placed again. Its budget is as before.
func removedNode(w *world) {
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	w.cluster.Objects = append(w.cluster.Objects, budget)
	w.start(4)
	of := web("web", "100m", 1)
	of.Pod.Labels = map[string]string{"app": "web"}
	w.At(0, func() { w.Create(of) })
	w.At(time.Minute, func() { w.removeNode(w.pods["default/web"].node.name) })
	w.At(2*time.Minute, func() { w.removeNode("node-1") })
	w.At(2*time.Minute, func() { w.removeNode("node-3") })
	w.advance(3 * time.Minute)
	now := w.store.of(budget).get("default/web").(*policyv1.PodDisruptionBudget)
	w.printf("%.0f placed, %d disruptions allowed, skew %.0f\n", w.figure("pods_placed"), now.Status.DisruptionsAllowed,
		w.measure.current()[3])
}

// evictions asks for the evictions of two pods, as preemption within budgets does, when their budget allows one.
func evictions(w *world) {
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	budget.Status.DisruptionsAllowed = 1
	w.cluster.Objects = append(w.cluster.Objects, budget)
	w.start(1)
	of := web("web", "1", 2)
	of.StartDelay = 20 * time.Second
	of.Pod.Labels = map[string]string{"app": "web"}
	w.At(0, func() { w.Create(of) })
	for i, name := range []string{"web-0", "web-1"} {
		name := name
		request, err := http.NewRequest(http.MethodPost, "http://simulated/api/v1/namespaces/default/pods/"+name+"/eviction", nil)
		utilruntime.Must(err)
		w.At(time.Minute+time.Duration(2*i)*time.Second, func() {
			response, err := w.api.RoundTrip(request)
			utilruntime.Must(err)
			w.printf("%s: %s\n", name, response.Status)
		})
	}
	w.advance(time.Minute + time.Second)
	w.show("after the first")
	w.advance(3 * time.Minute)
}

// blockedDrain gives up a drain that a budget never allows.
func blockedDrain(w *world) {
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	w.cluster.Objects = append(w.cluster.Objects, budget)
	w.start(1)
	of := web("web", "1", 1)
	of.Pod.Labels = map[string]string{"app": "web"}
	w.At(0, func() { w.Create(of) })
	w.At(time.Minute, func() { w.Apply(&input.Event{Node: "node-0", Change: input.DrainNode}) })
	utilruntime.Must(w.Advance(24*time.Hour, time.Minute, func(time.Duration, int64) {}))
	w.printf("%v %v\n", w.now().Truncate(time.Minute), w.Outcome().Notes)
}

// measuredNode uses half of a core by itself, and one for its pod. The nodes are reported when the pod runs.
func measuredNode(w *world) {
	w.cluster.NodeUse = map[string]v1.ResourceList{"node-0": {"cpu": resource.MustParse("500m")}}
	w.start(1)
	of := web("web", "1", 1)
	of.Duration, of.Use = time.Hour, []input.Use{{Resources: v1.ResourceList{"cpu": resource.MustParse("1")}}}
	w.Expect([]*input.Workload{of}, 30*time.Minute)
	w.At(0, func() { w.Create(of) })
	w.advance(2 * time.Hour)
	node := w.Outcome().Nodes[0]
	// Half of the time 1.5 of 4 cores, and then 0.5.
	w.printf("%d pod, %v used, %.1f %% in the mean\n", node.Pods, node.Used["cpu"], w.figure(`utilization_percent{resource="cpu"}`))
}

// overcommit has an ordinary pod that uses one of four cores for an hour and then three, and one that overcommits by two.
func overcommit(w *world) {
	w.config = "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {ignoredResourceGroups: [overcommit.scheduler]}}]}]"
	w.start(1)
	ordinary, batch := web("web", "4", 1), web("batch", "0", 1)
	ordinary.Use = []input.Use{{Resources: v1.ResourceList{"cpu": resource.MustParse("1")}},
		{After: time.Hour, Resources: v1.ResourceList{"cpu": resource.MustParse("3")}}}
	batch.Pod.Spec.Containers[0].Resources.Requests[schedulerargs.OvercommitResource] = resource.MustParse("2000")
	batch.Use = []input.Use{{Resources: v1.ResourceList{"cpu": resource.MustParse("2")}}}
	w.Expect([]*input.Workload{ordinary, batch}, 0)
	ask := func() {
		result, err := w.api.Ask(context.Background(), []source.Query{
			{Name: source.OvercommitNodes, Value: "avg_over_time(use[1h:5m])", Deviation: "stddev_over_time(use[1h:5m])"},
			{Name: source.OvercommitNow, Value: "rate(use[5m])"},
			{Name: source.OvercommitPods, Pods: true, Value: "quantile_over_time(0.5, use[1h:5m])"},
			// The mean of five minutes is taken every half an hour.
			{Name: source.OvercommitPods, Pods: true, Value: "quantile_over_time(1, use[6h:30m])"},
		})
		w.printf("%v %v", err, w.now().Truncate(time.Minute))
		for _, row := range result.Rows {
			if row.Kind != source.Timestamp {
				w.printf(" %d%c %s %.2g", row.Query, "vtd"[row.Kind], row.Label, row.Value)
			}
		}
		w.printf("\n")
	}
	w.At(0, func() { ask(); w.Create(ordinary) })
	w.At(0, func() { w.Create(batch) })
	for _, at := range []time.Duration{10 * time.Minute, 20 * time.Minute, 70 * time.Minute, 90 * time.Minute, 40 * time.Hour} {
		w.advance(at)
		ask()
		if at == 90*time.Minute {
			w.printf("gained %.1f %%, violated %.1f %%, by %.1f %%\n", w.figure("overcommit_gained_percent"),
				w.figure("overcommit_violation_percent"), w.figure("overcommit_excess_percent"))
		}
	}
	w.printf("no more than a horizon: %v\n", len(w.nodes["node-0"].ordinary) <= finest+2)
}

// check places pods again: the second would be on the other node.
func check(w *world) {
	placed := func(name, node, cores string, second int64) *v1.Pod {
		of := st.MakePod().Namespace("default").Name(name).UID(name).SchedulerName("default-scheduler").Node(node).Req(map[v1.ResourceName]string{"cpu": cores}).Obj()
		of.CreationTimestamp = metav1.Unix(second, 0)
		return of
	}
	pending := placed("pending", "", "4", 4)
	again, _, stay, _ := Again([]*v1.Pod{pending, placed("second", "node-0", "1", 2), placed("first", "node-0", "1", 1), placed("third", "node-1", "1", 3)}, true)
	w.cluster.Pods = stay
	w.start(2)
	got := w.Check(again)
	w.printf("%d of %d the same or equal, %v\n", got.Same+got.Equal, got.Pods, got.Others)
}

// statefulSet keeps the name of a pod that moves.
func statefulSet(w *world) {
	w.start(2)
	of := web("db", "1", 1)
	of.Owner = "StatefulSet/db"
	w.At(0, func() { w.Create(of) })
	w.At(time.Minute, func() {
		w.Apply(&input.Event{Node: w.pods["default/db"].node.name, Change: input.DrainNode})
	})
	w.advance(70 * time.Second)
	before := len(w.pods)
	w.advance(2 * time.Minute)
	w.printf("%d pod within the grace period, then %d, which was made again: %v\n", before, len(w.pods), w.pods["default/db"].generation == 1)
}

// template shares the parts of a workload's pod among its pods, which change their fields only.
func template(w *world) {
	w.start(2)
	of := web("db", "1", 2)
	of.Claims = []v1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	of.Pod.Spec.Volumes, of.Pod.Spec.PriorityClassName = []v1.Volume{{Name: "data"}, {Name: "other"}}, "system-node-critical"
	of.Pod.OwnerReferences = make([]metav1.OwnerReference, 0, 4)
	before := of.Pod.DeepCopy()
	w.At(0, func() { w.Create(of) })
	w.At(time.Minute, func() { w.Apply(&input.Event{Delete: "default/db-0"}) })
	w.advance(70 * time.Second)
	w.printf("unchanged: %v, no owner: %v\n", equality.Semantic.DeepEqual(before, of.Pod), of.Pod.OwnerReferences[:1][0].Name == "")
}

// volume provisions a volume for the node that the scheduler chose.
func volume(w *world) {
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	w.cluster.Objects = append(w.cluster.Objects,
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Provisioner: "example.org/disk", VolumeBindingMode: &mode},
		&v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data"}, Spec: v1.PersistentVolumeClaimSpec{
			StorageClassName: pointer.String("disk"), AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
		}})
	w.start(2)
	of := web("db", "1", 1)
	of.Pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{
		PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}}
	w.At(0, func() { w.Create(of) })
	w.advance(time.Minute)
	claim := w.store.of(&v1.PersistentVolumeClaim{}).get("default/data").(*v1.PersistentVolumeClaim)
	disk := w.store.of(&v1.PersistentVolume{}).get(claim.Spec.VolumeName).(*v1.PersistentVolume)
	zone := disk.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0]
	w.printf("bound: %v, the volume %s is in the zone of the pod: %v\n", w.pods["default/db"].node != nil, disk.Name, zone == w.pods["default/db"].node.zone)
}

// startNodeLoad starts a scheduler with NodeLoad on two nodes.
func (w *world) startNodeLoad() {
	w.registry = frameworkruntime.Registry{nodeload.Name: nodeload.Factory(collector.New())}
	w.config = `
profiles:
- plugins:
    multiPoint: {enabled: [{name: NodeLoad, weight: 100}]}
  pluginConfig:
  - name: NodeLoad
    args: {prometheus: {endpoints: [http://prometheus.invalid:9090]}}
`
	w.start(2)
}

// load makes one node hot, which NodeLoad avoids once it has measured that.
func load(w *world) {
	w.startNodeLoad()
	busy := web("busy", "1", 1)
	busy.Use = []input.Use{{Resources: v1.ResourceList{"cpu": resource.MustParse("4")}}}
	quiet := web("quiet", "100m", 10)
	quiet.Use = []input.Use{{Resources: v1.ResourceList{}}}
	w.Expect([]*input.Workload{busy, quiet}, 0)
	w.At(0, func() { w.Create(busy) })
	w.At(20*time.Minute, func() { w.Create(quiet) })
	w.advance(30 * time.Minute)
	hot := w.pods["default/busy"].node
	w.printf("pods on the hot node: %d of 11; hot for %.0f s of 1800\n", len(hot.pods), w.figure("hot_node_seconds"))
}

// loadAgain places pods again, of which the third uses more than it requests.
func loadAgain(w *world) {
	w.cluster.PodUse = map[string]v1.ResourceList{"default/pod-2": {"cpu": resource.MustParse("3")}}
	w.startNodeLoad()
	var pods []*v1.Pod
	for i := 0; i < 7; i++ {
		of := web(fmt.Sprint("pod-", i), "100m", 1).Pod
		of.UID = types.UID(of.Name)
		pods = append(pods, of)
	}
	w.PlaceAgain(pods, nil, nil, func(time.Duration, int64) {})
	w.printf("pods on the hot node: %d of 7\n", len(w.pods["default/pod-2"].node.pods))
}

// questions asks each one, and verifies that those that change nothing do not.
func questions(w *world) {
	for i := 0; i < 8; i++ {
		of := st.MakePod().Namespace("default").Name(fmt.Sprintf("web-%d", i)).UID(fmt.Sprint(i)).Node(fmt.Sprintf("node-%d", i%4)).Req(map[v1.ResourceName]string{"cpu": "1"}).Obj()
		of.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: pointer.Bool(true)}}
		w.cluster.Pods = append(w.cluster.Pods, of)
	}
	w.start(4)
	state := func() string {
		content, err := json.Marshal(w.nodeStates())
		utilruntime.Must(err)
		return string(content) + fmt.Sprint(namesOf(w.pods), len(w.all))
	}
	before := state()
	fits := w.Fit([]input.Workload{*web("small", "1", 1), *web("large", "3", 1)}, 100)
	w.printf("%d small, %d large: %s\n", fits[0].Count, fits[1].Count, fits[1].Reason)
	one, err := w.Drain([]string{"node-0"})
	utilruntime.Must(err)
	three, err := w.Drain([]string{"node-0", "node-1", "node-2"})
	utilruntime.Must(err)
	w.printf("one: %d move, %d wait; three: %d move, %d wait\n", len(one.Moved), len(one.Wait), len(three.Moved), len(three.Wait))
	w.printf("unchanged: %v\n", before == state())
	shrink := w.Shrink()
	w.printf("%d go, %d stay\n", len(shrink.Remove), len(shrink.Keep))
	grow := w.Grow(w.cluster.Nodes[0], []input.Workload{*web("more", "1", 9), *web("huge", "5", 1)}, 10)
	w.printf("%d wait, %d nodes, then %d\n", grow.Before, grow.Nodes, len(grow.Wait))
}

// lister is a plugin of another project, with its own client.
type lister struct{ client dynamic.Interface }

var groups = schema.GroupVersionResource{Group: "scheduling.sigs.k8s.io", Version: "v1alpha1", Resource: "podgroups"}

func (lister) Name() string { return "Lister" }
func (l lister) PreFilter(ctx context.Context, _ *framework.CycleState, pod *v1.Pod) *framework.Status {
	list, err := l.client.Resource(groups).List(ctx, metav1.ListOptions{})
	if err != nil {
		return framework.AsStatus(err)
	}
	patch := []byte(`{"status":{"phase":"Seen"}}`)
	patched, err := l.client.Resource(groups).Namespace("default").Patch(ctx, "gang", types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return framework.AsStatus(err)
	}
	_, err = l.client.Resource(groups).Namespace("default").Get(ctx, "none", metav1.GetOptions{})
	return framework.NewStatus(framework.Unschedulable, fmt.Sprintf("%d group, %v; %v", len(list.Items), patched.Object["status"], err))
}
func (lister) PreFilterExtensions() framework.PreFilterExtensions { return nil }

// custom has a PodGroup, which the plugin's own client reads and patches.
func custom(w *world) {
	w.registry = frameworkruntime.Registry{"Lister": func(_ runtime.Object, handle framework.Handle) (framework.Plugin, error) {
		client, err := dynamic.NewForConfig(handle.KubeConfig())
		return lister{client}, err
	}}
	w.config = "profiles: [{plugins: {preFilter: {enabled: [{name: Lister}]}}}]"
	w.cluster.Custom = []*unstructured.Unstructured{{Object: map[string]interface{}{
		"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup", "metadata": map[string]interface{}{"namespace": "default", "name": "gang"},
	}}}
	w.start(1)
	w.At(0, func() { w.Create(web("web", "1", 1)) })
	w.advance(time.Second)
	w.printf("%s\n", w.pods["default/web"].reason)
}

// mixed is a busy hour: pods of several sizes and priorities, which end, do not fit, and evict others.
func mixed(w *world) {
	w.start(20)
	for i := 0; i < 60; i++ {
		of := web(fmt.Sprintf("web-%d", i), []string{"100m", "1", "3"}[i%3], 1+i%7)
		of.Duration = time.Duration(1+i%11) * time.Minute
		of.Pod.Spec.Priority = pointer.Int32(int32(i % 5))
		w.At(time.Duration(i)*time.Minute/4, func() { w.Create(of) })
	}
	w.advance(time.Hour)
	content, err := json.Marshal(w.Outcome())
	utilruntime.Must(err)
	w.printf("%s", content)
}

func TestScenarios(t *testing.T) {
	for scenario, want := range map[string][]string{
		"preemption": {
			"within the grace period: high waits; low-0 on node-0, ends; low-0-again-2 waits; low-1 on node-0, ends; low-1-again-2 waits",
			"after it: high on node-0; low-0-again-2 waits; low-1-again-2 waits",
			"60 s: default/low-0 by default/high on node-0", "60 s: default/low-1 by default/high on node-0", "lost: 240 core-seconds",
		},
		"backoff": {"at the end: web on node-0", "bound after 3600 s, more than 30 attempts: true"},
		"permit": {"before the timeout: other waits; web waits", "after it: other on node-0; web waits",
			"0/1 nodes are available: 1 Insufficient cpu."},
		"gang again": {"at the end: member-0 on node-0; member-1 on node-0; other waits"},
		"failed node": {"after a minute: short on node-0, ends; short-again-2 waits; web on node-0",
			"after eight minutes: short on node-0, ends; short-again-2 waits; web on node-0, ends; web-again-2 waits", "when it is back: short-again-2 on node-0; web-again-2 on node-0"},
		"drain": {"the first has not started elsewhere: web-0 on node-0, ends; web-0-again-2 on node-1; web-1 on node-0",
			"at the end: web-0-again-2 on node-1; web-1-again-2 on node-1"},
		"later fields": {"the pod has scheduling gates: quota, audit",
			"default/gated: {Gates:[quota audit] Refusal: Spread:[]}", "default/web-again-2: {Gates:[] Refusal:it asks for too much Spread:[]}"},
		"removed node":  {"2 placed, 0 disruptions allowed, skew 0"},
		"evictions":     {"web-0: Created", "after the first: web-0 on node-0, ends; web-0-again-2 on node-0; web-1 on node-0", "web-1: Too Many Requests"},
		"blocked drain": {"1h1m0s [1 drain of node-0 did not end within 1h0m0s, because of PodDisruptionBudgets]"},
		"measured node": {"1 pod, 0.375 used, 25.0 % in the mean"},
		"overcommit": {"<nil> 0s", "<nil> 10m0s 1v node-0 1 2v default/web 1 3v default/web 1",
			"<nil> 20m0s 0v node-0 1 0d node-0 0 1v node-0 1 2v default/web 1 3v default/web 1",
			// The use changes a moment after the hour, and is measured 15 s later.
			"<nil> 1h10m0s 0v node-0 1.3 0d node-0 0.73 1v node-0 3 2v default/web 1 3v default/web 3",
			"<nil> 1h30m0s 0v node-0 2 0d node-0 0.99 1v node-0 3 2v default/web 2 3v default/web 3",
			"gained 50.0 %, violated 33.3 %, by 25.0 %",
			"<nil> 40h0m0s 0v node-0 3 0d node-0 0 1v node-0 3 2v default/web 3 3v default/web 3", "no more than a horizon: true"},
		"check":        {"2 of 3 the same or equal, map[another node scores more now: NodeResourcesBalancedAllocation, NodeResourcesFit:[default/second]]"},
		"stateful set": {"1 pod within the grace period, then 1, which was made again: true"},
		"template":     {"unchanged: true, no owner: true"},
		"volume":       {"bound: true, the volume provisioned-default-data is in the zone of the pod: true"},
		"load":         {"pods on the hot node: 1 of 11; hot for 1785 s of 1800"},
		"load again":   {"pods on the hot node: 2 of 7"},
		"questions": {"8 small, 0 large: 0/4 nodes are available: 4 Insufficient cpu.", "one: 2 move, 0 wait; three: 2 move, 4 wait", "unchanged: true",
			"2 go, 2 stay", "10 wait, 3 nodes, then 1"},
		"history": {"all run: db-0 on node-0; job on node-0; web on node-0", "job has ended: db-0 on node-0; web on node-0",
			"preempted: db-0 on node-0, ends; high waits; web on node-0, ends; web-again-2 waits", "deleted: high on node-0",
			"in its grace period: high on node-0, ends", "after it: ", "a name that is free again: db-0 on node-0", "4 disruptions allowed"},
		"history of a node": {"before: a on node-0; b on node-0; c on node-0", "a new node: a on node-0; b on node-0; c on node-0; static on node-0",
			"8000 of 12000 in all, default spreading sees the owner: true", "it is gone: c on node-1", "deleted: ",
			"[pods have claims that the snapshot lacks, and are scheduled without these volumes]"},
		"check of a history": {"4 of 7 the same, 1 stays, map[another node scores more now: NodeResourcesBalancedAllocation, NodeResourcesFit:[default/second default/brief] its node is gone:[default/nowhere]]",
			"[pods that were never bound are not compared: 1]"},
		"custom": {`0/1 nodes are available: 1 1 group, map[phase:Seen]; podgroups.scheduling.sigs.k8s.io "none" not found.`},
	} {
		scenario, want := scenario, strings.Join(want, "\n")+"\n"
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			if got := printed(t, scenario, 1); got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

// TestSameSeed verifies that a run with the same seed is the same, byte for byte, and that one with another seed is not.
func TestSameSeed(t *testing.T) {
	first := printed(t, "mixed", 1)
	for i := 0; i < 3; i++ {
		if again := printed(t, "mixed", 1); again != first {
			t.Fatalf("two runs with the same seed differ: %s", cmp.Diff(first, again))
		}
	}
	if other := printed(t, "mixed", 2); other == first {
		t.Error("two seeds give the same placements")
	}
}
