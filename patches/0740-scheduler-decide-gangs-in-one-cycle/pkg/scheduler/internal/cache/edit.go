// SPDX-License-Identifier: Apache-2.0

package cache

import "k8s.io/kubernetes/pkg/scheduler/framework"

// edit is a change of a snapshot that is not in the cache.
type edit struct {
	node   *framework.NodeInfo
	before framework.NodeInfo
}

// Edit changes a copy of a node in the snapshot. It must be undone before the next update.
func (s *Snapshot) Edit(name string, change func(*framework.NodeInfo) error) error {
	node, err := s.Get(name)
	if err != nil {
		return err
	}
	edited := node.WithOwnClaims().Clone()
	if err := change(edited); err != nil {
		return err
	}
	s.edits = append(s.edits, edit{node, *node})
	s.replace(node, edited)
	return nil
}

// Edits returns the number of edits.
func (s *Snapshot) Edits() int { return len(s.edits) }

// Undo undoes all edits but the first n.
func (s *Snapshot) Undo(n int) {
	for i := len(s.edits) - 1; i >= n; i-- {
		s.replace(s.edits[i].node, &s.edits[i].before)
		s.edits[i] = edit{}
	}
	if n < len(s.edits) {
		s.edits = s.edits[:n]
	}
}

// replace is what UpdateSnapshot does for a node that changed.
func (s *Snapshot) replace(node, by *framework.NodeInfo) {
	position := s.changes.now()
	affinity := (len(node.PodsWithAffinity) > 0) != (len(by.PodsWithAffinity) > 0)
	requiredAntiAffinity := (len(node.PodsWithRequiredAntiAffinity) > 0) != (len(by.PodsWithRequiredAntiAffinity) > 0)
	s.podIndex.Update(by)
	*node = *by
	s.changes.add(node)
	s.move(position, affinity, requiredAntiAffinity)
	for _, call := range s.onUpdate {
		call()
	}
}
