// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// tree is a manifest in edit. kyaml's own setters lose the comments of replaced nodes; these keep them.
type tree struct{ root *yaml.Node }

// place is the path to a node: keys (string) and indexes (int).
type place []any

func (p place) with(elements ...any) place { return append(append(place{}, p...), elements...) }

func (t tree) find(at place) *yaml.Node { return find(t.root, at...) }

// find returns the node at a path; nil: none.
func find(node *yaml.Node, at ...any) *yaml.Node {
	for _, element := range at {
		index := childIndex(node, element)
		if index < 0 {
			return nil
		}
		node = node.Content[index]
	}
	return node
}

// childIndex returns the index of a child's value in a node's contents; -1: none.
func childIndex(node *yaml.Node, element any) int {
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

// isEmpty reports whether a node is missing, null, or without entries.
func isEmpty(node *yaml.Node) bool {
	return node == nil || yaml.IsYNodeTaggedNull(node) || node.Kind != yaml.ScalarNode && len(node.Content) == 0
}

// set sets the value at a path, and keeps quotes and comments.
func (t tree) set(at place, value *yaml.Node) {
	parent, last := t.find(at[:len(at)-1]), at[len(at)-1]
	index := childIndex(parent, last)
	if index < 0 {
		parent.Content = append(parent.Content, scalar(fmt.Sprint(last)), value)
		return
	}
	old := parent.Content[index]
	switch {
	case value.Kind == yaml.ScalarNode && old.Kind == yaml.ScalarNode:
		if !isEmpty(old) && old.Value == value.Value && old.ShortTag() == value.ShortTag() {
			return
		}
		if quotes := old.Style & (yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle); quotes != 0 {
			value.Style = quotes
		}
	case value.Kind == yaml.MappingNode && old.Kind == yaml.MappingNode && !isEmpty(old):
		for i := 0; i < len(value.Content); i += 2 {
			t.set(at.with(value.Content[i].Value), value.Content[i+1])
		}
		for i := len(old.Content) - 2; i >= 0; i -= 2 {
			if key := old.Content[i].Value; find(value, key) == nil {
				t.drop(at.with(key))
			}
		}
		return
	}
	value.HeadComment, value.LineComment, value.FootComment = old.HeadComment, old.LineComment, old.FootComment
	if value.Kind != yaml.ScalarNode && parent.Kind == yaml.MappingNode {
		// A key whose value is on the following lines cannot have a line comment.
		key := parent.Content[index-1]
		key.HeadComment = joinComments(key.HeadComment, key.LineComment, value.LineComment)
		key.LineComment, value.LineComment = "", ""
	}
	parent.Content[index] = value
}

// setEntries sets keys of a mapping, which it creates if needed, and keeps the other keys.
func (t tree) setEntries(at place, entries ...entry) {
	if isEmpty(t.find(at)) {
		t.set(at, mapping(entries...))
		return
	}
	for _, e := range entries {
		t.set(at.with(e.key), e.value)
	}
}

// setItem sets the matching item of a list, and appends it if there is none. It removes further matches.
func (t tree) setItem(list place, matches func(*yaml.Node) bool, value *yaml.Node) {
	node := t.find(list)
	if isEmpty(node) {
		t.set(list, sequence(value))
		return
	}
	first := -1
	for i := len(node.Content) - 1; i >= 0; i-- {
		if matches(node.Content[i]) {
			if first >= 0 {
				t.drop(list.with(first))
			}
			first = i
		}
	}
	if first < 0 {
		node.Content = append(node.Content, value)
		return
	}
	t.set(list.with(first), value)
}

// dropItems removes the matching items from a list, and an empty list itself.
func (t tree) dropItems(list place, matches func(*yaml.Node) bool) {
	if node := t.find(list); !isEmpty(node) {
		for i := len(node.Content) - 1; i >= 0; i-- {
			if matches(node.Content[i]) {
				t.drop(list.with(i))
			}
		}
	}
}

// drop removes the node at a path, and its parent if that is then empty. It keeps the comments around the node.
func (t tree) drop(at place) {
	parent := t.find(at[:len(at)-1])
	if parent == nil {
		return
	}
	index := childIndex(parent, at[len(at)-1])
	if index < 0 {
		return
	}
	from := index
	if parent.Kind == yaml.MappingNode {
		from--
	}
	var comments []string
	for _, node := range parent.Content[from : index+1] {
		comments = append(comments, node.HeadComment, node.FootComment)
	}
	around := joinComments(comments...)
	switch {
	case len(parent.Content) == index+1-from:
		parent.HeadComment = joinComments(parent.HeadComment, around)
		t.drop(at[:len(at)-1])
		return
	case index+1 < len(parent.Content):
		next := parent.Content[index+1]
		next.HeadComment = joinComments(around, next.HeadComment)
	case parent.Kind == yaml.MappingNode:
		before := parent.Content[from-2]
		before.FootComment = joinComments(before.FootComment, around)
	default:
		before := parent.Content[from-1]
		before.FootComment = joinComments(before.FootComment, around)
	}
	parent.Content = append(parent.Content[:from], parent.Content[index+1:]...)
}

// joinComments joins comments with line breaks.
func joinComments(comments ...string) string {
	var lines []string
	for _, comment := range comments {
		if comment != "" {
			lines = append(lines, comment)
		}
	}
	return strings.Join(lines, "\n")
}

func scalar(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: yaml.NodeTagString, Value: value}
}

// quoted returns a quoted scalar, for values that look like a number or a time.
func quoted(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: yaml.NodeTagString, Value: value, Style: yaml.DoubleQuotedStyle}
}

func sequence(items ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: yaml.NodeTagSeq, Content: items}
}

// entry is a key with its value.
type entry struct {
	key   string
	value *yaml.Node
}

func mapping(entries ...entry) *yaml.Node {
	node := &yaml.Node{Kind: yaml.MappingNode, Tag: yaml.NodeTagMap}
	for _, e := range entries {
		node.Content = append(node.Content, scalar(e.key), e.value)
	}
	return node
}
