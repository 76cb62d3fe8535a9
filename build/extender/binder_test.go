// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// bindingOf is what a scheduler sends to bind a pod.
func bindingOf(pod *corev1.Pod, node string) extenderv1.ExtenderBindingArgs {
	return extenderv1.ExtenderBindingArgs{PodName: pod.Name, PodNamespace: pod.Namespace, PodUID: pod.UID, Node: node}
}

func TestBind(t *testing.T) {
	pod := newPod()
	another := pod.DeepCopy()
	another.UID = "of-another-pod-with-that-name"
	bindings := corev1.Resource("pods/binding")
	for name, test := range map[string]struct {
		node string
		of   *corev1.Pod
		// refuse is the API server's answer to the binding.
		refuse error
		want   string
	}{
		"free":                                  {"", pod, nil, ""},
		"bound there already":                   {"a", pod, nil, ""},
		"bound elsewhere":                       {"b", pod, nil, "it is bound to node b"},
		"another pod with that name":            {"", another, nil, "Precondition failed"},
		"another pod with that name, bound":     {"a", another, nil, "Precondition failed"},
		"bound, but the answer was lost":        {"a", pod, errors.New("connection reset"), ""},
		"not bound, and the answer was lost":    {"", pod, errors.New("connection reset"), "connection reset"},
		"forbidden":                             {"", pod, apierrors.NewForbidden(bindings, pod.Name, errors.New("no")), "is forbidden"},
		"being deleted":                         {"", pod, apierrors.NewConflict(bindings, pod.Name, errors.New("is being deleted")), "is being deleted"},
		"another pod, bound, lost on the way":   {"a", another, errors.New("connection reset"), "connection reset"},
		"bound elsewhere, and the answer lost":  {"b", pod, errors.New("connection reset"), "it is bound to node b"},
		"the API server says it exists already": {"a", pod, apierrors.NewAlreadyExists(bindings, pod.Name), ""},
	} {
		t.Run(name, func(t *testing.T) {
			there := pod.DeepCopy()
			there.Spec.NodeName = test.node
			f := newFixture(t, byDiskType, generous, there)
			f.refuse = test.refuse
			// Whatever it is, it is the same again.
			for range 2 {
				var result extenderv1.ExtenderBindingResult
				f.post(t, "bind", bindingOf(test.of, "a"), &result)
				if (result.Error == "") != (test.want == "") || !strings.Contains(result.Error, test.want) {
					t.Errorf("got %q, want %q", result.Error, test.want)
				}
			}
			want := test.node
			if want == "" && test.want == "" {
				want = "a"
			}
			after, err := f.client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
			if err != nil || after.Spec.NodeName != want {
				t.Errorf("the pod is on %q (%v), want %q", after.Spec.NodeName, err, want)
			}
		})
	}
}

func TestBindOfPodThatIsNotThere(t *testing.T) {
	f := newFixture(t, byDiskType, generous)
	var result extenderv1.ExtenderBindingResult
	f.post(t, "bind", bindingOf(newPod(), "a"), &result)
	if !strings.Contains(result.Error, "cannot bind pod default/incoming to node a") || !strings.Contains(result.Error, "not found") {
		t.Errorf("got %q", result.Error)
	}
}

// TestBindAtOnce binds one pod from many sides to two nodes: those of one node win, all of them.
func TestBindAtOnce(t *testing.T) {
	pod := newPod()
	f := newFixture(t, byDiskType, generous, pod)
	var mutex sync.Mutex
	won := map[string]int{}
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			node := fmt.Sprintf("node-%d", i%2)
			var result extenderv1.ExtenderBindingResult
			f.post(t, "bind", bindingOf(pod, node), &result)
			mutex.Lock()
			defer mutex.Unlock()
			if result.Error == "" {
				won[node]++
			}
		})
	}
	group.Wait()
	after, err := f.client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(won) != 1 || won[after.Spec.NodeName] != 8 {
		t.Errorf("the pod is on %s, and these were told that they bound it: %v", after.Spec.NodeName, won)
	}
}

func TestBindIsRefusedUnlessItIsAskedFor(t *testing.T) {
	f := newFixture(t, byDiskType, generous, diskNode("a", "ssd"))
	server := httptest.NewServer(NewHandler(f.decider, nil, generous))
	defer server.Close()
	f.url = server.URL
	var result extenderv1.ExtenderBindingResult
	f.post(t, "bind", &extenderv1.ExtenderBindingArgs{PodName: "p", PodNamespace: "default", PodUID: "p", Node: "a"}, &result)
	if !strings.Contains(result.Error, "--bind") {
		t.Errorf("%+v, want an error that names the flag", result)
	}
}
