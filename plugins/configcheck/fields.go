// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	kjson "sigs.k8s.io/json"
)

// longestValue is the maximum length, in characters, of a value in an error.
const longestValue = 60

// search finds every field that the scheduler's decoder rejects, and removes it from the document. The decoder itself
// stops at the first value of a wrong type, and at the first plugin whose args are wrong. So each value is decoded
// separately into its field's Go type.
type search struct {
	version  schema.GroupVersion
	document map[string]interface{}
	// refused are the paths of the rejected fields, and errs are the reasons.
	refused []string
	errs    []error
}

// find searches a JSON document of a kind that the scheme knows.
func find(document []byte, gvk schema.GroupVersionKind) *search {
	s := &search{version: gvk.GroupVersion()}
	decoder := json.NewDecoder(bytes.NewReader(document))
	// Errors show numbers as they were written.
	decoder.UseNumber()
	if object, err := scheme.Scheme.New(gvk); err == nil && decoder.Decode(&s.document) == nil {
		s.object(nil, reflect.TypeOf(object).Elem(), s.document)
	}
	return s
}

// accepts reports whether a type accepts a value. It removes rejected fields inside the value.
func (s *search) accepts(path *field.Path, t reflect.Type, value interface{}) bool {
	decoded := reflect.New(t).Interface()
	for t.Kind() == reflect.Ptr {
		t = t.Elem()
	}
	switch value := value.(type) {
	case map[string]interface{}:
		if (t.Kind() == reflect.Struct || t.Kind() == reflect.Map) && !decodesItself(t) {
			s.object(path, t, value)
			return true
		}
	case []interface{}:
		if t.Kind() == reflect.Slice && !decodesItself(t) {
			for i := range value {
				if !s.accepts(path.Index(i), t.Elem(), value[i]) {
					value[i] = nil // The indexes of the other items stay the same.
				}
			}
			return true
		}
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(encode(value), decoded); err != nil {
		s.refuse(path, field.Invalid(path, shown(path, value, t), wanted(t, value, err)))
		return false
	}
	return true
}

// object removes the rejected fields from an object.
func (s *search) object(path *field.Path, t reflect.Type, object map[string]interface{}) {
	fields := fieldsOf(t)
	for _, name := range sets.StringKeySet(object).List() {
		fieldPath, fieldType := path.Child(name), fields[name]
		if t.Kind() == reflect.Map {
			fieldPath, fieldType = path.Key(name), t.Elem()
		}
		accepted := false
		switch fieldType {
		case nil:
			s.refuse(fieldPath, fmt.Errorf("%s: unknown field: the known fields are %s", fieldPath, known(t)))
		case rawExtension:
			accepted = s.acceptsArgs(fieldPath, object["name"], object[name])
		default:
			accepted = s.accepts(fieldPath, fieldType, object[name])
		}
		if !accepted {
			delete(object, name)
		}
	}
}

// acceptsArgs is accepts for the args of a plugin.
func (s *search) acceptsArgs(path *field.Path, plugin, value interface{}) bool {
	type object = map[string]interface{}
	args, err := scheme.Scheme.New(s.version.WithKind(fmt.Sprint(plugin, "Args")))
	if err != nil {
		return true // The scheduler accepts any args of a plugin that it does not know.
	}
	if !s.accepts(path, reflect.TypeOf(args), value) {
		return false
	}
	fields, _ := value.(object)
	// Only the decoder knows which versions and kinds the args may name.
	for _, name := range []string{"apiVersion", "kind"} {
		document := object{
			"apiVersion": s.version.String(), "kind": configurationKind,
			"profiles": []object{{"pluginConfig": []object{{"name": plugin, "args": object{name: fields[name]}}}}},
		}
		if _, _, err := scheme.Codecs.UniversalDecoder().Decode(encode(document), nil, nil); err != nil {
			s.refuse(path.Child(name), field.Invalid(path.Child(name), fields[name],
				"args have the file's version and the plugin's kind: leave out apiVersion and kind"))
			delete(fields, name)
		}
	}
	return true
}

// refuse adds an error, and the path of the rejected field.
func (s *search) refuse(path *field.Path, err error) {
	s.refused = append(s.refused, path.String())
	s.errs = append(s.errs, err)
}

// fieldsOf returns the fields of a struct type by their names in a file, and none for other types.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for i := 0; t.Kind() == reflect.Struct && i < t.NumField(); i++ {
		f := t.Field(i)
		if name := strings.Split(f.Tag.Get("json"), ",")[0]; name != "" {
			fields[name] = f.Type
			continue
		}
		for name, fieldType := range fieldsOf(f.Type) {
			fields[name] = fieldType
		}
	}
	return fields
}

// known lists the fields of a type, for the error about an unknown one.
func known(t reflect.Type) string {
	return strings.Join(sets.StringKeySet(fieldsOf(t)).Delete("apiVersion", "kind").List(), ", ")
}

var (
	jsonUnmarshaler = reflect.TypeOf((*json.Unmarshaler)(nil)).Elem()
	duration        = reflect.TypeOf(metav1.Duration{})
	quantity        = reflect.TypeOf(resource.Quantity{})
	rawExtension    = reflect.TypeOf(runtime.RawExtension{})
	byteSlice       = reflect.TypeOf([]byte{})
)

// decodesItself reports whether a type decodes itself, so that its Go fields do not matter.
func decodesItself(t reflect.Type) bool {
	return t == byteSlice || reflect.PtrTo(t).Implements(jsonUnmarshaler)
}

// text is printed in an error without quotes.
type text string

func (t text) String() string { return string(t) }

// access matches the paths of args about the access to a server. Users may write passwords there: in a URL, in a
// header, or in place of a file name.
var access = regexp.MustCompile(`^profiles\[\d+\]\.pluginConfig\[\d+\]\.args\.prometheus\b`)

// shown returns the text of a value in an error. It hides long values, and values that may be a key or a password.
func shown(path *field.Path, value interface{}, t reflect.Type) text {
	encoded := encode(value)
	switch {
	case t == byteSlice, t != duration && t.Kind() != reflect.Bool && access.MatchString(path.String()):
		return "(not shown)"
	case encoded[0] == '{':
		return "an object"
	case encoded[0] == '[':
		return "a list"
	case len(encoded) > longestValue:
		return text(fmt.Sprintf("a value of %d characters", len(encoded)))
	}
	return text(encoded)
}

// wanted returns the requirement for values of a type; err is the decoder's error.
func wanted(t reflect.Type, given interface{}, err error) string {
	switch {
	case t == byteSlice:
		return "must be text in base64"
	case t == duration:
		return "must be a duration with its unit, such as 30s or 5m"
	case t == quantity:
		return "must be a quantity, such as 250m or 2Gi"
	}
	_, isText := given.(string)
	switch kind := t.Kind(); {
	case kind == reflect.Bool:
		return "must be true or false"
	case kind == reflect.String && !isText:
		return "must be text; put a number, true or false in quotes"
	case kind == reflect.Int, kind == reflect.Int64:
		return fmt.Sprintf("must be a whole number between %d and %d", int64(math.MinInt64), int64(math.MaxInt64))
	case kind == reflect.Int32:
		return fmt.Sprintf("must be a whole number between %d and %d", math.MinInt32, math.MaxInt32)
	case kind == reflect.Float32, kind == reflect.Float64:
		return "must be a number"
	case kind == reflect.Slice:
		return "must be a list"
	case kind == reflect.Map:
		return "must be an object"
	case kind == reflect.Struct && !decodesItself(t):
		return "must be an object with fields from " + known(t)
	}
	return err.Error()
}
