// SPDX-License-Identifier: Apache-2.0

package input

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
	"sigs.k8s.io/yaml"
)

// item is the text of one object.
type item struct {
	place
	text []byte
	yaml bool
	// apiVersion, kind and namespace are for objects that do not have their own.
	apiVersion, kind, namespace string
}

// extensions are those of the files that are read in a directory.
var extensions = regexp.MustCompile(`\.(yaml|yml|json|csv)(\.gz)?$`)

// eachFile opens files, the files in directories, and - for the standard input, and expands gzip.
func eachFile(paths []string, visit func(name string, content *bufio.Reader) error) error {
	for _, path := range paths {
		if path == "-" {
			if err := expand(os.Stdin, visit); err != nil {
				return err
			}
			continue
		}
		err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
			if err == nil && (entry.IsDir() || name != path && !extensions.MatchString(name)) {
				return nil
			}
			var file *os.File
			if err == nil {
				file, err = os.Open(name)
			}
			if err != nil {
				return place{file: name}.fail("check the path and its permissions", "cannot be read: %v", errors.Unwrap(err))
			}
			defer file.Close()
			return expand(file, visit)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// expand expands gzip, and converts UTF-16, which > of Windows PowerShell writes, if the text has a byte order mark.
func expand(file *os.File, visit func(name string, content *bufio.Reader) error) error {
	content := bufio.NewReaderSize(file, 1<<16)
	if magic, _ := content.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		expanded, err := gzip.NewReader(content)
		if err != nil {
			return place{file: file.Name()}.failed(err, "gzip")
		}
		content = bufio.NewReaderSize(expanded, 1<<16)
	}
	text := transform.NewReader(content, unicode.BOMOverride(transform.Nop))
	return visit(file.Name(), bufio.NewReaderSize(text, 1<<16))
}

// startsWith reports whether a text begins like this after white space.
func startsWith(content *bufio.Reader, begin string) bool {
	for blank := 0; ; blank++ {
		start, _ := content.Peek(blank + len(begin))
		if blank >= len(start) || bytes.IndexByte([]byte(" \t\r\n"), start[blank]) < 0 {
			return blank < len(start) && string(start[blank:]) == begin
		}
	}
}

// eachItem visits the objects of a file with JSON or YAML, without holding all of its text.
func eachItem(name string, content *bufio.Reader, visit func(item) error) error {
	if startsWith(content, "{") {
		return eachOfJSON(place{name, 1}, content, visit)
	}
	y := &yamlFile{at: place{file: name}, visit: visit}
	var line []byte
	for {
		part, err := content.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return y.at.failed(err, "YAML")
		}
		if len(line) > 0 {
			y.at.line++
			if err := y.add(line); err != nil {
				return err
			}
		}
		if err != nil {
			return y.endDocument()
		}
		line = line[:0]
	}
}

// lineCounter maps offsets to lines. It keeps only the ends of lines between the last question and what has been read.
type lineCounter struct {
	io.Reader
	read int64
	ends []int64
	line int
}

func (l *lineCounter) Read(buffer []byte) (int, error) {
	n, err := l.Reader.Read(buffer)
	for i, b := range buffer[:n] {
		if b == '\n' {
			l.ends = append(l.ends, l.read+int64(i)+1)
		}
	}
	l.read += int64(n)
	return n, err
}

// at returns the line of an offset that is not before the last one.
func (l *lineCounter) at(offset int64) int {
	passed := 0
	for passed < len(l.ends) && l.ends[passed] <= offset {
		passed++
	}
	l.line += passed
	l.ends = append(l.ends[:0], l.ends[passed:]...)
	return l.line
}

// lists are the keys whose lists are visited item by item: that of a List, and those of an export of
// kube-scheduler-simulator.
var lists = map[string]item{
	"items": {}, "pods": {kind: "Pod", apiVersion: "v1"}, "nodes": {kind: "Node", apiVersion: "v1"},
	"pvs": {kind: "PersistentVolume", apiVersion: "v1"}, "pvcs": {kind: "PersistentVolumeClaim", apiVersion: "v1"},
	"storageClasses":  {kind: "StorageClass", apiVersion: "storage.k8s.io/v1"},
	"priorityClasses": {kind: "PriorityClass", apiVersion: "scheduling.k8s.io/v1"},
	"namespaces":      {kind: "Namespace", apiVersion: "v1"},
}

// eachOfJSON visits the objects of JSON values that follow each other.
func eachOfJSON(at place, content io.Reader, visit func(item) error) error {
	lines := &lineCounter{Reader: content, line: at.line}
	decoder := json.NewDecoder(lines)
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if at.line = lines.at(decoder.InputOffset()); err == nil && token != json.Delim('{') {
			err = errors.New("no object")
		}
		if err == nil {
			err = eachOfObject(at, decoder, lines, visit)
		}
		if err != nil {
			at.line = lines.at(decoder.InputOffset())
			return at.failed(err, "JSON")
		}
	}
}

// hasType matches an item that begins with its own type, as all tools print it.
var hasType = regexp.MustCompile(`^{\s*"(apiVersion|kind)"`)

// eachOfObject visits the items of one JSON object, or itself if it has none.
func eachOfObject(at place, decoder *json.Decoder, lines *lineCounter, visit func(item) error) error {
	fields, listed := map[string]json.RawMessage{}, false
	// The API server's lists have items without a type. They wait for the type of the list.
	var untyped []item
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return err
		}
		key := token.(string)
		object, isList := lists[key]
		if !isList {
			var value json.RawMessage
			if err := decoder.Decode(&value); err != nil {
				return err
			}
			fields[key] = value
			continue
		}
		listed = true
		if token, err = decoder.Token(); err != nil {
			return err
		}
		if token != json.Delim('[') { // null
			continue
		}
		for decoder.More() {
			var text json.RawMessage
			if err := decoder.Decode(&text); err != nil {
				return err
			}
			object.place = place{at.file, lines.at(decoder.InputOffset() - int64(len(text)))}
			object.text = text
			if object.kind == "" && fields["kind"] == nil && !hasType.Match(text) {
				untyped = append(untyped, object)
			} else if err := visit(ofList(object, fields)); err != nil {
				return err
			}
		}
		if _, err := decoder.Token(); err != nil {
			return err
		}
	}
	if _, err := decoder.Token(); err != nil {
		return err
	}
	for _, i := range untyped {
		if err := visit(ofList(i, fields)); err != nil {
			return err
		}
	}
	if listed {
		return nil
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return visit(item{place: at, text: text})
}

// ofList returns an item with the type that the fields of its list give to those without one, such as NodeList.
func ofList(i item, fields map[string]json.RawMessage) item {
	if i.kind == "" {
		_, _ = json.Unmarshal(fields["kind"], &i.kind), json.Unmarshal(fields["apiVersion"], &i.apiVersion)
		i.kind = strings.TrimSuffix(i.kind, "List")
	}
	return i
}

// yamlFile splits YAML at its documents and at the items of a List in the form that kubectl prints.
type yamlFile struct {
	at    place
	visit func(item) error
	// document is the text of a document without its items.
	document item
	// item is the current one. listing is set after the line "items:".
	item           item
	listing, items bool
	// untyped are the items that wait for the type of the list.
	untyped []item
}

func (y *yamlFile) add(line []byte) error {
	text := bytes.TrimRight(line, " \r\n")
	blank := len(bytes.TrimLeft(text, " ")) == 0 || text[0] == '#'
	switch {
	case bytes.Equal(text, []byte("---")) || bytes.HasPrefix(text, []byte("--- ")):
		return y.endDocument()
	case y.listing && bytes.HasPrefix(line, []byte("- ")):
		err := y.endItem()
		y.items = true
		y.item = item{place: y.at, yaml: true, text: append(append(make([]byte, 0, 4096), ' '), line[1:]...)}
		return err
	case y.item.text != nil && (blank || line[0] == ' '):
		y.item.text = append(y.item.text, line...)
		return nil
	case string(text) == "items:":
		y.listing = true
		return nil
	case y.listing && !blank:
		if y.listing = false; y.item.text == nil {
			y.document.text = append(y.document.text, "items:\n"...)
		}
	}
	if len(y.document.text) == 0 && !blank {
		y.document = item{place: y.at, yaml: true}
	}
	if len(y.document.text) > 0 || !blank {
		y.document.text = append(y.document.text, line...)
	}
	return y.endItem()
}

func (y *yamlFile) endItem() error {
	ended := y.item
	if y.item = (item{}); ended.text == nil {
		return nil
	}
	if _, kind := ended.typeOfYAML(); kind == "" {
		y.untyped = append(y.untyped, ended)
		return nil
	}
	return y.visit(ended)
}

func (y *yamlFile) endDocument() error {
	err := y.endItem()
	document, items, untyped := y.document, y.items, y.untyped
	y.document, y.listing, y.items, y.untyped = item{}, false, false, nil
	apiVersion, kind := document.typeOfYAML()
	switch {
	case err != nil || !items && document.text == nil:
		return err
	case items && kind == "":
		return y.at.fail(saveAgain, "the file is cut: the list ends without its kind")
	case items:
		for _, i := range untyped {
			i.apiVersion, i.kind = apiVersion, strings.TrimSuffix(kind, "List")
			if err := y.visit(i); err != nil {
				return err
			}
		}
		return nil
	case strings.HasSuffix(kind, "List"):
		if err := document.toJSON(); err != nil {
			return err
		}
		return eachOfJSON(document.place, bytes.NewReader(document.text), y.visit)
	}
	return y.visit(document)
}

// typeLine is a line with the kind or the version of a document, or of an item of a List in the form that kubectl prints.
var typeLine = regexp.MustCompile(`(?m)^(  )?(kind|apiVersion): *["']?([\w./-]+)`)

// typeOfYAML returns the version and kind if they are found without parsing the text.
func (i *item) typeOfYAML() (apiVersion, kind string) {
	rest, isItem := i.text, bytes.HasPrefix(i.text, []byte("  "))
	for apiVersion == "" || kind == "" {
		at := typeLine.FindSubmatchIndex(rest)
		if at == nil {
			return "", kind
		}
		switch value := string(rest[at[6]:at[7]]); {
		case isItem != (at[2] >= 0):
		case rest[at[4]] == 'k':
			kind = value
		default:
			apiVersion = value
		}
		rest = rest[at[1]:]
	}
	return apiVersion, kind
}

// toJSON converts the text.
func (i *item) toJSON() error {
	if !i.yaml {
		return nil
	}
	text, err := yaml.YAMLToJSON(i.text)
	if err != nil {
		return i.fail(saveAgain, "the object that begins here is not valid YAML")
	}
	i.text, i.yaml = text, false
	return nil
}
