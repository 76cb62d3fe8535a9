// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/apis/scheduling"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/laterfields"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/overcommitting"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/records"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/input"
)

// gangLabel is the label of a pod's group in scheduler-plugins.
const gangLabel = "pod-group.scheduling.sigs.k8s.io"

// defaultGracePeriod is the API server's.
const defaultGracePeriod = 30 * time.Second

// pod is a pod with its history. A pod that is evicted and made again is a new one.
type pod struct {
	key      string
	workload *input.Workload
	// requests are in the order of measurements.resources.
	requests []float64
	// overcommits is what it asks of the CPU that is requested and idle, in thousandths of cores.
	overcommits float64
	class       string
	gang        string
	// generation counts how often the pod was made again.
	generation int
	// created is a time since the start of the simulation, as bound and started are.
	created time.Duration
	podState
	record json.RawMessage

	// mutex guards what the scheduler's goroutines set.
	mutex    sync.Mutex
	attempts int
	reason   string
	// takenAt is when the attempt began that has not ended yet; -1 if there is none.
	takenAt time.Duration
}

// podState is the part of a pod that checkpoint keeps.
type podState struct {
	node *node
	// bound and started count if node is set.
	bound, started          time.Duration
	running, ended, deleted bool
	// owes is whether budgets allow one disruption less until this pod runs: the pod before it was disrupted, or it was
	// not healthy in the snapshot.
	owes bool
	// next is the pod with which its owner replaced it, or nil.
	next *pod
	// unwanted is whether its owner no longer replaces it.
	unwanted bool
}

// gangOf returns the namespace and name of a pod's group, or "".
func gangOf(of *v1.Pod) string {
	if name := of.Labels[gangLabel]; name != "" {
		return of.Namespace + "/" + name
	}
	return ""
}

// workloadOf returns the workload of a pod of the snapshot, or of a history's start.
func (s *Simulation) workloadOf(of *v1.Pod) *input.Workload {
	w := s.options.Cluster.Running[of.UID]
	if w == nil {
		w = &input.Workload{Later: laterfields.Pods.Of(of.UID), Count: 1}
	}
	w.Pod = of
	if owner := metav1.GetControllerOf(of); owner != nil {
		w.Owner = owner.Kind + "/" + owner.Name
	}
	if use, ok := s.options.Cluster.PodUse[of.Namespace+"/"+of.Name]; ok {
		w.Use = []input.Use{{Resources: use}}
	}
	return w
}

// adopt adds a pod of the snapshot.
func (s *Simulation) adopt(of *v1.Pod) { s.adoptAs(of, s.workloadOf(of)) }

// adoptAs adds a pod that is like those of a workload, and may have a node.
func (s *Simulation) adoptAs(of *v1.Pod, w *input.Workload) *pod {
	if of.Spec.NodeName != "" {
		// Preemption chooses between equal nodes by the start of their pods, and else by the order of a map.
		began := of.CreationTimestamp
		if of.Status.StartTime != nil {
			began = *of.Status.StartTime
		}
		s.adopted++
		began.Time = began.Add(s.adopted)
		of.Status.StartTime = &began
	}
	if of.Spec.NodeName == "" {
		s.claim(of, nil)
	}
	p := s.add(of, w, 0)
	s.named[p.key] = p
	p.owes = !healthy(of)
	if of.Spec.NodeName == "" {
		return p
	}
	p.bound, p.started, p.running = p.created, p.created, of.Status.Phase != v1.PodPending
	s.place(p, s.nodes[of.Spec.NodeName])
	if p.deleted = of.DeletionTimestamp != nil; p.deleted && !s.options.Question {
		s.finishTermination(p, s.grace(of), true)
	}
	return p
}

// healthy reports whether budgets count a pod of the snapshot as healthy.
func healthy(of *v1.Pod) bool {
	_, ready := podutil.GetPodCondition(&of.Status, v1.PodReady)
	return of.Spec.NodeName != "" && of.Status.Phase != v1.PodPending && (ready == nil || ready.Status == v1.ConditionTrue)
}

// Create adds the pods of a workload to the cluster.
func (s *Simulation) Create(w *input.Workload) {
	if s.options.History {
		s.createNamed(w)
		return
	}
	s.ensurePodGroup(w)
	for i := 0; i < w.Count; i++ {
		s.create(w, w.NameOf(i), 0)
	}
}

// ensurePodGroup creates the group of a workload that a trace makes a gang.
func (s *Simulation) ensurePodGroup(w *input.Workload) {
	name := w.Pod.Labels[gangLabel]
	if name == "" || w.GangSize == 0 {
		return
	}
	group := &unstructured.Unstructured{Object: map[string]interface{}{
		"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup", "spec": map[string]interface{}{"minMember": int64(w.GangSize)},
	}}
	group.SetNamespace(w.Pod.Namespace)
	group.SetName(name)
	group.SetCreationTimestamp(metav1.Now())
	if s.store.of(group).get(w.Pod.Namespace+"/"+name) == nil {
		s.store.put(group)
	}
}

// create makes a pod of a workload, with the API server's defaults and priority admission.
func (s *Simulation) create(w *input.Workload, name string, generation int) *pod {
	made := shallow(w.Pod)
	made.Name = name
	for n := 2; s.pods[made.Namespace+"/"+made.Name] != nil; n++ {
		made.Name = fmt.Sprintf("%s-again-%d", name, n)
	}
	made.UID = types.UID(fmt.Sprintf("%s/%s/%d", made.Namespace, made.Name, s.entries+len(s.all)))
	laterfields.Pods.Set(made.UID, w.Later)
	if metav1.GetControllerOf(made) == nil {
		made.OwnerReferences = append(append([]metav1.OwnerReference(nil), made.OwnerReferences...), input.OwnerReferences(w.Owner)...)
	}
	return s.pend(made, w, generation)
}

// pend adds a pod that has no node yet, with its claims.
func (s *Simulation) pend(made *v1.Pod, w *input.Workload, generation int) *pod {
	s.pause()
	made.CreationTimestamp = metav1.Now()
	made.Spec.NodeName, made.DeletionTimestamp, made.Status = "", nil, v1.PodStatus{Phase: v1.PodPending}
	s.admit(made)
	s.leaveOutClaims(made)
	s.claim(made, w.Claims)
	return s.add(made, w, generation)
}

// systemPriorities are the priorities of classes that each cluster has.
var systemPriorities = map[string]int32{
	scheduling.SystemClusterCritical: scheduling.SystemCriticalPriority, scheduling.SystemNodeCritical: scheduling.SystemCriticalPriority + 1000,
}

// admit sets the priority of a pod, as admission does.
func (s *Simulation) admit(of *v1.Pod) {
	if of.Spec.Priority != nil {
		return
	}
	var policy *v1.PreemptionPolicy
	priority, found := systemPriorities[of.Spec.PriorityClassName]
	for _, object := range s.store.of(&schedulingv1.PriorityClass{}).indexer.List() {
		class := object.(*schedulingv1.PriorityClass)
		// Of several default classes, the one with the lowest value counts.
		if class.Name == of.Spec.PriorityClassName ||
			of.Spec.PriorityClassName == "" && class.GlobalDefault && (!found || class.Value < priority) {
			priority, policy, found = class.Value, class.PreemptionPolicy, true
		}
	}
	if name := of.Spec.PriorityClassName; name != "" && !found {
		s.notes[fmt.Sprintf("pods name the priority class %q, which the snapshot lacks: their priority is 0", name)]++
	}
	of.Spec.Priority = &priority
	if of.Spec.PreemptionPolicy == nil {
		of.Spec.PreemptionPolicy = policy
	}
}

// add stores a pod that is complete, and counts it. A scheduler's name that the configuration lacks is replaced.
func (s *Simulation) add(of *v1.Pod, w *input.Workload, generation int) *pod {
	if _, known := s.Profiles[of.Spec.SchedulerName]; !known && of.Spec.NodeName == "" {
		s.notes[fmt.Sprintf("pods name the scheduler %q, which this configuration has no profile for: %q schedules them",
			of.Spec.SchedulerName, s.profile())]++
		of.Spec.SchedulerName = s.profile()
	}
	if never := v1.PreemptNever; s.options.NoPreemption && of.Spec.NodeName == "" {
		of.Spec.PreemptionPolicy = &never
	}
	p := &pod{
		key: of.Namespace + "/" + of.Name, workload: w, requests: s.measure.vector(requestsOf(of)), generation: generation, created: s.now(),
		class: of.Spec.PriorityClassName, gang: gangOf(of), takenAt: -1,
	}
	if w.Later != nil && len(w.Later.Gates) > 0 {
		p.reason = "the pod has scheduling gates: " + strings.Join(w.Later.Gates, ", ")
	}
	p.overcommits = float64(overcommitting.Asked(of))
	s.measure.usable.asked = s.measure.usable.asked || p.overcommits > 0
	s.ensureNamespace(of.Namespace)
	s.pods[p.key] = p
	if of.Spec.NodeName == "" {
		s.all = append(s.all, p)
		s.measure.created(p)
	}
	s.store.put(of)
	return p
}

// ensureNamespace creates a namespace that the snapshot does not have.
func (s *Simulation) ensureNamespace(name string) {
	if s.store.of((*v1.Namespace)(nil)).get(name) == nil {
		s.store.put(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelMetadataName: name}}})
	}
}

// current returns a pod's object, which others have, too, or nil if it no longer exists.
func (s *Simulation) current(key string) *v1.Pod {
	object, _ := s.store.of((*v1.Pod)(nil)).get(key).(*v1.Pod)
	return object
}

// shallow returns a copy of a pod whose fields can be replaced. What they point to is shared by thousands of pods.
func shallow(of *v1.Pod) *v1.Pod {
	copied := *of
	return &copied
}

// bind sets the node of a pod, which runs at once or after its delay.
func (s *Simulation) bind(of *v1.Pod, to string) {
	p, on, object := s.pods[of.Namespace+"/"+of.Name], s.nodes[to], s.current(of.Namespace+"/"+of.Name)
	if p == nil || object == nil || object.UID != of.UID {
		return
	}
	if on == nil {
		// The node went meanwhile. The garbage collector deletes such a pod.
		p.deleted = true
		s.end(p)
		s.replace(p, true)
		return
	}
	object = shallow(object)
	object.Spec.NodeName = to
	now := metav1.Now()
	object.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: now}}
	p.bound = s.now()
	s.place(p, on)
	s.keepRecord(p)
	s.store.put(object)
	// Kubelet accepts it.
	object = shallow(object)
	object.Status.StartTime = &now
	if p.workload.StartDelay > 0 {
		s.after(p.workload.StartDelay, func() { s.run(p) })
	} else {
		object.Status.Phase = v1.PodRunning
		s.begin(p, object)
	}
	s.store.put(object)
}

// keepRecord keeps the scheduler's record of a pod's attempts, if it was asked for. Upstream's scheduler has no records.
func (s *Simulation) keepRecord(p *pod) {
	if !s.options.Explain[p.key] {
		return
	}
	field := reflect.ValueOf(s.Scheduler).Elem().FieldByName("Records")
	if !field.IsValid() {
		return
	}
	if recorder, ok := field.Interface().(*records.Recorder); ok && recorder != nil {
		parts := strings.SplitN(p.key, "/", 2)
		if record, found := recorder.Get(parts[0], parts[1]); found {
			p.record, _ = json.Marshal(record) // It can always be encoded.
		}
	}
}

// run makes a bound pod run.
func (s *Simulation) run(p *pod) {
	object := s.current(p.key)
	if p.ended || p.deleted || object == nil {
		return
	}
	object = shallow(object)
	object.Status.Phase = v1.PodRunning
	s.begin(p, object)
	s.store.put(object)
}

// begin marks a pod as running, and plans its end. One that replaces another makes a disruption possible again.
func (s *Simulation) begin(p *pod, object *v1.Pod) {
	p.started, p.running = s.now(), true
	if p.owes {
		p.owes = false
		s.allow(object, 1)
	}
	s.planEnd(p)
}

// planEnd plans the end of a pod that runs now.
func (s *Simulation) planEnd(p *pod) {
	if p.workload.Duration > 0 {
		s.after(p.workload.Duration, func() {
			if !p.ended && !p.deleted {
				if s.options.History {
					s.disrupt(p) // Its budgets wait for the pod that the history has in its place.
				}
				s.end(p)
			}
		})
	}
}

// place counts a pod on a node.
func (s *Simulation) place(p *pod, on *node) {
	s.moves++
	p.node = on
	s.measure.placed(p)
}

// end removes a pod, if there is one.
func (s *Simulation) end(p *pod) {
	if p == nil || p.ended {
		return
	}
	s.moves++
	p.ended = true
	delete(s.pods, p.key)
	s.measure.removed(p)
	if object := s.current(p.key); object != nil {
		s.store.remove(object)
		s.collect(object)
	}
}

// grace returns the grace period of a pod. It does not matter if only the end does.
func (s *Simulation) grace(of *v1.Pod) time.Duration {
	if s.options.Question || s.options.Again {
		return 0
	}
	if of.Spec.TerminationGracePeriodSeconds == nil {
		return defaultGracePeriod
	}
	return time.Duration(*of.Spec.TerminationGracePeriodSeconds) * time.Second
}

// terminate deletes a pod: its grace period begins, and its owner makes another one.
func (s *Simulation) terminate(of *v1.Pod) { s.delete(of, true, s.grace(of)) }

// delete starts the grace period of a pod, or ends one without a node. It is made again if its owner wants as many pods as before.
func (s *Simulation) delete(of *v1.Pod, again bool, grace time.Duration) {
	p, object := s.pods[of.Namespace+"/"+of.Name], s.current(of.Namespace+"/"+of.Name)
	if p == nil || p.deleted || object == nil || object.UID != of.UID {
		return
	}
	if p.node != nil {
		// As the API server does, it is the end of the grace period.
		ends := metav1.NewTime(time.Now().Add(grace))
		object = shallow(object)
		object.DeletionTimestamp = &ends
		s.store.put(object)
		if again {
			s.measure.evicted(p)
		}
		s.disrupt(p)
		s.finishTermination(p, grace, again)
	} else {
		s.end(p)
	}
	p.deleted = true
	if again {
		s.replace(p, p.node == nil)
	}
}

// disrupt makes the budgets of a pod that runs allow one disruption less, until another one runs in its place.
func (s *Simulation) disrupt(p *pod) {
	object := s.current(p.key)
	if p.owes || !p.running || p.deleted || object == nil {
		return
	}
	p.owes = true
	s.allow(object, -1)
}

// finishTermination ends a pod after its grace period.
func (s *Simulation) finishTermination(p *pod, after time.Duration, again bool) {
	p.deleted = true
	s.after(after, func() {
		if p.node == nil || !p.node.down { // Otherwise its kubelet does not confirm that.
			s.finish(p, again)
		}
	})
}

// finish ends a pod that was deleted. A StatefulSet makes the next one only now.
func (s *Simulation) finish(p *pod, again bool) {
	if p.ended {
		return
	}
	s.end(p)
	if again && strings.HasPrefix(p.workload.Owner, "StatefulSet/") {
		s.again(p)
	}
}

// replace makes a pod again, as its owner does. A StatefulSet waits until the old pod is gone.
func (s *Simulation) replace(p *pod, gone bool) {
	kind := strings.SplitN(p.workload.Owner, "/", 2)[0]
	if kind != "" && kind != "DaemonSet" && kind != "Node" && (kind != "StatefulSet" || gone) {
		s.again(p)
	}
}

func (s *Simulation) again(p *pod) {
	if p.unwanted {
		return
	}
	made := s.create(p.workload, strings.SplitN(p.key, "/", 2)[1], p.generation+1)
	made.owes, p.owes, p.next = p.owes, false, made
}

// taken notes the begin of an attempt.
func (s *Simulation) taken(info *framework.QueuedPodInfo) {
	if info == nil || info.Pod == nil {
		return
	}
	if p := s.pods[info.Pod.Namespace+"/"+info.Pod.Name]; p != nil {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		p.attempts++
		p.takenAt = s.now()
		s.measure.began(p)
	}
}

// recorder counts attempts by the scheduler's events.
type recorder struct{ simulation *Simulation }

func (s *Simulation) newRecorder(string) events.EventRecorder { return recorder{s} }

// Eventf implements events.EventRecorder: the scheduler tells the end of an attempt, and preemptions, only here.
func (r recorder) Eventf(regarding, related runtime.Object, _, reason, _, note string, args ...interface{}) {
	of, ok := regarding.(*v1.Pod)
	if !ok {
		return
	}
	s := r.simulation
	p := s.pods[of.Namespace+"/"+of.Name]
	if p == nil {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	switch reason {
	case "FailedScheduling":
		if p.reason = note; len(args) > 0 {
			p.reason = fmt.Sprintf(note, args...)
		}
		s.measure.decided(p)
	case "Scheduled":
		s.measure.decided(p)
	case "Preempted":
		by := ""
		if other, err := meta.Accessor(related); err == nil {
			by = other.GetNamespace() + "/" + other.GetName()
		}
		s.measure.preempted(p, by)
	}
}

var _ events.EventRecorder = recorder{}
