// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func newLease(name, holder string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder},
	}
}

// newPod returns a pod that runs a command on a node, in the host's network.
func newPod(name, node string, command ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name},
		Spec:       corev1.PodSpec{NodeName: node, HostNetwork: true, Containers: []corev1.Container{{Command: command}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

const identity = "_2f0dbbc2-5d59-4e4f-9b3f-1c7c1b2f8f0a"

func TestLeaderIsFound(t *testing.T) {
	inOwnNetwork := newPod("second-scheduler-6c5f7-x2x4k", "cp1", "kube-scheduler", "--config=c", "--secure-port=10260")
	inOwnNetwork.Spec.HostNetwork = false
	byImage := newPod("kube-scheduler-cp1", "cp1")
	byImage.Spec.Containers = []corev1.Container{{Name: "sidecar", Image: "other"}, {Image: "registry.k8s.io/kube-scheduler:v1.23.17", Args: []string{"--secure-port", "1", "--secure-port=2"}}}
	pending := newPod("kube-scheduler-cp1", "cp1", "kube-scheduler")
	pending.Status.Phase = corev1.PodPending
	second := lease{Namespace: "kube-system", Name: "second-scheduler"}
	for _, tt := range []struct {
		name    string
		lease   lease
		objects []runtime.Object
		want    leader
		err     string
	}{
		{"kubeadm's static pod, named for its node", schedulersLease,
			[]runtime.Object{newLease("kube-scheduler", "cp1"+identity), newPod("kube-scheduler-cp1", "cp1", "kube-scheduler", "--leader-elect=true")},
			leader{"cp1" + identity, "kube-system", "kube-scheduler-cp1", 10259}, ""},
		{"a host that is known with its domain, and writes itself in capitals", schedulersLease,
			[]runtime.Object{newLease("kube-scheduler", "CP1.example.org"+identity), newPod("kube-scheduler-cp1", "cp1", "kube-scheduler"), newPod("kube-scheduler-cp2", "cp2", "kube-scheduler")},
			leader{"CP1.example.org" + identity, "kube-system", "kube-scheduler-cp1", 10259}, ""},
		{"a node that is known with its domain", schedulersLease,
			[]runtime.Object{newLease("kube-scheduler", "cp1"+identity), newPod("kube-scheduler-cp1.example.org", "cp1.example.org", "kube-scheduler")},
			leader{"cp1" + identity, "kube-system", "kube-scheduler-cp1.example.org", 10259}, ""},
		{"a second scheduler, in its own network", second,
			[]runtime.Object{newLease("second-scheduler", inOwnNetwork.Name+identity), inOwnNetwork, newPod("kube-scheduler-cp1", "cp1", "kube-scheduler")},
			leader{inOwnNetwork.Name + identity, "kube-system", inOwnNetwork.Name, 10260}, ""},
		{"a second scheduler, in the host's network beside the stock one", second,
			[]runtime.Object{newLease("second-scheduler", "cp1"+identity), newPod("other", "cp1", "/bin/sh", "-c", "exec /usr/local/bin/kube-scheduler --secure-port=10300"), newPod("kube-scheduler-cp1", "cp1", "kube-scheduler")},
			leader{"cp1" + identity, "kube-system", "other", 10300}, ""},
		{"a container that leaves the command to its image; the last of two flags counts", schedulersLease,
			[]runtime.Object{newLease("kube-scheduler", "cp1"+identity), byImage},
			leader{"cp1" + identity, "kube-system", "kube-scheduler-cp1", 2}, ""},
		{"no lease", schedulersLease, nil, leader{}, "there is no lease kube-system/kube-scheduler"},
		{"no holder", schedulersLease, []runtime.Object{newLease("kube-scheduler", "")}, leader{}, "no scheduler holds the lease"},
		{"a holder without a pod", schedulersLease,
			[]runtime.Object{newLease("kube-scheduler", "cp1"+identity), newPod("kube-scheduler-cp2", "cp2", "kube-scheduler"), newPod("kube-scheduler-cp1", "cp1", "nginx")},
			leader{}, `"cp1` + identity + `" holds the lease kube-system/kube-scheduler, but namespace kube-system has no kube-scheduler pod`},
		{"two that could be it", second,
			[]runtime.Object{newLease("second-scheduler", "cp1"+identity), newPod("a", "cp1", "kube-scheduler"), newPod("b", "cp1", "kube-scheduler")},
			leader{}, "several schedulers run there: a and b"},
		{"a pod that is not running", schedulersLease, []runtime.Object{newLease("kube-scheduler", "cp1"+identity), pending}, leader{}, "is not running: its phase is Pending"},
		{"a scheduler without a secure port", schedulersLease,
			[]runtime.Object{newLease("kube-scheduler", "cp1"+identity), newPod("kube-scheduler-cp1", "cp1", "kube-scheduler", "--secure-port=0")},
			leader{}, `its --secure-port is "0"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := find(t.Context(), fake.NewSimpleClientset(tt.objects...), tt.lease)
			if tt.err == "" && (err != nil || got != tt.want) {
				t.Errorf("found %+v (%v), want %+v", got, err, tt.want)
			}
			if tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) || !strings.Contains(err.Error(), "next: ")) {
				t.Errorf("got %+v and %v, want %q, and what is next", got, err, tt.err)
			}
		})
	}
}

func TestMissingRightsAreNamed(t *testing.T) {
	for _, tt := range []struct{ verb, resource, want, next string }{
		{"get", "leases", "you are not allowed to get leases.coordination.k8s.io/kube-scheduler in namespace kube-system",
			"kubectl auth can-i get leases.coordination.k8s.io/kube-scheduler --namespace kube-system"},
		{"get", "pods", "you are not allowed to get pods/kube-scheduler-cp1 in namespace kube-system", "kubectl auth can-i get pods/kube-scheduler-cp1 --namespace kube-system"},
		{"list", "pods", "you are not allowed to list pods in namespace kube-system", "kubectl auth can-i list pods --namespace kube-system"},
	} {
		client := fake.NewSimpleClientset(newLease("kube-scheduler", "cp1"+identity))
		client.PrependReactor(tt.verb, tt.resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: tt.resource}, "", nil)
		})
		_, err := find(t.Context(), client, schedulersLease)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "next: "+tt.next) {
			t.Errorf("got %v, want %q and %q", err, tt.want, tt.next)
		}
	}
}

// A user who may not read the first pod may still read the pod that leads.
func TestAnotherNameThatIsAllowed(t *testing.T) {
	client := fake.NewSimpleClientset(newLease("kube-scheduler", "cp1"+identity), newPod("cp1", "cp1", "kube-scheduler"))
	client.PrependReactor("get", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if name := action.(clienttesting.GetAction).GetName(); name != "cp1" {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, name, nil)
		}
		return false, nil, nil
	})
	if got, err := find(t.Context(), client, schedulersLease); err != nil || got.pod != "cp1" {
		t.Errorf("found %+v (%v)", got, err)
	}
}

func TestLeaseIsNamespaceAndName(t *testing.T) {
	if got, err := parseLease("kube-system/second-scheduler"); err != nil || got != (lease{Namespace: "kube-system", Name: "second-scheduler"}) {
		t.Errorf("got %v (%v)", got, err)
	}
	for _, wrong := range []string{"", "second-scheduler", "/a", "a/", "a/b/c"} {
		if _, err := parseLease(wrong); err == nil {
			t.Errorf("%q was taken", wrong)
		}
	}
}
