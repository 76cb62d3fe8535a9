// SPDX-License-Identifier: Apache-2.0

package cache

// preexistingKeys returns the keys of the known objects, and of those whose first change still waits in the queue.
func (f *DeltaFIFO) preexistingKeys() []string {
	keys := f.knownObjects.ListKeys()
	for key := range f.items {
		if _, known, err := f.knownObjects.GetByKey(key); !known && err == nil {
			keys = append(keys, key)
		}
	}
	return keys
}

// newestState returns an object as it is after the changes that wait in the queue.
func (f *DeltaFIFO) newestState(key string) (obj interface{}, exists bool, err error) {
	newest := f.items[key].Newest()
	if newest == nil {
		return f.knownObjects.GetByKey(key)
	}
	if deleted, ok := newest.Object.(DeletedFinalStateUnknown); ok {
		return deleted.Obj, true, nil
	}
	return newest.Object, true, nil
}
