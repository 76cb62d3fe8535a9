// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// scheduledReason is the reason of a scheduler's event for a bound pod.
const scheduledReason = "Scheduled"

// Placement is the result for a pod.
type Placement struct {
	// Namespace and Name are the pod's.
	Namespace, Name string
	// Asked is the schedulerName of the pod.
	Asked string
	// Served reports whether a profile of a running scheduler has that name.
	Served bool
	// Node is the pod's node, or empty if it is not bound.
	Node string
	// Profile is the profile of the pod's Scheduled event, or empty without such an event.
	Profile string
	// After is the time from the creation request until the pod was seen bound.
	After time.Duration
	// Message is the scheduler's message about a pod that is not bound.
	Message string
	// NotCreated reports whether the deadline passed before the pod was created.
	NotCreated bool
}

// Err returns an error if the pod was not bound by the profile that it asks for.
func (p Placement) Err() error {
	pod := p.Namespace + "/" + p.Name
	switch {
	case p.NotCreated:
		return fmt.Errorf("pod %s was not created before the timeout; "+
			"next: check the pods before it, or run again with more time (TIMEOUT=5m)", pod)
	case p.Profile != "" && p.Profile != p.Asked:
		return fmt.Errorf("pod %s asks for %s, but according to its Scheduled event %s bound it to %s; "+
			"next: run again with KEEP=yes and look at: kubectl get events -A -o yaml",
			pod, p.Asked, p.Profile, p.Node)
	case p.Node != "" && p.Profile == "":
		return fmt.Errorf("pod %s is bound to %s, but no Scheduled event names the profile; "+
			"next: run again with more time (TIMEOUT=5m)", pod, p.Node)
	case p.Node != "":
		return nil
	case !p.Served:
		return fmt.Errorf("pod %s stays Pending: the configuration has no profile for it; next: add to its profiles: "+
			"- schedulerName: %s", pod, p.Asked)
	case p.Message != "":
		return fmt.Errorf("pod %s is not bound: %s; "+
			"next: run again with KEEP=yes and look at: kubectl describe pod -n %s %s", pod, p.Message, p.Namespace, p.Name)
	}
	return fmt.Errorf("pod %s is not bound, and the scheduler reported no reason; "+
		"next: run again with KEEP=yes and read kube-scheduler.log", pod)
}

// observation is the watched state of a pod.
type observation struct {
	pod *corev1.Pod
	// bound is the time when the pod was first seen with a node.
	bound   time.Time
	profile string
	// nominated reports whether the pod has, or had, a nominated node.
	nominated bool
}

// settled reports whether the placement is final: the pod is bound and has its event, or the scheduler found no node,
// or no scheduler serves it. After another failure (reason SchedulerError, for example of an extender) or a preemption
// the scheduler soon tries again, so only the deadline ends the wait for that pod.
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
	return condition != nil && condition.Status == corev1.ConditionFalse &&
		condition.Reason == corev1.PodReasonUnschedulable && !o.nominated
}

func scheduledCondition(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodScheduled {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// observer keeps the watched states of pods and their Scheduled events.
type observer struct {
	mutex sync.Mutex
	seen  map[types.UID]observation
	// changed holds one token after a change.
	changed chan struct{}
}

func newObserver() *observer {
	return &observer{seen: map[types.UID]observation{}, changed: make(chan struct{}, 1)}
}

// note updates the observation of a pod.
func (o *observer) note(uid types.UID, change func(*observation)) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	known := o.seen[uid]
	change(&known)
	o.seen[uid] = known
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// of returns the observation of a pod.
func (o *observer) of(uid types.UID) observation {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.seen[uid]
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
		seen.pod, seen.nominated = pod, seen.nominated || pod.Status.NominatedNodeName != ""
	})
}

func (o *observer) event(object any) {
	event, ok := object.(*corev1.Event)
	if !ok {
		return
	}
	o.note(event.InvolvedObject.UID, func(seen *observation) { seen.profile = boundBy(event) })
}

// boundBy returns the profile that sent an event. The field depends on the events API that the scheduler uses.
func boundBy(event *corev1.Event) string {
	if event.ReportingController != "" {
		return event.ReportingController
	}
	return event.Source.Component
}

// Place creates pods and missing namespaces, and waits until each pod is bound and has its Scheduled event, or its
// scheduler found no node for it. It does not wait for pods that no running scheduler serves. The placements are in the
// order of the pods. At ctx's deadline they show what is missing, including pods that were not created. After an error
// the placements are unknown.
func (c *ControlPlane) Place(ctx context.Context, pods ...*corev1.Pod) ([]Placement, error) {
	ctx, cancel := c.supervisor.WhileAlive(ctx)
	defer cancel()
	if ctx.Err() != nil {
		return nil, endOf(ctx, fmt.Sprintf("%d pods were not created", len(pods)))
	}
	o := newObserver()
	stop, err := c.observe(ctx, o)
	if err != nil {
		return nil, err
	}
	defer stop()

	namespaces := sets.NewString()
	for _, pod := range pods {
		namespaces.Insert(pod.Namespace)
	}
	if err := c.createNamespaces(ctx, namespaces.List()...); err != nil {
		return nil, err
	}
	created := make([]*corev1.Pod, len(pods))
	requested := make([]time.Time, len(pods))
	for i, pod := range pods {
		requested[i] = time.Now()
		if created[i], err = c.client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			if created[i] = nil; late(ctx) {
				break
			}
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, fmt.Errorf("cannot create the pod %s/%s: %w; next: correct it", pod.Namespace, pod.Name, err)
		}
	}

	profiles := c.profiles()
	if err := o.await(ctx, created, profiles); err != nil {
		return nil, err
	}
	placements := make([]Placement, len(created))
	for i, pod := range created {
		if pod == nil {
			placements[i] = NotCreated(pods[i])
		} else {
			placements[i] = placementOf(pod, requested[i], o.of(pod.UID))
		}
		placements[i].Served = profiles.Has(placements[i].Asked)
	}
	return placements, nil
}

// quiet is the time without a change after which a pod that found no node is not expected to be retried soon: an
// eviction for another pod can make room for it, too.
const quiet = 2 * time.Second

// await waits until all pods are settled and, if a pod found no node, until nothing changes, or until ctx is at its
// deadline. It returns the cause of another end of ctx.
func (o *observer) await(ctx context.Context, pods []*corev1.Pod, profiles sets.String) error {
	for changed := time.Now(); ; {
		settled, bound := o.settled(pods, profiles)
		if settled && bound {
			return nil
		}
		var rest <-chan time.Time
		if settled {
			rest = time.After(time.Until(changed.Add(quiet)))
		}
		select {
		case <-o.changed:
			changed = time.Now()
		case <-rest:
			return nil
		case <-ctx.Done():
			if late(ctx) {
				return nil
			}
			return context.Cause(ctx)
		}
	}
}

// NotCreated returns the placement of a pod that was not created before the deadline.
func NotCreated(pod *corev1.Pod) Placement {
	return Placement{Namespace: pod.Namespace, Name: pod.Name, Asked: schedulerName(pod), NotCreated: true}
}

// late reports whether a context ended at its deadline.
func late(ctx context.Context) bool { return errors.Is(context.Cause(ctx), context.DeadlineExceeded) }

// endOf returns the error of a wait whose context ended.
func endOf(ctx context.Context, waitedFor string) error {
	if late(ctx) {
		return fmt.Errorf("%s: timed out (%w); "+
			"next: run again with more time (TIMEOUT=5m), or with KEEP=yes to inspect the cluster", waitedFor, context.Cause(ctx))
	}
	return context.Cause(ctx)
}

// createNamespaces creates missing namespaces.
func (c *ControlPlane) createNamespaces(ctx context.Context, names ...string) error {
	for _, name := range names {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := c.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
		if err != nil && ctx.Err() != nil {
			return endOf(ctx, "the namespace "+name+" was not created")
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("cannot create the namespace %s: %w; next: correct it", name, err)
		}
	}
	return nil
}

// AwaitRunning waits until the bound pods are running on their fake nodes.
func (c *ControlPlane) AwaitRunning(ctx context.Context, placements []Placement) error {
	waiting := sets.NewString()
	for _, placement := range placements {
		if placement.Node != "" {
			waiting.Insert(placement.Namespace + "/" + placement.Name)
		}
	}
	if waiting.Len() == 0 {
		return nil
	}
	list := cache.NewListWatchFromClient(c.client.CoreV1().RESTClient(), "pods", corev1.NamespaceAll, fields.Everything())
	err := c.until(ctx, list, &corev1.Pod{}, func(event watch.Event) (bool, error) {
		if pod, ok := event.Object.(*corev1.Pod); ok && pod.Status.Phase == corev1.PodRunning {
			waiting.Delete(pod.Namespace + "/" + pod.Name)
		}
		return waiting.Len() == 0, nil
	})
	if err == nil {
		return nil
	}
	what := fmt.Sprintf("%d bound pods are not running (%s is the first)", waiting.Len(), waiting.List()[0])
	if late(ctx) {
		return endOf(ctx, what)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// settled reports whether all pods are settled, and whether all that a scheduler serves are bound.
func (o *observer) settled(pods []*corev1.Pod, profiles sets.String) (settled, bound bool) {
	settled, bound = true, true
	for _, pod := range pods {
		if pod == nil {
			continue // it was not created
		}
		seen, served := o.of(pod.UID), profiles.Has(schedulerName(pod))
		settled = settled && seen.settled(served)
		bound = bound && (!served || seen.pod != nil && seen.pod.Spec.NodeName != "")
	}
	return settled, bound
}

func placementOf(pod *corev1.Pod, requested time.Time, seen observation) Placement {
	placement := Placement{Namespace: pod.Namespace, Name: pod.Name, Asked: schedulerName(pod), Profile: seen.profile}
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
func (c *ControlPlane) observe(ctx context.Context, o *observer) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	handler := func(handle func(any)) cache.ResourceEventHandlerFuncs {
		return cache.ResourceEventHandlerFuncs{AddFunc: handle, UpdateFunc: func(_, object any) { handle(object) }}
	}
	pods := informers.NewSharedInformerFactory(c.client, 0)
	podInformer := pods.Core().V1().Pods().Informer()
	podInformer.AddEventHandler(handler(o.pod))
	scheduledOnly := informers.WithTweakListOptions(func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector("reason", scheduledReason).String()
	})
	events := informers.NewSharedInformerFactoryWithOptions(c.client, 0, scheduledOnly)
	eventInformer := events.Core().V1().Events().Informer()
	eventInformer.AddEventHandler(handler(o.event))
	pods.Start(ctx.Done())
	events.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), podInformer.HasSynced, eventInformer.HasSynced) {
		defer cancel()
		return nil, endOf(ctx, "the pods and their events are not listed yet")
	}
	return cancel, nil
}
