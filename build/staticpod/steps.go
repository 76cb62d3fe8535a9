// SPDX-License-Identifier: Apache-2.0

package staticpod

import (
	"fmt"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// place leads to a node: keys (string) and indexes (int).
type place []interface{}

func (p place) with(elements ...interface{}) place {
	return append(append(place{}, p...), elements...)
}

// step is one change of a tree. It is carried out twice: on the nodes, which says what the result has to mean, and in the text,
// which keeps the formatting.
type step struct {
	kind stepKind
	// at is the value to set, the list to append to, or what to drop.
	at    place
	value *yaml.Node
}

type stepKind int

const (
	// set gives a key or an item a value. The key may be new; an old value is a scalar, or null or empty.
	set stepKind = iota
	// add appends an item to a list that has items.
	add
	// drop takes out a key or an item; others remain beside it.
	drop
)

// planner collects the steps that a goal needs, and carries them out on a tree of its own as it goes.
type planner struct {
	root  *yaml.Node
	steps []step
}

func (p *planner) find(at place) *yaml.Node { return find(p.root, at) }

// find gives the node at a place; nil: there is none.
func find(root *yaml.Node, at place) *yaml.Node {
	node := root
	for _, element := range at {
		index := childIndex(node, element)
		if index < 0 {
			return nil
		}
		node = node.Content[index]
	}
	return node
}

// childIndex gives the place of a child's value among the contents of a node; -1: there is none.
func childIndex(node *yaml.Node, element interface{}) int {
	switch element := element.(type) {
	case string:
		if node.Kind == yaml.MappingNode {
			for i := 0; i < len(node.Content); i += 2 {
				if node.Content[i].Value == element {
					return i + 1
				}
			}
		}
	case int:
		if node.Kind == yaml.SequenceNode && element < len(node.Content) {
			return element
		}
	}
	return -1
}

// isEmpty tells whether there is nothing at a node: no node, null, no entries.
func isEmpty(node *yaml.Node) bool {
	return node == nil || yaml.IsYNodeTaggedNull(node) || (node.Kind != yaml.ScalarNode && len(node.Content) == 0)
}

// set makes the value at a place equal to the one that is wanted; what is in the way goes.
func (p *planner) set(at place, value *yaml.Node) {
	old := p.find(at)
	switch {
	case isEmpty(old):
	case value.Kind == yaml.ScalarNode && old.Kind == yaml.ScalarNode:
		if old.Value == value.Value && old.ShortTag() == value.ShortTag() {
			return
		}
	case value.Kind == yaml.MappingNode && old.Kind == yaml.MappingNode:
		for i := 0; i < len(value.Content); i += 2 {
			p.set(at.with(value.Content[i].Value), value.Content[i+1])
		}
		for i := len(old.Content) - 2; i >= 0; i -= 2 {
			if key := old.Content[i].Value; find(value, place{key}) == nil {
				p.do(step{kind: drop, at: at.with(key)})
			}
		}
		return
	default:
		p.do(step{kind: drop, at: at})
	}
	p.do(step{kind: set, at: at, value: value})
}

// setEntries sets keys of a mapping, which may be missing as yet. Its other keys stay.
func (p *planner) setEntries(at place, entries ...entry) {
	switch {
	case len(entries) == 0:
	case isEmpty(p.find(at)):
		p.set(at, mapping(entries...))
	default:
		for _, e := range entries {
			p.set(at.with(e.key), e.value)
		}
	}
}

// setItem makes the one item of a list that matches equal to the one that is wanted. It takes further ones out, and appends
// it if there is none.
func (p *planner) setItem(list place, matches func(*yaml.Node) bool, value *yaml.Node) {
	node := p.find(list)
	if isEmpty(node) {
		p.set(list, &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{value}})
		return
	}
	first := -1
	for i := len(node.Content) - 1; i >= 0; i-- {
		if !matches(node.Content[i]) {
			continue
		}
		if first >= 0 {
			p.do(step{kind: drop, at: list.with(first)})
		}
		first = i
	}
	if first < 0 {
		p.do(step{kind: add, at: list, value: value})
		return
	}
	p.set(list.with(first), value)
}

// dropItems takes the matching items out of a list, and the list when nothing else is in it.
func (p *planner) dropItems(list place, matches func(*yaml.Node) bool) {
	node := p.find(list)
	if isEmpty(node) {
		return
	}
	for i := len(node.Content) - 1; i >= 0; i-- {
		if matches(node.Content[i]) {
			p.drop(list.with(i))
		}
	}
}

// drop takes out what is at a place, and its parent when nothing else is in it.
func (p *planner) drop(at place) {
	if p.find(at) == nil {
		return
	}
	parent := at[:len(at)-1]
	entries := len(p.find(parent).Content)
	if p.find(parent).Kind == yaml.MappingNode {
		entries /= 2
	}
	if entries == 1 {
		at = parent
	}
	p.do(step{kind: drop, at: at})
}

func (p *planner) do(s step) {
	p.steps = append(p.steps, s)
	s.change(p.root)
}

// change carries out a step on a tree. That the step is possible is up to the planner, which looks at the same tree.
func (s step) change(root *yaml.Node) {
	if s.kind == add {
		list := find(root, s.at)
		list.Content = append(list.Content, yaml.CopyYNode(s.value))
		return
	}
	last := s.at[len(s.at)-1]
	parent := find(root, s.at[:len(s.at)-1])
	index := childIndex(parent, last)
	switch {
	case s.kind == drop && parent.Kind == yaml.MappingNode:
		parent.Content = append(parent.Content[:index-1], parent.Content[index+1:]...)
	case s.kind == drop:
		parent.Content = append(parent.Content[:index], parent.Content[index+1:]...)
	case index < 0:
		parent.Content = append(parent.Content, yaml.NewScalarRNode(fmt.Sprint(last)).YNode(), yaml.CopyYNode(s.value))
	default:
		old := parent.Content[index]
		value := yaml.CopyYNode(s.value)
		if value.Kind == yaml.ScalarNode {
			value.Style = old.Style & (yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle)
		}
		value.HeadComment, value.LineComment, value.FootComment = old.HeadComment, old.LineComment, old.FootComment
		parent.Content[index] = value
	}
}

func text(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: yaml.NodeTagString, Value: value}
}

// quoted is for values that may look like a number or a time.
func quoted(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: yaml.NodeTagString, Value: value, Style: yaml.DoubleQuotedStyle}
}

func boolean(value bool) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: yaml.NodeTagBool, Value: fmt.Sprint(value)}
}

// entry is a key with its value.
type entry struct {
	key   string
	value *yaml.Node
}

func mapping(entries ...entry) *yaml.Node {
	node := &yaml.Node{Kind: yaml.MappingNode, Tag: yaml.NodeTagMap}
	for _, e := range entries {
		node.Content = append(node.Content, text(e.key), e.value)
	}
	return node
}
