// SPDX-License-Identifier: Apache-2.0

package staticpod

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	jsonnumbers "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/kyaml/yaml"
	kubernetesyaml "sigs.k8s.io/yaml"
)

// byteOrderMark may open a file; YAML parsers take it off.
const byteOrderMark = "\uFEFF"

// document is a manifest as text and as tree. The nodes of the tree know the line and the column where they begin.
type document struct {
	text []byte
	root *yaml.Node
	// json says that the manifest is JSON. kubelet takes what begins with a brace for JSON, and accepts nothing else then.
	json bool
	// lines holds the offset in text of the first byte of every line.
	lines []int
}

// read parses a manifest, and gives its byte order mark if it has one.
func read(manifest []byte) (d *document, mark []byte, err error) {
	if len(manifest) > MaxSize {
		return nil, nil, fmt.Errorf("the manifest has %d bytes and kubelet refuses more than %d; next: restore it",
			len(manifest), MaxSize)
	}
	text := bytes.TrimPrefix(manifest, []byte(byteOrderMark))
	d, err = parse(text)
	return d, manifest[:len(manifest)-len(text)], err
}

// parse reads the text of a manifest, without a byte order mark.
func parse(text []byte) (*document, error) {
	switch {
	case !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0:
		return nil, errors.New("the manifest is not UTF-8 text; next: convert it with iconv, or restore it")
	case len(bytes.TrimSpace(text)) == 0:
		return nil, errors.New("the manifest is empty; next: restore it")
	}
	d := &document{text: text, lines: lineStarts(text)}
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		d.json = true
		if !json.Valid(text) {
			return nil, errors.New("the manifest begins with { but is not JSON, so kubelet does not accept it; next: correct it")
		}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var first yaml.Node
	if err := decodeNext(decoder, &first); err != nil && d.json {
		// Some escapes of JSON, such as \/, are none of YAML.
		return nil, fmt.Errorf("the manifest is JSON with escapes that cannot be edited (%w); next: write it anew with: jq . FILE", err)
	} else if err != nil {
		return nil, fmt.Errorf("the manifest is not YAML: %w; next: correct it", err)
	}
	var next yaml.Node
	switch err := decodeNext(decoder, &next); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, fmt.Errorf("the manifest is not YAML: %w; next: correct it", err)
	case !yaml.IsYNodeEmptyDoc(&next) && !yaml.IsYNodeTaggedNull(next.Content[0]):
		return nil, fmt.Errorf("the manifest holds a second document (line %d) and kubelet reads the first one only; "+
			"next: put the second one into a file of its own, or delete it", next.Content[0].Line)
	}
	if first.Kind != yaml.DocumentNode || len(first.Content) != 1 || first.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("the manifest is not a Kubernetes object; next: give the path of the scheduler's manifest")
	}
	d.root = first.Content[0]
	if err := checkUniqueKeys(d.root); err != nil {
		return nil, err
	}
	return d, nil
}

// decodeNext decodes a document. The parser panics on some texts that are not YAML.
func decodeNext(decoder *yaml.Decoder, node *yaml.Node) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("the parser fails: %v", cause)
		}
	}()
	return decoder.Decode(node)
}

// checkUniqueKeys refuses what every reader understands in another way.
func checkUniqueKeys(node *yaml.Node) error {
	if node.Kind == yaml.MappingNode {
		lines := map[string]int{}
		for i := 0; i < len(node.Content); i += 2 {
			key := node.Content[i]
			if before, found := lines[key.Value]; found {
				return fmt.Errorf("the manifest has the key %q in line %d and again in line %d; next: delete one of them",
					key.Value, before, key.Line)
			}
			lines[key.Value] = key.Line
		}
	}
	for _, child := range node.Content {
		if err := checkUniqueKeys(child); err != nil {
			return err
		}
	}
	return nil
}

// decode gives the object as kubelet gets it.
func (d *document) decode() (map[string]interface{}, error) {
	text := d.text
	if !d.json {
		var err error
		if text, err = kubernetesyaml.YAMLToJSON(text); err != nil {
			return nil, fmt.Errorf("the manifest is not YAML as kubelet reads it: %w; next: correct it", err)
		}
	}
	object := map[string]interface{}{}
	if err := jsonnumbers.Unmarshal(text, &object); err != nil {
		return nil, fmt.Errorf("the manifest is not a Kubernetes object: %w; next: correct it", err)
	}
	return object, nil
}

// withoutAliases gives the tree with every alias and merge key written out, no node shared.
func (d *document) withoutAliases() (*yaml.Node, error) {
	if !hasAlias(d.root) {
		return yaml.NewRNode(d.root).Copy().YNode(), nil
	}
	// A copy would not do: its aliases lead to the nodes of the tree that it was copied from, and these would change.
	fresh, err := parse(d.text)
	if err != nil {
		return nil, err
	}
	whole := yaml.NewRNode(fresh.root)
	if err := whole.DeAnchor(); err != nil {
		return nil, fmt.Errorf("the manifest uses anchors in a way that cannot be followed: %w; next: write them out", err)
	}
	text, err := whole.String()
	if err != nil {
		return nil, err
	}
	again, err := parse([]byte(yamlStart(whole.YNode()) + text))
	if err != nil {
		return nil, err
	}
	return again.root, nil
}

func hasAlias(node *yaml.Node) bool {
	if node.Kind == yaml.AliasNode {
		return true
	}
	for _, child := range node.Content {
		if hasAlias(child) {
			return true
		}
	}
	return false
}

// lineBreak gives the length of the line break at the beginning of text; 0: there is none. These are the breaks of YAML 1.1,
// by which the parser counts lines.
func lineBreak(text []byte) int {
	// Most bytes are none: this is quick about them.
	if len(text) == 0 || text[0] > '\r' && text[0] < utf8.RuneSelf {
		return 0
	}
	for _, candidate := range []string{"\r\n", "\n", "\r", "\u0085", "\u2028", "\u2029"} {
		if bytes.HasPrefix(text, []byte(candidate)) {
			return len(candidate)
		}
	}
	return 0
}

func lineStarts(text []byte) []int {
	starts := []int{0}
	for i := 0; i < len(text); {
		if length := lineBreak(text[i:]); length > 0 {
			i += length
			starts = append(starts, i)
			continue
		}
		i++
	}
	return starts
}

// offset is where a node begins in the text: at its anchor or tag, if it has one.
func (d *document) offset(node *yaml.Node) (int, error) {
	if node.Line < 1 || node.Line > len(d.lines) {
		return 0, d.unsupported(node, "its place is unknown")
	}
	at := d.lines[node.Line-1]
	for column := 1; column < node.Column; column++ {
		if at >= len(d.text) {
			return 0, d.unsupported(node, "its place is unknown")
		}
		_, size := utf8.DecodeRune(d.text[at:])
		at += size
	}
	return at, nil
}

// value is where the value of a node begins, after its anchor and tag.
func (d *document) value(node *yaml.Node) (int, error) {
	at, err := d.offset(node)
	if err != nil {
		return 0, err
	}
	for at < len(d.text) && (d.text[at] == '!' || d.text[at] == '&') &&
		(node.Anchor != "" || node.Style&yaml.TaggedStyle != 0) {
		for at < len(d.text) && !strings.ContainsRune(" \t\r\n", rune(d.text[at])) {
			at++
		}
		at = d.skipSpace(at)
	}
	return at, nil
}

// end is where a node ends: the offset after its last byte.
func (d *document) end(node *yaml.Node) (int, error) {
	start, err := d.value(node)
	if err != nil {
		return 0, err
	}
	switch {
	case node.Kind == yaml.AliasNode:
		return start + len("*") + len(node.Value), nil
	case node.Kind == yaml.ScalarNode:
		return d.scalarEnd(node, start)
	case node.Style&yaml.FlowStyle != 0:
		return d.flowEnd(node, start)
	case len(node.Content) == 0:
		return 0, d.unsupported(node, "it is empty")
	}
	return d.childEnd(node, len(node.Content)-1)
}

// childEnd is where a child ends. A value that is left out ends where its key's colon or its dash ends.
func (d *document) childEnd(parent *yaml.Node, index int) (int, error) {
	child := parent.Content[index]
	if !isLeftOut(child) {
		return d.end(child)
	}
	if parent.Kind == yaml.MappingNode {
		return d.afterColon(parent, index-1)
	}
	// The parser places an empty item right after its dash.
	return d.offset(child)
}

// afterColon is the offset after the colon of a key; after the key itself, if it stands in braces without a colon.
func (d *document) afterColon(mapping *yaml.Node, key int) (int, error) {
	keyEnd, err := d.end(mapping.Content[key])
	if err != nil {
		return 0, err
	}
	at := keyEnd
	for at < len(d.text) && (d.text[at] == ' ' || d.text[at] == '\t' || lineBreak(d.text[at:]) > 0) {
		at++
	}
	switch {
	case at < len(d.text) && d.text[at] == ':':
		return at + 1, nil
	case mapping.Style&yaml.FlowStyle != 0:
		return keyEnd, nil
	}
	return 0, d.unsupported(mapping.Content[key], "no colon follows it")
}

func (d *document) scalarEnd(node *yaml.Node, start int) (int, error) {
	switch {
	case isLeftOut(node):
		return start, nil
	case node.Style&yaml.DoubleQuotedStyle != 0:
		for at := start + 1; at < len(d.text); at++ {
			switch d.text[at] {
			case '\\':
				at++
			case '"':
				return at + 1, nil
			}
		}
	case node.Style&yaml.SingleQuotedStyle != 0:
		for at := start + 1; at < len(d.text); at++ {
			if d.text[at] != '\'' {
				continue
			}
			if at+1 == len(d.text) || d.text[at+1] != '\'' {
				return at + 1, nil
			}
			at++
		}
	case node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return d.blockScalarEnd(start), nil
	default:
		return d.plainEnd(node, start)
	}
	return 0, d.unsupported(node, "its end is unknown")
}

// plainEnd finds the end of a plain scalar: of its one line, or of the line until which the lines make up the value.
func (d *document) plainEnd(node *yaml.Node, start int) (int, error) {
	if bytes.HasPrefix(d.text[start:], []byte(node.Value)) {
		return start + len(node.Value), nil
	}
	var folded strings.Builder
	breaks := 0
	for at := start; at < len(d.text); {
		eol := d.lineEnd(at)
		line := strings.Trim(string(d.text[at:eol]), " \t")
		if comment := strings.Index(line, " #"); comment >= 0 {
			line = strings.TrimRight(line[:comment], " \t")
		}
		switch {
		case line == "":
			breaks++
		default:
			if folded.Len() > 0 && breaks == 0 {
				folded.WriteByte(' ')
			}
			folded.WriteString(strings.Repeat("\n", breaks) + line)
			breaks = 0
			if folded.String() == node.Value {
				return at + strings.Index(string(d.text[at:eol]), line) + len(line), nil
			}
		}
		at = eol + max(1, lineBreak(d.text[eol:]))
	}
	return 0, d.unsupported(node, "it goes over several lines")
}

// blockScalarEnd finds the end of a literal or folded scalar: the lines after its header, as long as they are blank or
// indented like the first one with content. Blank lines at the end belong to it only when its header says so.
func (d *document) blockScalarEnd(start int) int {
	end := d.lineEnd(start)
	keep := bytes.ContainsRune(bytes.SplitN(d.text[start:end], []byte("#"), 2)[0], '+')
	indentation := -1
	for at := end + lineBreak(d.text[end:]); at < len(d.text); {
		eol := d.lineEnd(at)
		line := d.text[at:eol]
		content := bytes.TrimLeft(line, " ")
		switch {
		case len(content) == 0:
			if keep {
				end = eol
			}
		case indentation < 0:
			indentation = len(line) - len(content)
			if indentation == 0 {
				return end
			}
			end = eol
		case len(line)-len(content) >= indentation:
			end = eol
		default:
			return end
		}
		if eol == len(d.text) {
			break
		}
		at = eol + lineBreak(d.text[eol:])
	}
	return end
}

func (d *document) flowEnd(node *yaml.Node, start int) (int, error) {
	opening, closing := byte('['), byte(']')
	if node.Kind == yaml.MappingNode {
		opening, closing = '{', '}'
	}
	if start >= len(d.text) || d.text[start] != opening {
		return 0, d.unsupported(node, "it has no bracket")
	}
	at := start + 1
	if len(node.Content) > 0 {
		var err error
		if at, err = d.childEnd(node, len(node.Content)-1); err != nil {
			return 0, err
		}
	}
	for at = d.skipSpace(at); at < len(d.text); at = d.skipSpace(at + 1) {
		switch d.text[at] {
		case closing:
			return at + 1, nil
		case ',', ':':
		default:
			return 0, d.unsupported(node, "its closing bracket is not found")
		}
	}
	return 0, d.unsupported(node, "its closing bracket is not found")
}

// skipSpace goes over blanks, line breaks and comments.
func (d *document) skipSpace(at int) int {
	for at < len(d.text) {
		length := lineBreak(d.text[at:])
		switch {
		case length > 0:
			at += length
		case d.text[at] == ' ' || d.text[at] == '\t':
			at++
		case d.text[at] == '#':
			at = d.lineEnd(at)
		default:
			return at
		}
	}
	return at
}

// lineStart and lineEnd give the limits of the line around an offset, without its break.
func (d *document) lineStart(at int) int {
	start := 0
	for _, candidate := range d.lines {
		if candidate > at {
			break
		}
		start = candidate
	}
	return start
}

func (d *document) lineEnd(at int) int {
	for at < len(d.text) && lineBreak(d.text[at:]) == 0 {
		at++
	}
	return at
}

// newline is the line break to write at the end of the line around an offset: the one that is there, or else the first one
// of the document.
func (d *document) newline(at int) string {
	for _, eol := range []int{d.lineEnd(at), d.lineEnd(0)} {
		if length := lineBreak(d.text[eol:]); length > 0 {
			return string(d.text[eol : eol+length])
		}
	}
	return "\n"
}

// isLeftOut tells whether a value is missing in the text, as after "annotations:".
func isLeftOut(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.Style == 0 && node.Value == "" && node.Tag == yaml.NodeTagNull
}

// unsupported is the reason why a change cannot be made in the text itself.
func (d *document) unsupported(node *yaml.Node, why string) error {
	name := ""
	if node.Kind == yaml.ScalarNode {
		name = fmt.Sprintf(" (%.40q)", node.Value)
	}
	return fmt.Errorf("line %d%s: %s", node.Line, name, why)
}
