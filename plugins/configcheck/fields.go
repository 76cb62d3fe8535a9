// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"bytes"
	"encoding/json"
	"errors"
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
	kjson "sigs.k8s.io/json"
)

// longestValue is the maximum length, in characters, of a value in an error.
const longestValue = 60

// search finds every field that the scheduler's decoder rejects. The decoder itself stops at the first value of a wrong
// type, and at the first plugin whose args are wrong. So each value is decoded separately into its field's Go type.
type search struct {
	reader
	version schema.GroupVersion
	// accepted is the document without the rejected fields.
	accepted interface{}
	// refused are the paths of the rejected fields, and errs are the reasons.
	refused []string
	errs    []error
}

// find searches a JSON document of a kind that the scheme knows.
func (r reader) find(document []byte, gvk schema.GroupVersionKind) *search {
	s := &search{reader: r, version: gvk.GroupVersion()}
	var given map[string]interface{}
	decoder := json.NewDecoder(bytes.NewReader(document))
	// Errors show numbers as they were written.
	decoder.UseNumber()
	if object, err := r.scheme.New(gvk); err == nil && decoder.Decode(&given) == nil {
		s.accepted = s.object(nil, reflect.TypeOf(object).Elem(), given)
	}
	return s
}

// value returns a value without the fields that its type rejects. It returns false if the value itself is rejected.
func (s *search) value(path *field.Path, t reflect.Type, given interface{}) (interface{}, bool) {
	decoded := reflect.New(t).Interface()
	for t.Kind() == reflect.Ptr {
		t = t.Elem()
	}
	if !decodesItself(t) {
		switch given := given.(type) {
		case map[string]interface{}:
			if t.Kind() == reflect.Struct || t.Kind() == reflect.Map {
				return s.object(path, t, given), true
			}
		case []interface{}:
			if t.Kind() == reflect.Slice {
				return s.list(path, t.Elem(), given), true
			}
		}
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(encode(given), decoded); err != nil {
		s.refuse(path, field.Invalid(path, shown(path, given, t), wanted(t, given, err)))
		return nil, false
	}
	return given, true
}

// list returns a list in which null replaces each rejected item, so that the indexes of the others stay the same.
func (s *search) list(path *field.Path, t reflect.Type, given []interface{}) []interface{} {
	accepted := make([]interface{}, len(given))
	for i := range given {
		accepted[i], _ = s.value(path.Index(i), t, given[i])
	}
	return accepted
}

// object returns an object without its rejected fields.
func (s *search) object(path *field.Path, t reflect.Type, given map[string]interface{}) map[string]interface{} {
	accepted := map[string]interface{}{}
	fields := fieldsOf(t)
	for _, name := range sets.StringKeySet(given).List() {
		fieldPath, fieldType := path.Child(name), fields[name]
		switch {
		case t.Kind() == reflect.Map:
			fieldPath, fieldType = path.Key(name), t.Elem()
		case fieldType == nil:
			s.refuse(fieldPath, fmt.Errorf("%s: unknown field: the known fields are %s", fieldPath, known(t)))
			continue
		}
		check := func() (interface{}, bool) { return s.value(fieldPath, fieldType, given[name]) }
		if fieldType == reflect.TypeOf(runtime.RawExtension{}) {
			check = func() (interface{}, bool) { return s.args(fieldPath, given["name"], given[name]) }
		}
		if value, ok := check(); ok {
			accepted[name] = value
		}
	}
	return accepted
}

// args returns the args of a plugin without the fields that it rejects.
func (s *search) args(path *field.Path, plugin, given interface{}) (interface{}, bool) {
	args, err := s.scheme.New(s.version.WithKind(fmt.Sprint(plugin, "Args")))
	if err != nil {
		return given, true // The scheduler accepts any args of a plugin that it does not know.
	}
	value, ok := s.value(path, reflect.TypeOf(args), given)
	fields, isObject := value.(map[string]interface{})
	if !isObject {
		return value, ok
	}
	// Only the decoder knows which versions and kinds the args may name.
	for _, name := range []string{"apiVersion", "kind"} {
		type object = map[string]interface{}
		config := object{"name": plugin, "args": object{name: fields[name]}}
		document := object{
			"apiVersion": s.version.String(), "kind": configurationKind,
			"profiles": []object{{"pluginConfig": []object{config}}},
		}
		if _, _, err := s.decoder.Decode(encode(document), nil, nil); err != nil {
			s.refuse(path.Child(name), field.Invalid(path.Child(name), fields[name], wanted(reflect.TypeOf(""), fields[name], err)))
			delete(fields, name)
		}
	}
	return fields, true
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
	for cause := errors.Unwrap(err); cause != nil; cause = errors.Unwrap(err) {
		err = cause
	}
	if runtime.IsNotRegisteredError(err) {
		return "args have the file's version and the plugin's kind: leave out apiVersion and kind"
	}
	return err.Error()
}
