// SPDX-License-Identifier: Apache-2.0

package volumebinding

import "k8s.io/kubernetes/pkg/scheduler/framework"

// MoveAfterCaches makes each added or changed PersistentVolume or claim move pods once more when the plugin's caches
// have it. The scheduler's own handlers may move them before, and then their attempts do not see it.
func (pl *VolumeBinding) MoveAfterCaches(move func(framework.ClusterEvent)) {
	if binder, ok := pl.Binder.(*volumeBinder); ok {
		moveAfter(binder.pvCache.(*pvAssumeCache).AssumeCache, move, framework.PersistentVolume, "Pv")
		moveAfter(binder.pvcCache.(*pvcAssumeCache).AssumeCache, move, framework.PersistentVolumeClaim, "Pvc")
	}
}

func moveAfter(c AssumeCache, move func(framework.ClusterEvent), resource framework.GVK, label string) {
	cache := c.(*assumeCache)
	cache.rwMutex.Lock()
	defer cache.rwMutex.Unlock()
	cache.move = func(action framework.ActionType, change string) {
		move(framework.ClusterEvent{Resource: resource, ActionType: action, Label: label + change})
	}
}

func (c *assumeCache) added(obj interface{}) {
	c.add(obj)
	c.moves(framework.Add, "Add")
}

func (c *assumeCache) updated(oldObj, newObj interface{}) {
	c.update(oldObj, newObj)
	c.moves(framework.Update, "Update")
}

func (c *assumeCache) moves(action framework.ActionType, change string) {
	c.rwMutex.RLock()
	move := c.move
	c.rwMutex.RUnlock()
	if move != nil {
		move(action, change)
	}
}
