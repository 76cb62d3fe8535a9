// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"reflect"
	"sync"

	v1 "k8s.io/api/core/v1"
)

// PreparedFilterPlugin is a FilterPlugin that reads the pod once per scheduling cycle, instead of once for each node.
type PreparedFilterPlugin interface {
	FilterPlugin
	// PrepareFilter is called after all PreFilter plugins. It returns a function with the result of Filter for a
	// node, or nil if Filter passes every node. Several goroutines may call the function at once. It is only called
	// with the state as PreFilter left it: Filter is called for clones, and after a pod was added or removed. The
	// function may return one status for several nodes. The status must name the failed plugin, and must not be
	// changed.
	PrepareFilter(state *CycleState, pod *v1.Pod) func(nodeInfo *NodeInfo) *Status
}

// BatchScorePlugin is a ScorePlugin that scores many nodes in one call.
type BatchScorePlugin interface {
	ScorePlugin
	// ScoreNodes sets the Score of each entry of scores to the result of Score for the node with the same index.
	// Names are already set. Several goroutines may call it at once, each with some of the nodes.
	ScoreNodes(state *CycleState, pod *v1.Pod, nodes []*NodeInfo, scores NodeScoreList) *Status
}

// AlikeScorePlugin is a ScorePlugin that often scores all nodes alike.
type AlikeScorePlugin interface {
	ScorePlugin
	// ScoresAlike reports whether Score returns the same for all nodes of this cycle, and NormalizeScore too, however
	// many they are. Then they are called for one node.
	ScoresAlike(state *CycleState) bool
}

// Prepared returns the framework's data for this cycle, or nil for a clone.
func (c *CycleState) Prepared() interface{} {
	if c == nil {
		return nil
	}
	return c.prepared
}

// SetPrepared sets the framework's data for this cycle. Clones do not get it. It must not be called while others use
// the state.
func (c *CycleState) SetPrepared(prepared interface{}) {
	if c != nil {
		c.prepared = prepared
	}
}

// Copy returns an independent Status with the same contents.
func (s *Status) Copy() *Status {
	if s == nil {
		return nil
	}
	copied := *s
	copied.reasons = append([]string(nil), s.reasons...)
	return &copied
}

// ownMethods caches the results of HasOwn.
var ownMethods sync.Map

// HasOwn reports whether a plugin implements an interface with its own methods, not with those of a plugin that it
// embeds. The embedded plugin's methods would ignore an overridden Filter or Score.
func HasOwn(plugin Plugin, methods reflect.Type) bool {
	type question struct{ plugin, methods reflect.Type }
	t := reflect.TypeOf(plugin)
	if answer, ok := ownMethods.Load(question{t, methods}); ok {
		return answer.(bool)
	}
	own, structure := true, t
	if t.Kind() == reflect.Ptr {
		structure = t.Elem()
	}
	for i := 0; structure.Kind() == reflect.Struct && i < structure.NumField(); i++ {
		field := structure.Field(i)
		if field.Anonymous && (field.Type.Implements(methods) || reflect.PtrTo(field.Type).Implements(methods)) {
			own = false
		}
	}
	ownMethods.Store(question{t, methods}, own)
	return own
}
