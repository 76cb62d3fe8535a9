package controlplane

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// scheduledReason is the reason of the event that a scheduler sends when it has bound a pod.
const scheduledReason = "Scheduled"

// Placement is what became of a pod.
type Placement struct {
	// Namespace and Name are the pod's.
	Namespace, Name string
	// Asked is the scheduler that the pod asks for.
	Asked string
	// Served says that a profile of the running scheduler has that name. Nobody ever looks at a pod that is not served.
	Served bool
	// Node is where the pod was bound to; empty if it is not bound.
	Node string
	// Profile is which profile bound the pod, as its Scheduled event says; empty if there is no such event.
	Profile string
	// After is the time from the request to create the pod until it was seen bound.
	After time.Duration
	// Message is what the scheduler says about a pod that it did not bind.
	Message string
}

// Err is what is wrong with the placement of a pod that should be bound by the profile it asks for, or nil.
func (p Placement) Err() error {
	pod := p.Namespace + "/" + p.Name
	switch {
	case p.Profile != "" && p.Profile != p.Asked:
		return fmt.Errorf("pod %s asks for %s, but its Scheduled event says that %s bound it to %s; "+
			"next: run again with --keep and look at: kubectl get events -A -o yaml",
			pod, p.Asked, p.Profile, p.Node)
	case p.Node != "" && p.Profile == "":
		return fmt.Errorf("pod %s is bound to %s, but no Scheduled event says by whom; "+
			"next: run again with a longer --timeout", pod, p.Node)
	case p.Node != "":
		return nil
	case !p.Served:
		return fmt.Errorf("pod %s stays Pending: the configuration has no profile for it; next: add to its profiles: "+
			"- schedulerName: %s", pod, p.Asked)
	case p.Message != "":
		return fmt.Errorf("pod %s is not bound: %s; next: run again with --keep and look at: kubectl describe pod -n %s %s",
			pod, p.Message, p.Namespace, p.Name)
	}
	return fmt.Errorf("pod %s is not bound, and the scheduler says nothing about it; "+
		"next: run again with --keep and look into kube-scheduler.log", pod)
}

// observation is what was seen of a pod so far.
type observation struct {
	pod *corev1.Pod
	// bound is when the pod was first seen with a node; zero before.
	bound   time.Time
	profile string
}

// settled tells whether there is nothing more to wait for: the pod is bound and it is known by whom, or the scheduler
// found no node for it, or nobody looks at it.
func (o *observation) settled(served bool) bool {
	switch {
	case o.pod == nil:
		return false
	case o.pod.Spec.NodeName != "":
		return o.profile != ""
	case !served:
		return true
	}
	condition := scheduledCondition(o.pod)
	return condition != nil && condition.Status == corev1.ConditionFalse && condition.Reason == corev1.PodReasonUnschedulable
}

func scheduledCondition(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodScheduled {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// observer watches pods and their Scheduled events.
type observer struct {
	mutex sync.Mutex
	seen  map[types.UID]*observation
	// changed holds one token when something was seen since it was last taken.
	changed chan struct{}
}

// note changes what is known of a pod.
func (o *observer) note(uid types.UID, change func(*observation)) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.seen[uid] == nil {
		o.seen[uid] = &observation{}
	}
	change(o.seen[uid])
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// of gives what is known of a pod.
func (o *observer) of(uid types.UID) observation {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if seen := o.seen[uid]; seen != nil {
		return *seen
	}
	return observation{}
}

func (o *observer) pod(object any) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	o.note(pod.UID, func(seen *observation) {
		if seen.bound.IsZero() && pod.Spec.NodeName != "" {
			seen.bound = time.Now()
		}
		seen.pod = pod
	})
}

func (o *observer) event(object any) {
	event, ok := object.(*corev1.Event)
	if !ok {
		return
	}
	o.note(event.InvolvedObject.UID, func(seen *observation) { seen.profile = boundBy(event) })
}

// boundBy gives the profile that sent an event. Which of the two fields holds it depends on the events API that the
// scheduler uses.
func boundBy(event *corev1.Event) string {
	if event.ReportingController != "" {
		return event.ReportingController
	}
	return event.Source.Component
}

// Place creates pods and waits until each of them is bound and its Scheduled event is there, or the scheduler has found
// no node for it. Pods for which the scheduler has no profile are created but not waited for. When ctx reaches its
// deadline, the placements say what is missing; they are in the order of the pods. An error means that the placements
// are not known.
func (s *Scheduler) Place(ctx context.Context, pods ...*corev1.Pod) ([]Placement, error) {
	ctx, cancel := s.plane.whileAlive(ctx)
	defer cancel()
	o := &observer{seen: map[types.UID]*observation{}, changed: make(chan struct{}, 1)}
	stop, err := s.observe(ctx, o)
	if err != nil {
		return nil, err
	}
	defer stop()

	created := make([]*corev1.Pod, len(pods))
	requested := make([]time.Time, len(pods))
	for i, pod := range pods {
		requested[i] = time.Now()
		if created[i], err = s.plane.client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, fmt.Errorf("cannot create the pod %s/%s: %w; next: correct it", pod.Namespace, pod.Name, err)
		}
	}

	for !s.settled(o, created) {
		select {
		case <-o.changed:
			continue
		case <-ctx.Done():
		}
		if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
			return nil, cause
		}
		break
	}
	placements := make([]Placement, len(created))
	for i, pod := range created {
		placements[i] = s.placement(pod, requested[i], o.of(pod.UID))
	}
	return placements, nil
}

func (s *Scheduler) settled(o *observer, pods []*corev1.Pod) bool {
	for _, pod := range pods {
		if seen := o.of(pod.UID); !seen.settled(s.Serves(pod)) {
			return false
		}
	}
	return true
}

func (s *Scheduler) placement(pod *corev1.Pod, requested time.Time, seen observation) Placement {
	placement := Placement{
		Namespace: pod.Namespace,
		Name:      pod.Name,
		Asked:     schedulerName(pod),
		Served:    s.Serves(pod),
		Profile:   seen.profile,
	}
	if seen.pod == nil {
		return placement
	}
	if placement.Node = seen.pod.Spec.NodeName; placement.Node != "" {
		placement.After = seen.bound.Sub(requested)
	} else if condition := scheduledCondition(seen.pod); condition != nil {
		placement.Message = condition.Message
	}
	return placement
}

// observe watches all pods and all Scheduled events until ctx ends or stop is called.
func (s *Scheduler) observe(ctx context.Context, o *observer) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	handler := func(handle func(any)) cache.ResourceEventHandlerFuncs {
		return cache.ResourceEventHandlerFuncs{AddFunc: handle, UpdateFunc: func(_, object any) { handle(object) }}
	}
	pods := informers.NewSharedInformerFactory(s.plane.client, 0)
	podInformer := pods.Core().V1().Pods().Informer()
	podInformer.AddEventHandler(handler(o.pod))
	scheduledOnly := informers.WithTweakListOptions(func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector("reason", scheduledReason).String()
	})
	events := informers.NewSharedInformerFactoryWithOptions(s.plane.client, 0, scheduledOnly)
	eventInformer := events.Core().V1().Events().Informer()
	eventInformer.AddEventHandler(handler(o.event))
	pods.Start(ctx.Done())
	events.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), podInformer.HasSynced, eventInformer.HasSynced) {
		defer cancel()
		return nil, context.Cause(ctx)
	}
	return cancel, nil
}
