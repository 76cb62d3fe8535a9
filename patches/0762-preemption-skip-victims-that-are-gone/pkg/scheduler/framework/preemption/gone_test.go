// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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
	for _, test := range []struct {
		name    string
		answer  error
		evicted []string
		fails   bool
	}{
		{"all are there", nil, []string{"first", "second", "third"}, false},
		{"the first has ended", apierrors.NewNotFound(pods, "first"), []string{"second", "third"}, false},
		{"another pod has the name of the first", apierrors.NewConflict(pods, "first", nil), []string{"second", "third"}, false},
		{"the first may not be deleted", apierrors.NewForbidden(pods, "first", nil), nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &cluster{client: clientsetfake.NewSimpleClientset(), recorder: events.NewFakeRecorder(9)}
			var asked []types.UID
			c.client.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
				request := action.(clienttesting.DeleteActionImpl)
				if of := request.DeleteOptions.Preconditions; of != nil && of.UID != nil {
					asked = append(asked, *of.UID)
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
			if status.IsSuccess() == test.fails {
				t.Errorf("got %v", status)
			}
			if want := []types.UID{"uid of first", "uid of second", "uid of third"}[:len(asked)]; len(asked) == 0 || cmp.Diff(want, asked) != "" {
				t.Errorf("requests for the UIDs %q, want %q", asked, want)
			}
			if events := len(c.recorder.Events); events != len(test.evicted) {
				t.Errorf("%d events, want one for each of %q", events, test.evicted)
			}
		})
	}
}
