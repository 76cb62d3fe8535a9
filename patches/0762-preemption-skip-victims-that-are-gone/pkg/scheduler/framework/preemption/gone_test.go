// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/storage"
	clientset "k8s.io/client-go/kubernetes"
	clientsetfake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// cluster is the handle of a scheduler without waiting and nominated pods.
type cluster struct {
	framework.Handle
	client   *clientsetfake.Clientset
	recorder *events.FakeRecorder
}

func (c *cluster) ClientSet() clientset.Interface                        { return c.client }
func (c *cluster) EventRecorder() events.EventRecorder                   { return c.recorder }
func (c *cluster) GetWaitingPod(types.UID) framework.WaitingPod          { return nil }
func (c *cluster) NominatedPodsForNode(node string) []*framework.PodInfo { return nil }

// TestVictimsThatAreGone evicts three pods. The API server answers the request for the first one as the test says.
func TestVictimsThatAreGone(t *testing.T) {
	metrics.Register()
	pods := v1.Resource("pods")
	another := storage.NewUIDPreconditions("old").Check("first", st.MakePod().UID("new").Obj())
	for _, test := range []struct {
		name    string
		answer  error
		evicted int
		fails   bool
	}{
		{"the first has ended", apierrors.NewNotFound(pods, "first"), 2, false},
		{"another pod has the name of the first", apierrors.NewConflict(pods, "first", another), 2, false},
		{"another conflict", apierrors.NewConflict(pods, "first", errors.New("a webhook refuses it")), 0, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &cluster{client: clientsetfake.NewSimpleClientset(), recorder: events.NewFakeRecorder(9)}
			c.client.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
				request := action.(clienttesting.DeleteActionImpl)
				if of := request.DeleteOptions.Preconditions; of == nil || of.UID == nil || string(*of.UID) != "uid of "+request.Name {
					t.Errorf("the request for %s does not name its UID", request.Name)
				}
				if request.Name == "first" {
					return true, nil, test.answer
				}
				return true, nil, nil
			})
			victims := &extenderv1.Victims{}
			for _, name := range []string{"first", "second", "third"} {
				victims.Pods = append(victims.Pods, st.MakePod().Name(name).UID("uid of "+name).Obj())
			}
			ev := &Evaluator{Handler: c}
			status := ev.prepareCandidate(&candidate{victims: victims, name: "node"}, st.MakePod().Name("preemptor").Obj(), "Plugin")
			if events := len(c.recorder.Events); events != test.evicted || status.IsSuccess() == test.fails {
				t.Errorf("%v, and %d events, want one for each of %d victims that were evicted", status, events, test.evicted)
			}
		})
	}
}
