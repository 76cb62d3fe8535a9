// SPDX-License-Identifier: Apache-2.0

// Package manifest reads and edits the scheduler's static pod manifest: functions from bytes to bytes, which prove that
// nothing else changes. It also writes kubeadm's patch, and knows the other pods of kubelet's directory.
package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/kustomize/kyaml/yaml"
	kubernetesyaml "sigs.k8s.io/yaml"

	"kube-scheduler-fork/build/nextstep"
)

// maxManifest is kubelet's size limit for a manifest, in bytes.
const maxManifest = 10 << 20

// byteOrderMark may begin a file; YAML parsers remove it.
const byteOrderMark = "\uFEFF"

// isJSON reports whether kubelet would parse a manifest strictly as JSON.
func isJSON(manifest []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(manifest), []byte("{")) }

// parse returns the document node of a manifest. It returns an error for text that kubelet does not accept, or that
// kubelet and a person may read differently.
func parse(manifest []byte) (*yaml.Node, error) {
	text := bytes.TrimPrefix(manifest, []byte(byteOrderMark))
	switch {
	case !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0:
		return nil, nextstep.With(errors.New("the manifest is not UTF-8 text"), "convert it with iconv, or restore it")
	case len(bytes.TrimSpace(text)) == 0:
		return nil, nextstep.With(errors.New("the manifest is empty"), "restore it")
	case isJSON(text) && !json.Valid(text):
		return nil, nextstep.With(
			errors.New("the manifest begins with { but is not JSON, so kubelet does not accept it"),
			"correct it")
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, next yaml.Node
	if err := decodeNext(decoder, &document); err != nil && isJSON(text) {
		// Some escapes of JSON, such as \/, do not exist in YAML.
		return nil, nextstep.With(fmt.Errorf("the manifest is JSON with escapes that cannot be edited (%w)", err),
			"write it again with: jq . FILE")
	} else if err != nil {
		return nil, nextstep.With(fmt.Errorf("the manifest is not YAML: %w", err), "correct it")
	}
	switch err := decodeNext(decoder, &next); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, nextstep.With(fmt.Errorf("the manifest is not YAML: %w", err), "correct it")
	case !yaml.IsYNodeEmptyDoc(&next) && !yaml.IsYNodeTaggedNull(next.Content[0]):
		return nil, nextstep.With(
			fmt.Errorf("the manifest contains a second document (line %d), but kubelet reads only the first one",
				next.Content[0].Line),
			"put the second one into its own file, or delete it")
	}
	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, nextstep.With(errors.New("the manifest is not a Kubernetes object"),
			"give the path of the scheduler's manifest")
	}
	return &document, checkUniqueKeys(&document)
}

// decodeNext decodes one document. It recovers from the parser's panics on some invalid texts.
func decodeNext(decoder *yaml.Decoder, node *yaml.Node) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("the parser fails: %v", cause)
		}
	}()
	return decoder.Decode(node)
}

// checkUniqueKeys returns an error for a repeated key, because parsers disagree about which value counts.
func checkUniqueKeys(node *yaml.Node) error {
	if node.Kind == yaml.MappingNode {
		lines := map[string]int{}
		for i := 0; i < len(node.Content); i += 2 {
			key := node.Content[i]
			if before, found := lines[key.Value]; found {
				return nextstep.With(
					fmt.Errorf("the manifest has the key %q in line %d and again in line %d",
						key.Value, before, key.Line),
					"delete one of them")
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

// normalize returns a manifest in kyaml's format, without anchors. kubeadm's manifests do not change (see
// Edit.Reformatted); others keep their content and comments.
func normalize(manifest []byte) ([]byte, error) {
	document, err := parse(manifest)
	if err != nil {
		return nil, err
	}
	if hasAlias(document) {
		whole := yaml.NewRNode(document)
		if err := whole.DeAnchor(); err != nil {
			return nil, nextstep.With(fmt.Errorf("the manifest uses anchors in a way that cannot be followed: %w", err),
				"replace them by their values")
		}
	}
	text, err := encode(document, manifest)
	if err != nil {
		return nil, err
	}
	if isJSON(manifest) {
		return text, nil
	}
	if comment := lostComment(string(manifest), string(text)); comment != "" {
		return nil, nextstep.With(fmt.Errorf("the manifest cannot be changed without losing the comment %q", comment),
			"put it on a separate line before a key, or delete it")
	}
	return text, nil
}

func hasAlias(node *yaml.Node) bool {
	return node.Kind == yaml.AliasNode || slices.ContainsFunc(node.Content, hasAlias)
}

func hasComment(node *yaml.Node) bool {
	return node.HeadComment+node.LineComment+node.FootComment != "" || slices.ContainsFunc(node.Content, hasComment)
}

// withoutBraces changes flow style to block style for each list and mapping with comments inside.
func withoutBraces(node *yaml.Node) {
	if slices.ContainsFunc(node.Content, hasComment) {
		node.Style &^= yaml.FlowStyle
	}
	for _, child := range node.Content {
		withoutBraces(child)
	}
}

// lostComment returns a comment in before that is missing in after; empty: none. Text inside a value that looks like a
// comment may count as one.
func lostComment(before, after string) string {
	for _, line := range strings.FieldsFunc(before, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if _, comment, found := strings.Cut(" "+strings.ReplaceAll(line, "\t#", " #"), " #"); found {
			comment = "#" + strings.TrimRight(comment, " \t")
			if strings.Count(before, comment) > strings.Count(after, comment) {
				return comment
			}
		}
	}
	return ""
}

// encode writes a tree in kyaml's format, with lists indented as in like; as JSON if like is JSON. The result is stable
// under another encode: comments may need a second pass to settle.
func encode(document *yaml.Node, like []byte) ([]byte, error) {
	// kubelet would read a flow-style root as JSON, and comments inside braces would move between the lines.
	document.Content[0].Style &^= yaml.FlowStyle
	withoutBraces(document)
	options := yaml.EncoderOptions{SeqIndent: yaml.SequenceIndentStyle(yaml.DeriveSeqIndentStyle(string(like)))}
	text, err := yaml.MarshalWithOptions(document, &options)
	if err != nil {
		return nil, err
	}
	if isJSON(like) {
		compact, err := kubernetesyaml.YAMLToJSON(text)
		if err != nil {
			return nil, err
		}
		var indented bytes.Buffer
		if err := json.Indent(&indented, compact, "", "  "); err != nil {
			return nil, err
		}
		return append(indented.Bytes(), '\n'), nil
	}
	for range 3 {
		settled, err := parse(text)
		if err != nil {
			return nil, err
		}
		again, err := yaml.MarshalWithOptions(settled, &options)
		if err != nil || bytes.Equal(again, text) {
			return text, err
		}
		text = again
	}
	return nil, nextstep.With(errors.New("the manifest has comments that move whenever it is written"),
		"put each on a separate line before a key")
}
