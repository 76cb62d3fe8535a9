// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"kube-scheduler-fork/test/e2e/kubeadmnode"
)

// arrivalInterval is the time between two pods while schedulers are replaced.
const arrivalInterval = 250 * time.Millisecond

// load creates pods steadily, for the given schedulers in turn, and watches their bindings.
type load struct {
	client    kubernetes.Interface
	namespace string
	stop      context.CancelFunc
	done      sync.WaitGroup

	mutex   sync.Mutex
	pods    map[types.UID]*arrival
	order   []types.UID
	changed chan struct{}
	// twice are pods that were seen on two nodes one after the other, or disappeared after they were created.
	faults []string
}

// arrival is one pod of the load.
type arrival struct {
	name      string
	scheduler string
	created   time.Time
	bound     time.Time
	node      string
}

// startLoad starts to create pods for fake nodes. turn returns the scheduler of the next pod.
func startLoad(t *testing.T, client kubernetes.Interface, namespace string, turn func(i int) string) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{client: client, namespace: namespace, stop: cancel, pods: map[types.UID]*arrival{}, changed: make(chan struct{}, 1)}
	t.Cleanup(l.end)
	if _, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().Pods().Informer()
	informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    l.see,
		UpdateFunc: func(_, object any) { l.see(object) },
		DeleteFunc: func(object any) {
			if pod, ok := object.(*corev1.Pod); ok {
				l.fault("the pod %s was deleted", pod.Name)
			}
		},
	})
	// The watch continues after the arrivals: some of the pods are bound after the last one was created.
	factory.Start(t.Context().Done())
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("the watch of the load's pods did not begin")
	}
	l.done.Add(1)
	go func() {
		defer l.done.Done()
		ticker := time.NewTicker(arrivalInterval)
		defer ticker.Stop()
		for i := 0; ; i++ {
			l.create(ctx, i, turn(i))
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return l
}

// end stops creating pods.
func (l *load) end() {
	l.stop()
	l.done.Wait()
}

func (l *load) fault(format string, arguments ...any) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.faults = append(l.faults, fmt.Sprintf(format, arguments...))
}

func (l *load) create(ctx context.Context, i int, scheduler string) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%04d", i)},
		Spec: corev1.PodSpec{
			SchedulerName: scheduler,
			NodeSelector:  map[string]string{kubeadmnode.FakeNode: "fake"},
			Tolerations:   []corev1.Toleration{{Key: kubeadmnode.FakeNode, Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{Name: "c", Image: "fake", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("50Mi"),
			}}}},
		},
	}
	asked := time.Now()
	created, err := l.client.CoreV1().Pods(l.namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		if ctx.Err() == nil {
			l.fault("the pod %s could not be created: %v", pod.Name, err)
		}
		return
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	a := l.arrival(created.UID)
	a.name, a.scheduler, a.created = created.Name, scheduler, asked
}

// arrival returns the arrival of a pod; the lock must be held.
func (l *load) arrival(uid types.UID) *arrival {
	if l.pods[uid] == nil {
		l.pods[uid] = &arrival{}
		l.order = append(l.order, uid)
	}
	return l.pods[uid]
}

func (l *load) see(object any) {
	pod := object.(*corev1.Pod)
	l.mutex.Lock()
	defer l.mutex.Unlock()
	a := l.arrival(pod.UID)
	switch {
	case pod.Spec.NodeName == "" && a.node != "":
		l.faults = append(l.faults, fmt.Sprintf("the pod %s lost its node %s", pod.Name, a.node))
	case pod.Spec.NodeName == "":
		return
	case a.node == "":
		a.node, a.bound = pod.Spec.NodeName, time.Now()
	case a.node != pod.Spec.NodeName:
		l.faults = append(l.faults, fmt.Sprintf("the pod %s moved from %s to %s", pod.Name, a.node, pod.Spec.NodeName))
	}
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// settled stops creating pods, waits until every pod is bound, and returns their number.
func (l *load) settled(t *testing.T, within time.Duration) int {
	t.Helper()
	l.end()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	for {
		waiting := l.waiting()
		if len(waiting) == 0 {
			break
		}
		select {
		case <-l.changed:
		case <-deadline.C:
			name, _, _ := strings.Cut(waiting[0], " ")
			pod, err := l.client.CoreV1().Pods(l.namespace).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Fatalf("%d pods were not bound %s after the last one arrived, %s for one: %+v", len(waiting), within, waiting[0], pod.Status.Conditions)
		}
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, fault := range l.faults {
		t.Error(fault)
	}
	return len(l.order)
}

// untilBound waits until no pod is pending.
func (l *load) untilBound(t *testing.T, scheduler string) {
	t.Helper()
	deadline := time.NewTimer(stepTimeout)
	defer deadline.Stop()
	for {
		waiting := slices.ContainsFunc(l.waiting(), func(name string) bool { return strings.HasSuffix(name, "("+scheduler+")") })
		if !waiting {
			return
		}
		select {
		case <-l.changed:
		case <-deadline.C:
			t.Fatalf("pods still wait for %s after %s", scheduler, stepTimeout)
		}
	}
}

func (l *load) waiting() []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var names []string
	for _, uid := range l.order {
		if a := l.pods[uid]; a.bound.IsZero() {
			names = append(names, a.name+" ("+a.scheduler+")")
		}
	}
	return names
}

// gap returns the longest time, in a window, in which at least one pod was pending and none was bound.
func (l *load) gap(from, to time.Time) time.Duration {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	type change struct {
		at    time.Time
		bound bool
	}
	var changes []change
	for _, uid := range l.order {
		a := l.pods[uid]
		if !a.created.IsZero() {
			changes = append(changes, change{at: a.created})
		}
		if !a.bound.IsZero() {
			changes = append(changes, change{at: a.bound, bound: true})
		}
	}
	sort.Slice(changes, func(i, j int) bool { return changes[i].at.Before(changes[j].at) })
	var (
		longest time.Duration
		waiting int
		since   time.Time
	)
	for _, c := range changes {
		if waiting > 0 && c.bound {
			if c.at.After(from) && since.Before(to) {
				longest = max(longest, c.at.Sub(since))
			}
		}
		if c.bound {
			waiting--
			since = c.at
		} else {
			if waiting == 0 {
				since = c.at
			}
			waiting++
		}
	}
	return longest
}

// longestWait returns the longest wait of the bound pods that were created in a window.
func (l *load) longestWait(from, to time.Time) time.Duration {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var longest time.Duration
	for _, a := range l.pods {
		if !a.bound.IsZero() && a.created.After(from) && a.created.Before(to) {
			longest = max(longest, a.bound.Sub(a.created))
		}
	}
	return longest
}

// during runs work, and returns its duration and the longest gap from
// its start until a pod that was created after it is bound.
func (l *load) during(t *testing.T, work func()) (gap, took time.Duration) {
	t.Helper()
	from := time.Now()
	work()
	took = time.Since(from)
	finished := from.Add(took)
	deadline := time.NewTimer(stepTimeout)
	defer deadline.Stop()
	for !l.boundSince(finished) {
		select {
		case <-l.changed:
		case <-deadline.C:
			t.Fatalf("no pod that came since is bound after %s", stepTimeout)
		}
	}
	return l.gap(from, finished), took
}

// boundSince reports whether a pod that was created after a time is bound.
func (l *load) boundSince(at time.Time) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for i := len(l.order) - 1; i >= 0; i-- {
		if a := l.pods[l.order[i]]; !a.bound.IsZero() && a.created.After(at) {
			return true
		}
	}
	return false
}
