// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"reflect"
	"testing"
)

// The watch breaks, and an object is deleted before the next list. Its last change still waits in the queue.
func TestReplaceDeletesObjectsWhoseChangesWait(t *testing.T) {
	for name, test := range map[string]struct {
		known   []interface{}
		changes func(*DeltaFIFO)
		want    Deltas
	}{
		"a new object, which nothing has been told about": {
			changes: func(f *DeltaFIFO) { f.Add(mkFifoObj("pod", 1)) },
			want: Deltas{
				{Added, mkFifoObj("pod", 1)},
				{Deleted, DeletedFinalStateUnknown{"pod", mkFifoObj("pod", 1)}},
			},
		},
		"a changed object: the deletion has its last state, such as the node of a pod": {
			known:   []interface{}{mkFifoObj("pod", 1)},
			changes: func(f *DeltaFIFO) { f.Update(mkFifoObj("pod", 2)) },
			want: Deltas{
				{Updated, mkFifoObj("pod", 2)},
				{Deleted, DeletedFinalStateUnknown{"pod", mkFifoObj("pod", 2)}},
			},
		},
		"a deleted object is deleted once": {
			known:   []interface{}{mkFifoObj("pod", 1)},
			changes: func(f *DeltaFIFO) { f.Delete(mkFifoObj("pod", 2)) },
			want:    Deltas{{Deleted, mkFifoObj("pod", 2)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := NewStore(testFifoObjectKeyFunc)
			store.Replace(test.known, "1")
			f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{KeyFunction: testFifoObjectKeyFunc, KnownObjects: store})
			test.changes(f)
			if err := f.Replace(nil, "2"); err != nil {
				t.Fatal(err)
			}
			if got := Pop(f); !reflect.DeepEqual(got, test.want) {
				t.Errorf("the object has the changes %v, want %v", got, test.want)
			}
		})
	}
}
