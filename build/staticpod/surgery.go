// SPDX-License-Identifier: Apache-2.0

package staticpod

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// splice replaces a piece of a text.
type splice struct {
	from, to int
	by       string
}

// operate carries out a step in the text and leaves every other byte as it is. An error says why that cannot be done there; the
// meaning of the result has to be proved by the caller.
func (d *document) operate(s step) (*document, error) {
	splices, err := d.splices(s)
	if err != nil {
		return nil, err
	}
	var result bytes.Buffer
	done := 0
	for _, splice := range splices {
		result.Write(d.text[done:splice.from])
		result.WriteString(splice.by)
		done = splice.to
	}
	result.Write(d.text[done:])
	return parse(result.Bytes())
}

func (d *document) splices(s step) ([]splice, error) {
	if s.kind == add {
		list, err := d.reach(s.at)
		if err != nil {
			return nil, err
		}
		if list.Style&yaml.FlowStyle != 0 {
			return d.addInFlow(list, d.flow(s.value, list.Content[len(list.Content)-1]))
		}
		return d.addItem(list, s.value)
	}
	parent, err := d.reach(s.at[:len(s.at)-1])
	if err != nil {
		return nil, err
	}
	last := s.at[len(s.at)-1]
	index := childIndex(parent, last)
	switch {
	case s.kind == drop && index < 0:
		return nil, d.unsupported(parent, fmt.Sprintf("%v comes from an anchor", last))
	case s.kind == drop && parent.Style&yaml.FlowStyle != 0:
		return d.dropInFlow(parent, index)
	case s.kind == drop:
		return d.dropLines(parent, index)
	case index >= 0 && s.value.Kind == yaml.ScalarNode:
		return d.setScalar(parent, index, s.value)
	case index >= 0:
		return d.fill(parent, index, s.value)
	case parent.Style&yaml.FlowStyle != 0:
		return d.addInFlow(parent, d.flow(text(fmt.Sprint(last)), parent.Content[0])+": "+d.flow(s.value, parent.Content[0]))
	}
	return d.addEntry(parent, fmt.Sprint(last), s.value)
}

// reach gives a list or mapping with entries that stands in the text itself.
func (d *document) reach(at place) (*yaml.Node, error) {
	node := find(d.root, at)
	switch {
	case node == nil:
		return nil, d.unsupported(d.root, fmt.Sprintf("%v comes from an anchor", at))
	case node.Kind == yaml.AliasNode:
		return nil, d.unsupported(node, "it is an alias of an anchor")
	case len(node.Content) == 0:
		return nil, d.unsupported(node, "it is empty")
	}
	return node, nil
}

// setScalar writes another scalar in the place of one, in the same quotes.
func (d *document) setScalar(parent *yaml.Node, index int, value *yaml.Node) ([]splice, error) {
	old := parent.Content[index]
	end, err := d.childEnd(parent, index)
	if err != nil {
		return nil, err
	}
	if isLeftOut(old) {
		return []splice{{end, end, " " + d.flow(value, old)}}, nil
	}
	start, err := d.value(old)
	if err != nil {
		return nil, err
	}
	return []splice{{start, end, d.scalar(value, old.Style, parent.Style&yaml.FlowStyle != 0)}}, nil
}

// fill gives entries to a list or mapping that is null or empty.
func (d *document) fill(parent *yaml.Node, index int, value *yaml.Node) ([]splice, error) {
	old := parent.Content[index]
	end, err := d.childEnd(parent, index)
	if err != nil {
		return nil, err
	}
	start := end
	if !isLeftOut(old) {
		if start, err = d.value(old); err != nil {
			return nil, err
		}
	}
	former := d.text[start:end]
	if parent.Style&yaml.FlowStyle != 0 || bytes.ContainsAny(former, "#\r\n") {
		switch filled := d.flow(value, old); {
		case start == end:
			return []splice{{start, end, " " + filled}}, nil
		case bytes.ContainsRune(former, '#'):
			// A comment stands between the brackets; it stays there.
			return []splice{{start + 1, start + 1, filled[1 : len(filled)-1]}}, nil
		default:
			return []splice{{start, end, filled}}, nil
		}
	}
	for start > 0 && d.text[start-1] == ' ' {
		start--
	}
	key := parent.Content[index-1]
	block, err := d.block(mapping(entry{key.Value, value}), key.Column-1)
	if err != nil {
		return nil, err
	}
	// The first line of the block is the key, which is there already.
	_, lines, _ := strings.Cut(block, "\n")
	eol := d.lineEnd(end)
	return []splice{{start, end, ""}, {eol, eol, d.asLines(lines, eol)}}, nil
}

// addEntry writes a new key under the last entry of a mapping.
func (d *document) addEntry(mapped *yaml.Node, key string, value *yaml.Node) ([]splice, error) {
	end, err := d.end(mapped)
	if err != nil {
		return nil, err
	}
	block, err := d.block(mapping(entry{key, value}), mapped.Content[0].Column-1)
	if err != nil {
		return nil, err
	}
	eol := d.lineEnd(end)
	return []splice{{eol, eol, d.asLines(block, eol)}}, nil
}

// addItem writes a new item under the last one of a list.
func (d *document) addItem(list, value *yaml.Node) ([]splice, error) {
	end, err := d.end(list)
	if err != nil {
		return nil, err
	}
	dash, width, err := d.dash(list, len(list.Content)-1)
	if err != nil {
		return nil, err
	}
	indentation := len([]rune(string(d.text[d.lineStart(dash):dash])))
	block, err := d.block(value, indentation+width)
	if err != nil {
		return nil, err
	}
	block = strings.Repeat(" ", indentation) + "-" + strings.Repeat(" ", width-1) + strings.TrimLeft(block, " ")
	eol := d.lineEnd(end)
	return []splice{{eol, eol, d.asLines(block, eol)}}, nil
}

// dash finds the dash of an item in a list, and how many columns further the item begins.
func (d *document) dash(list *yaml.Node, index int) (offset, width int, err error) {
	start, err := d.offset(list.Content[index])
	if err != nil {
		return 0, 0, err
	}
	for offset = start - 1; offset >= 0 && d.text[offset] == ' '; offset-- {
	}
	if offset < 0 || d.text[offset] != '-' {
		return 0, 0, d.unsupported(list.Content[index], "its dash does not stand in the same line")
	}
	return offset, max(start-offset, 2), nil
}

// dropLines takes out the lines of an entry.
func (d *document) dropLines(parent *yaml.Node, index int) ([]splice, error) {
	var start int
	var err error
	if parent.Kind == yaml.MappingNode {
		start, err = d.offset(parent.Content[index-1])
	} else {
		start, _, err = d.dash(parent, index)
	}
	if err != nil {
		return nil, err
	}
	end, err := d.childEnd(parent, index)
	if err != nil {
		return nil, err
	}
	from, to := d.lineStart(start), d.lineEnd(end)
	if len(bytes.TrimLeft(d.text[from:start], " ")) > 0 {
		return nil, d.unsupported(parent.Content[index], "another entry begins in the same line")
	}
	if from == 0 {
		return nil, d.unsupported(parent.Content[index], "it is the first line")
	}
	// The line goes with the line break before it: after the last one of a file there may be none.
	return []splice{{d.lineEnd(d.lineStart(from - 1)), to, ""}}, nil
}

// addInFlow writes an entry after the last one of a list in brackets or a mapping in braces: on a line of its own if that one has
// one.
func (d *document) addInFlow(collection *yaml.Node, entry string) ([]splice, error) {
	last := len(collection.Content) - 1
	end, err := d.childEnd(collection, last)
	if err != nil {
		return nil, err
	}
	if collection.Kind == yaml.MappingNode {
		last--
	}
	start, err := d.offset(collection.Content[last])
	if err != nil {
		return nil, err
	}
	indentation := d.text[d.lineStart(start):start]
	if len(bytes.TrimLeft(indentation, " \t")) > 0 {
		return []splice{{end, end, ", " + entry}}, nil
	}
	line := d.newline(end) + string(indentation) + entry
	rest := bytes.TrimLeft(d.text[end:d.lineEnd(end)], " \t")
	comma := bytes.HasPrefix(rest, []byte(","))
	rest = bytes.TrimLeft(bytes.TrimPrefix(rest, []byte(",")), " \t")
	if len(rest) > 0 && rest[0] != '#' {
		return []splice{{end, end, "," + line}}, nil
	}
	eol := d.lineEnd(end)
	if comma {
		return []splice{{eol, eol, line + ","}}, nil
	}
	return []splice{{end, end, ","}, {eol, eol, line}}, nil
}

// dropInFlow takes an entry out of brackets or braces, with one comma.
func (d *document) dropInFlow(collection *yaml.Node, index int) ([]splice, error) {
	first := index
	if collection.Kind == yaml.MappingNode {
		first--
	}
	from, err := d.offset(collection.Content[first])
	if err != nil {
		return nil, err
	}
	to, err := d.childEnd(collection, index)
	if err != nil {
		return nil, err
	}
	switch {
	case index+1 < len(collection.Content):
		to, err = d.offset(collection.Content[index+1])
	case first > 0:
		from, err = d.childEnd(collection, first-1)
	}
	return []splice{{from, to, ""}}, err
}

// asLines makes a block, which has no line break at its end, into lines that follow the one that ends at eol.
func (d *document) asLines(block string, eol int) string {
	newline := d.newline(eol)
	return newline + strings.ReplaceAll(block, "\n", newline)
}

// block writes a value as lines, indented, in the habits of the document.
func (d *document) block(value *yaml.Node, indentation int) (string, error) {
	var buffer bytes.Buffer
	encoder := yaml.NewEncoder(&buffer)
	encoder.SetIndent(d.indentationStep())
	if d.indentsLists() {
		encoder.DefaultSeqIndent()
	} else {
		encoder.CompactSeqIndent()
	}
	if err := encoder.Encode(value); err != nil {
		return "", err
	}
	if err := encoder.Close(); err != nil {
		return "", err
	}
	prefix := strings.Repeat(" ", indentation)
	return prefix + strings.ReplaceAll(strings.TrimRight(buffer.String(), "\n"), "\n", "\n"+prefix), nil
}

// indentationStep is by how much the document indents what stands under a key.
func (d *document) indentationStep() int {
	for _, key := range []string{"metadata", "spec"} {
		node := find(d.root, place{key})
		if node != nil && node.Kind == yaml.MappingNode && node.Style&yaml.FlowStyle == 0 && len(node.Content) > 0 {
			return max(node.Content[0].Column-d.root.Content[0].Column, 1)
		}
	}
	return yaml.DefaultIndent
}

// indentsLists tells whether the document indents a list under its key, by the first list in it.
func (d *document) indentsLists() bool {
	var visit func(node *yaml.Node) (indents, found bool)
	visit = func(node *yaml.Node) (bool, bool) {
		for i, child := range node.Content {
			if node.Kind == yaml.MappingNode && i%2 == 1 && child.Kind == yaml.SequenceNode && len(child.Content) > 0 &&
				child.Style&yaml.FlowStyle == 0 && child.Anchor == "" {
				return child.Column > node.Content[i-1].Column, true
			}
			if indents, found := visit(child); found {
				return indents, true
			}
		}
		return false, false
	}
	indents, _ := visit(d.root)
	return indents
}

// flow writes a value in one line, with quotes like those of a neighbour.
func (d *document) flow(value, neighbour *yaml.Node) string {
	var parts []string
	switch value.Kind {
	case yaml.MappingNode:
		for i := 0; i < len(value.Content); i += 2 {
			parts = append(parts, d.flow(value.Content[i], neighbour)+": "+d.flow(value.Content[i+1], neighbour))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case yaml.SequenceNode:
		for _, item := range value.Content {
			parts = append(parts, d.flow(item, neighbour))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	style := value.Style
	if style == 0 && neighbour.Kind == yaml.ScalarNode {
		style = neighbour.Style
	}
	return d.scalar(value, style, true)
}

var (
	// plainText is what needs no quotes, strictly: no blanks, nothing that YAML gives a meaning to.
	plainText = regexp.MustCompile(`^(--)?[A-Za-z/]([A-Za-z0-9/._=@:+-]*[A-Za-z0-9/._=@+-])?$`)
	// plainTextInFlow is the same between brackets, where older parsers do not accept a colon.
	plainTextInFlow = regexp.MustCompile(`^(--)?[A-Za-z/][A-Za-z0-9/._=@+-]*$`)
)

// scalar writes a scalar in a style, or in double quotes when it needs them.
func (d *document) scalar(value *yaml.Node, style yaml.Style, flow bool) string {
	plain := plainText
	if flow {
		plain = plainTextInFlow
	}
	switch {
	case value.Tag != yaml.NodeTagString:
		return value.Value
	case d.json || style&yaml.DoubleQuotedStyle != 0:
	case style&yaml.SingleQuotedStyle != 0 && !strings.ContainsAny(value.Value, "\n\r"):
		return "'" + strings.ReplaceAll(value.Value, "'", "''") + "'"
	case plain.MatchString(value.Value) && !yaml.IsValueNonString(value.Value):
		return value.Value
	}
	return doubleQuoted(value.Value)
}

// doubleQuoted writes a string in a form that is both JSON and YAML.
func doubleQuoted(value string) string {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	// Strings can always be encoded.
	_ = encoder.Encode(value)
	return strings.TrimSuffix(buffer.String(), "\n")
}
