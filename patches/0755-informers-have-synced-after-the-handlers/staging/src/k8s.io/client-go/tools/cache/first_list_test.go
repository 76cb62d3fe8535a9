// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
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
	// A handler that panics has handled the object: the informer skips it.
	utilruntime.ReallyCrash = false
	calls := 0
	informer.AddEventHandler(ResourceEventHandlerFuncs{AddFunc: func(interface{}) {
		if calls++; calls == 5 {
			panic("the last object")
		}
	}})
	stop := make(chan struct{})
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
	WaitForCacheSync(stop, func() bool { return atomic.LoadUint64(&informer.processor.listeners[0].added) == 6 })
	if !informer.HasSynced() {
		t.Error("the informer has synced no longer")
	}
	// A stopped informer drops what it has not given to its handlers. Nobody may wait for that.
	informer.startedLock.Lock()
	informer.firstList = firstList{}
	informer.startedLock.Unlock()
	if informer.HasSynced() {
		t.Fatal("the first list has 6 objects now, and the slow handler has handled 5")
	}
	close(stop)
	ends := make(chan struct{})
	defer time.AfterFunc(time.Minute, func() { close(ends) }).Stop()
	if !WaitForCacheSync(ends, informer.HasSynced) {
		t.Error("the stopped informer has not synced")
	}
	close(next)
}
