// SPDX-License-Identifier: Apache-2.0

package volumebinding

import "k8s.io/kubernetes/pkg/scheduler/framework"

// MoveAfterCaches makes each added or changed PersistentVolume or claim move pods once more when the plugin's caches
// have it. The scheduler's own handlers may move them before, and then their attempts do not see it.
func (pl *VolumeBinding) MoveAfterCaches(move func(framework.ClusterEvent)) {
	binder, ok := pl.Binder.(*volumeBinder)
	if !ok {
		return
	}
	for _, caches := range []struct {
		cache    interface{}
		resource framework.GVK
		label    string
	}{
		{binder.pvCache.(*pvAssumeCache).AssumeCache, framework.PersistentVolume, "Pv"},
		{binder.pvcCache.(*pvcAssumeCache).AssumeCache, framework.PersistentVolumeClaim, "Pvc"},
	} {
		c, resource, label := caches.cache.(*assumeCache), caches.resource, caches.label
		c.rwMutex.Lock()
		c.move = func(action framework.ActionType) {
			event := framework.ClusterEvent{Resource: resource, ActionType: action, Label: label + "Update"}
			if action == framework.Add {
				event.Label = label + "Add"
			}
			move(event)
		}
		c.rwMutex.Unlock()
	}
}

func (c *assumeCache) added(obj interface{}) {
	c.add(obj)
	c.moveAfter(framework.Add)
}

func (c *assumeCache) updated(oldObj, newObj interface{}) {
	c.update(oldObj, newObj)
	c.moveAfter(framework.Update)
}

func (c *assumeCache) moveAfter(action framework.ActionType) {
	c.rwMutex.RLock()
	move := c.move
	c.rwMutex.RUnlock()
	if move != nil {
		move(action)
	}
}
