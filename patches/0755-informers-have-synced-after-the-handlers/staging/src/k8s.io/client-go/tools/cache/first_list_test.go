// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fcache "k8s.io/client-go/tools/cache/testing"
)

// TestHasSyncedWaitsForHandlers has a slow handler next to another one. The informer's store has all objects before.
func TestHasSyncedWaitsForHandlers(t *testing.T) {
	source := fcache.NewFakeControllerSource()
	for i := 0; i < 5; i++ {
		source.Add(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)}})
	}
	informer := NewSharedInformer(source, &v1.Pod{}, 0).(*sharedIndexInformer)
	// The slow handler waits before each object. What both fill has no lock: HasSynced is the only order.
	next, indexes := make(chan struct{}), [2]map[string]bool{{}, {}}
	informer.AddEventHandler(ResourceEventHandlerFuncs{AddFunc: func(obj interface{}) {
		<-next
		indexes[0][obj.(*v1.Pod).Name] = true
	}})
	informer.AddEventHandler(ResourceEventHandlerFuncs{AddFunc: func(obj interface{}) { indexes[1][obj.(*v1.Pod).Name] = true }})
	stop := make(chan struct{})
	defer close(stop)
	go informer.Run(stop)

	listed := func() bool {
		informer.startedLock.Lock()
		defer informer.startedLock.Unlock()
		return informer.controller != nil && informer.controller.HasSynced()
	}
	if !WaitForCacheSync(stop, listed) || len(informer.GetStore().List()) != 5 {
		t.Fatal("the informer has not listed the objects")
	}
	for i := 0; i < 5; i++ {
		if informer.HasSynced() {
			t.Fatalf("the informer has synced, and a handler has handled %d of 5 objects", i)
		}
		next <- struct{}{}
	}
	if !WaitForCacheSync(stop, informer.HasSynced) || len(indexes[0]) != 5 || len(indexes[1]) != 5 {
		t.Errorf("the handlers have handled %v", indexes)
	}
	// A later change does not undo it, even if it is never handled.
	source.Add(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "later"}})
	if !informer.HasSynced() {
		t.Error("the informer has synced no longer")
	}
	close(next)
}
