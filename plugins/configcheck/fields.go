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
)

// longestValue is how many characters of a value an error shows.
const longestValue = 60

// search finds all fields that the scheduler's decoder refuses, where the decoder itself stops at the first value of a
// wrong type and, in the args of plugins, at the first plugin. It builds the document once more, part by part, and has
// the decoder decode it with each: what it refuses is left out. The Go types serve to word the errors.
type search struct {
	reader
	version schema.GroupVersion
	// accepted is what the decoder accepts of the document.
	accepted interface{}
	// refused are the paths of what is not in it, and errs say why.
	refused []string
	errs    []error
}

// find fails where there is no document of that kind that the decoder would accept.
func (r reader) find(document []byte, gvk schema.GroupVersionKind) (*search, error) {
	s := &search{reader: r, version: gvk.GroupVersion()}
	object, err := r.scheme.New(gvk)
	if err != nil {
		return s, err
	}
	var given map[string]interface{}
	decoder := json.NewDecoder(bytes.NewReader(document))
	// Numbers are shown as they were written.
	decoder.UseNumber()
	if err := decoder.Decode(&given); err != nil {
		return s, err
	}
	kept := map[string]interface{}{"apiVersion": given["apiVersion"], "kind": given["kind"]}
	s.accepted = kept
	if err := s.decode(); err != nil {
		return s, err
	}
	s.object(nil, reflect.TypeOf(object).Elem(), given, kept)
	return s, nil
}

func (s *search) decode() error {
	_, _, err := s.decoder.Decode(encode(s.accepted), nil, nil)
	return err
}

// value puts a value that is to be decoded into a type where it belongs, without what the decoder refuses in it. It
// returns false where nothing is left.
func (s *search) value(path *field.Path, t reflect.Type, given interface{}, put func(interface{})) bool {
	put(given)
	err := s.decode()
	if err == nil {
		return true
	}
	for t.Kind() == reflect.Ptr {
		t = t.Elem()
	}
	switch given := given.(type) {
	case map[string]interface{}:
		if kind := t.Kind(); !decodesItself(t) && (kind == reflect.Struct || kind == reflect.Map) {
			kept := map[string]interface{}{}
			put(kept)
			s.object(path, t, given, kept)
			return true
		}
	case []interface{}:
		if !decodesItself(t) && t.Kind() == reflect.Slice {
			// One that is wrong is null, and is not taken out of the list: the others keep their numbers.
			kept := make([]interface{}, len(given))
			put(kept)
			for i := range given {
				if i := i; !s.value(path.Index(i), t.Elem(), given[i], func(value interface{}) { kept[i] = value }) {
					kept[i] = nil
				}
			}
			return true
		}
	}
	s.refuse(path, field.Invalid(path, shown(path, given, t), wanted(t, given, err)))
	return false
}

// object puts the fields of an object into kept, which is in its place already.
func (s *search) object(path *field.Path, t reflect.Type, given, kept map[string]interface{}) {
	names := sets.StringKeySet(given)
	order := names.List()
	if names.Has("name") {
		// The name of a plugin says of which type its args are.
		order = append([]string{"name"}, names.Delete("name").List()...)
	}
	fields := fieldsOf(t)
	for _, name := range order {
		name, fieldPath, fieldType := name, path.Key(name), t
		if t.Kind() == reflect.Map {
			fieldType = t.Elem()
		} else {
			fieldPath, fieldType = path.Child(name), fields[name]
		}
		switch {
		case fieldType == nil:
			s.refuse(fieldPath, fmt.Errorf("%s: unknown field: known here are %s", fieldPath, known(t)))
			continue
		case fieldType == reflect.TypeOf(runtime.RawExtension{}):
			if args, err := s.scheme.New(s.version.WithKind(fmt.Sprint(kept["name"], "Args"))); err == nil {
				fieldType = reflect.TypeOf(args)
			}
		}
		if !s.value(fieldPath, fieldType, given[name], func(value interface{}) { kept[name] = value }) {
			delete(kept, name)
		}
	}
}

func (s *search) refuse(path *field.Path, err error) {
	s.refused = append(s.refused, path.String())
	s.errs = append(s.errs, err)
}

// fieldsOf returns the fields of a type by the names that they have in a file; none of what is no structure.
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

// known lists the fields that may have been meant by one that is mistyped.
func known(t reflect.Type) string {
	return strings.Join(sets.StringKeySet(fieldsOf(t)).Delete("apiVersion", "kind").List(), ", ")
}

var (
	jsonUnmarshaler = reflect.TypeOf((*json.Unmarshaler)(nil)).Elem()
	duration        = reflect.TypeOf(metav1.Duration{})
	quantity        = reflect.TypeOf(resource.Quantity{})
	byteSlice       = reflect.TypeOf([]byte{})
)

// decodesItself tells of a type that its fields are nothing that a file names.
func decodesItself(t reflect.Type) bool {
	return t == byteSlice || reflect.PtrTo(t).Implements(jsonUnmarshaler)
}

// text is printed in an error as it is, without quotes around it.
type text string

func (t text) String() string { return string(t) }

// access is where the args of a plugin say how a server is reached: in passwords too, if they are put into its URL,
// into a header, or in the place of a file's name.
var access = regexp.MustCompile(`^profiles\[\d+\]\.pluginConfig\[\d+\]\.args\.prometheus\b`)

// shown is how an error shows a value: itself if it is short, and nothing that could be a key or a password.
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

// wanted says what a field of a type takes; err is what the decoder said.
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
		return "must be text; quotes make text of a number, of true and of false"
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
		return "args are of the file's version and of the plugin's kind: leave apiVersion and kind out"
	}
	return err.Error()
}
