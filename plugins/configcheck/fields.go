// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-scheduler/config/v1beta2"
	"k8s.io/kube-scheduler/config/v1beta3"
	kjson "sigs.k8s.io/json"
)

// longestValue is how many characters of a value an error shows.
const longestValue = 60

// fieldCheck compares a document with the Go types that it is decoded into, field by field, where the decoder stops at
// the first value of a wrong type and, in the args of plugins, at the first plugin.
type fieldCheck struct {
	scheme  *runtime.Scheme
	version schema.GroupVersion

	errs []error
	// removed are the paths of the fields that are wrong, and that are not in what document returns.
	removed []string
	// numbers are the errors about what is not of its field's type, where that is a number or a duration.
	numbers []wrongNumber
	// instead are values to put in the place of wrong ones, by their paths. There is no error then.
	instead map[string]json.RawMessage
}

// document checks a JSON document that is to be decoded into object, and returns it without what is wrong in it.
func (c *fieldCheck) document(document json.RawMessage, object interface{}) json.RawMessage {
	fixed, _ := c.value(nil, document, reflect.TypeOf(object).Elem())
	return fixed
}

var (
	jsonUnmarshaler = reflect.TypeOf((*json.Unmarshaler)(nil)).Elem()
	textUnmarshaler = reflect.TypeOf((*encoding.TextUnmarshaler)(nil)).Elem()
	duration        = reflect.TypeOf(metav1.Duration{})
	quantity        = reflect.TypeOf(resource.Quantity{})
	byteSlice       = reflect.TypeOf([]byte{})
)

// value checks a JSON value that is to be decoded into a type. It returns the value without the fields that are wrong,
// or false where the value itself is.
func (c *fieldCheck) value(path *field.Path, value json.RawMessage, t reflect.Type) (json.RawMessage, bool) {
	switch {
	case string(value) == "null":
		return value, true
	case reflect.PtrTo(t).Implements(jsonUnmarshaler), reflect.PtrTo(t).Implements(textUnmarshaler), t == byteSlice:
		return c.leaf(path, value, t)
	}
	switch t.Kind() {
	case reflect.Ptr:
		return c.value(path, value, t.Elem())
	case reflect.Struct:
		return c.structure(path, value, t)
	case reflect.Slice:
		return c.list(path, value, t.Elem())
	case reflect.Map:
		return c.mapping(path, value, t.Elem())
	}
	return c.leaf(path, value, t)
}

// leaf asks the decoder itself about a value that has no fields.
func (c *fieldCheck) leaf(path *field.Path, value json.RawMessage, t reflect.Type) (json.RawMessage, bool) {
	err := kjson.UnmarshalCaseSensitivePreserveInts(value, reflect.New(t).Interface())
	if err == nil {
		return value, true
	}
	if instead, found := c.instead[path.String()]; found {
		return instead, true
	}
	invalid := field.Invalid(path, shown(path, value, t), wanted(t, err))
	c.errs = append(c.errs, invalid)
	if extremes := extremesOf(t); extremes != nil {
		c.numbers = append(c.numbers, wrongNumber{err: invalid, goType: t, extremes: extremes})
	}
	return nil, false
}

func (c *fieldCheck) structure(path *field.Path, value json.RawMessage, t reflect.Type) (json.RawMessage, bool) {
	fields := fieldsOf(t)
	var given map[string]json.RawMessage
	if kjson.UnmarshalCaseSensitivePreserveInts(value, &given) != nil {
		return c.wrong(path, shown(path, value, t), "must be an object with fields from "+known(fields))
	}
	for _, name := range keys(given) {
		fieldPath := path.Child(name)
		fieldType, found := fields[name]
		if !found {
			c.errs = append(c.errs, fmt.Errorf("%s: unknown field: known here are %s", fieldPath, known(fields)))
			c.remove(given, name, fieldPath)
			continue
		}
		if fixed, ok := c.value(fieldPath, given[name], fieldType); ok {
			given[name] = fixed
		} else {
			c.remove(given, name, fieldPath)
		}
	}
	if t == reflect.TypeOf(v1beta2.PluginConfig{}) || t == reflect.TypeOf(v1beta3.PluginConfig{}) {
		c.pluginConfig(path, given)
	}
	return encode(given), true
}

func (c *fieldCheck) list(path *field.Path, value json.RawMessage, t reflect.Type) (json.RawMessage, bool) {
	var given []json.RawMessage
	if kjson.UnmarshalCaseSensitivePreserveInts(value, &given) != nil {
		return c.wrong(path, shown(path, value, t), "must be a list")
	}
	for i := range given {
		fixed, ok := c.value(path.Index(i), given[i], t)
		if !ok {
			c.removed = append(c.removed, path.Index(i).String())
		}
		// One that is wrong becomes null, and is not taken out of the list: the others keep their numbers.
		given[i] = fixed
	}
	return encode(given), true
}

func (c *fieldCheck) mapping(path *field.Path, value json.RawMessage, t reflect.Type) (json.RawMessage, bool) {
	var given map[string]json.RawMessage
	if kjson.UnmarshalCaseSensitivePreserveInts(value, &given) != nil {
		return c.wrong(path, shown(path, value, t), "must be an object")
	}
	for _, name := range keys(given) {
		if fixed, ok := c.value(path.Key(name), given[name], t); ok {
			given[name] = fixed
		} else {
			c.remove(given, name, path.Key(name))
		}
	}
	return encode(given), true
}

// pluginConfig checks the args of a plugin whose args have a type.
func (c *fieldCheck) pluginConfig(path *field.Path, given map[string]json.RawMessage) {
	var name string
	if kjson.UnmarshalCaseSensitivePreserveInts(given["name"], &name) != nil {
		return
	}
	gvk := c.version.WithKind(name + "Args")
	args, found := given["args"]
	object, err := c.scheme.New(gvk)
	if !found || err != nil {
		return
	}
	argsPath := path.Child("args")
	var fields map[string]json.RawMessage
	if kjson.UnmarshalCaseSensitivePreserveInts(args, &fields) == nil {
		c.argsKind(argsPath, fields, gvk)
		args = encode(fields)
	}
	if fixed, ok := c.value(argsPath, args, reflect.TypeOf(object).Elem()); ok {
		given["args"] = fixed
	} else {
		c.remove(given, "args", argsPath)
	}
}

// argsKind checks the kind and the version of args, which they may name: the plugin's, and that of the document.
func (c *fieldCheck) argsKind(path *field.Path, fields map[string]json.RawMessage, gvk schema.GroupVersionKind) {
	check := func(name, want string) {
		var given string
		// One of the wrong type is reported with the other fields.
		if kjson.UnmarshalCaseSensitivePreserveInts(fields[name], &given) == nil && given != "" && given != want {
			c.errs = append(c.errs, field.NotSupported(path.Child(name), given, []string{want}))
			c.remove(fields, name, path.Child(name))
		}
	}
	check("apiVersion", gvk.GroupVersion().String())
	check("kind", gvk.Kind)
}

// wrong notes that a value is not of its field's type.
func (c *fieldCheck) wrong(path *field.Path, value text, detail string) (json.RawMessage, bool) {
	c.errs = append(c.errs, field.Invalid(path, value, detail))
	return nil, false
}

func (c *fieldCheck) remove(given map[string]json.RawMessage, name string, path *field.Path) {
	delete(given, name)
	c.removed = append(c.removed, path.String())
}

// fieldsOf returns the fields of a type by the names they have in JSON.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		tag := strings.Split(f.Tag.Get("json"), ",")
		switch {
		case tag[0] == "-" || f.PkgPath != "" && !f.Anonymous:
		case f.Anonymous && tag[0] == "":
			embedded := f.Type
			if embedded.Kind() == reflect.Ptr {
				embedded = embedded.Elem()
			}
			for name, fieldType := range fieldsOf(embedded) {
				fields[name] = fieldType
			}
		case tag[0] == "":
			fields[f.Name] = f.Type
		default:
			fields[tag[0]] = f.Type
		}
	}
	return fields
}

// known lists the fields that may have been meant by one that is mistyped.
func known(fields map[string]reflect.Type) string {
	names := sets.StringKeySet(fields).Delete("apiVersion", "kind")
	return strings.Join(names.List(), ", ")
}

func keys(object map[string]json.RawMessage) []string {
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// encode is for what was JSON before: it cannot fail.
func encode(value interface{}) json.RawMessage {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return encoded
}

// text is printed in an error as it is, without quotes around it.
type text string

func (t text) String() string { return string(t) }

// access is where the args of a plugin say how a server is reached: in passwords too, if they are put into its URL,
// into a header, or in the place of a file's name.
var access = regexp.MustCompile(`^profiles\[\d+\]\.pluginConfig\[\d+\]\.args\.prometheus\b`)

// shown is how an error shows a value: itself if it is short, and nothing that could be a key or a password.
func shown(path *field.Path, value json.RawMessage, t reflect.Type) text {
	switch {
	case t == byteSlice, t != duration && t.Kind() != reflect.Bool && access.MatchString(path.String()):
		return "(not shown)"
	case value[0] == '{':
		return "an object"
	case value[0] == '[':
		return "a list"
	case len(value) > longestValue:
		return text(fmt.Sprintf("a value of %d characters", len(value)))
	}
	return text(value)
}

// wanted says what a field of a type takes; err is what the type's own decoder said.
func wanted(t reflect.Type, err error) string {
	switch {
	case t == byteSlice:
		return "must be text in base64"
	case t == duration:
		return "must be a duration with its unit, such as 30s or 5m"
	case t == quantity:
		return "must be a quantity, such as 250m or 2Gi"
	case reflect.PtrTo(t).Implements(jsonUnmarshaler), reflect.PtrTo(t).Implements(textUnmarshaler):
		return err.Error()
	}
	switch t.Kind() {
	case reflect.Bool:
		return "must be true or false"
	case reflect.String:
		return "must be text; quotes make text of a number, of true and of false"
	case reflect.Int, reflect.Int64:
		return fmt.Sprintf("must be a whole number between %d and %d", int64(math.MinInt64), int64(math.MaxInt64))
	case reflect.Int32:
		return fmt.Sprintf("must be a whole number between %d and %d", math.MinInt32, math.MaxInt32)
	case reflect.Float32, reflect.Float64:
		return "must be a number"
	}
	return err.Error()
}
