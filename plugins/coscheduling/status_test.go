// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
)

func nameOf(object *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

func phaseOf(pl *Coscheduling, object *unstructured.Unstructured) string {
	pl.groups.mutex.RLock()
	defer pl.groups.mutex.RUnlock()
	return pl.groups.byName[nameOf(object)].object.phase
}

// bindAll binds some pods of a gang at the same time.
func (w *world) bindAll(pods int) {
	var binding sync.WaitGroup
	for i := 0; i < pods; i++ {
		pod := podOf(fmt.Sprint(i), "g")
		w.set(pod)
		binding.Add(1)
		go func() {
			defer binding.Done()
			w.PostBind(context.Background(), nil, pod.Node("n").Obj(), "n")
		}()
	}
	binding.Wait()
}

// patched returns the fields of the patches of the status.
func (w *world) patched() []string {
	var patches []string
	for _, action := range w.custom.Actions() {
		if patch, ok := action.(clienttesting.PatchAction); ok {
			patches = append(patches, string(patch.GetPatch()))
		}
	}
	return patches
}

func TestPhases(t *testing.T) {
	for _, tt := range []struct{ minMember, bound, patches int64 }{{50, 50, 2}, {50, 49, 1}, {1, 1, 1}, {2, 50, 2}} {
		t.Run(fmt.Sprintf("%d of %d", tt.bound, tt.minMember), func(t *testing.T) {
			w := newWorld(t, nil)
			object := podGroupOf("g", tt.minMember, 0)
			if _, err := w.custom.Resource(resource).Namespace("ns").Create(context.Background(), object, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			w.groups.groupChanged(nil, object)
			w.bindAll(int(tt.bound))
			got, err := w.custom.Resource(resource).Namespace("ns").Get(context.Background(), "g", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			status := decode(got)
			want := scheduled
			if tt.bound < tt.minMember {
				want = scheduling
			}
			// With few of many bound, the first patch may come when all are.
			if patches := w.patched(); status.phase != want || int64(len(patches)) > tt.patches {
				t.Errorf("the phase is %q after %q", status.phase, patches)
			}
			if tt.patches == 1 && want == scheduling && !status.started {
				t.Error("it has no scheduleStartTime")
			}
			w.bindAll(int(tt.bound))
			if patches := w.patched(); int64(len(patches)) > tt.patches {
				t.Errorf("the same phase was set again: %q", patches)
			}
		})
	}
}

// TestPhaseAfterFailedPatches has an API server that does not take Scheduling, while the last pod is bound.
func TestPhaseAfterFailedPatches(t *testing.T) {
	w := newWorld(t, nil)
	w.group("g", 2, 0)
	begun, last := make(chan struct{}), make(chan struct{})
	w.custom.PrependReactor("patch", "podgroups", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if strings.Contains(string(action.(clienttesting.PatchAction).GetPatch()), `"Scheduling"`) {
			close(begun)
			<-last
			return true, nil, errors.New("refused")
		}
		return true, podGroupOf("g", 2, 0), nil
	})
	first, second := podOf("a", "g"), podOf("b", "g")
	w.set(first, second)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.PostBind(context.Background(), nil, first.Node("n").Obj(), "n")
	}()
	<-begun
	w.PostBind(context.Background(), nil, second.Node("n").Obj(), "n")
	close(last)
	<-done
	if patches := w.patched(); len(patches) != 2 || patches[1] != `{"status":{"phase":"Scheduled","scheduled":2}}` {
		t.Errorf("patches are %q", patches)
	}
}
