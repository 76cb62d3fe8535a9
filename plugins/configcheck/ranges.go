// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Only a validator knows which numbers a field may hold, and it sees a file only when every value in it is of its
// field's type. So it is asked about the field once more, with the lowest and the highest number in the place of what
// is wrong.

// wrongNumber is a value that should be a number, or a duration, and is not.
type wrongNumber struct {
	err    *field.Error
	goType reflect.Type
	// extremes are the lowest and the highest value of the type.
	extremes []json.RawMessage
}

// extremesOf returns the lowest and the highest value of a type that has such; for durations, a century less and more.
func extremesOf(t reflect.Type) []json.RawMessage {
	switch {
	case t == duration:
		return []json.RawMessage{encode("-876000h"), encode("876000h")}
	case reflect.PtrTo(t).Implements(jsonUnmarshaler), reflect.PtrTo(t).Implements(textUnmarshaler):
		return nil
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		return []json.RawMessage{encode(int64(math.MinInt64)), encode(int64(math.MaxInt64))}
	case reflect.Int32:
		return []json.RawMessage{encode(math.MinInt32), encode(math.MaxInt32)}
	case reflect.Float32:
		return []json.RawMessage{encode(-math.MaxFloat32), encode(math.MaxFloat32)}
	case reflect.Float64:
		return []json.RawMessage{encode(-math.MaxFloat64), encode(math.MaxFloat64)}
	}
	return nil
}

// allowed says what a field takes: its type, and what validation says when the lowest or the highest value of the type
// is in it. Where validation says nothing, it is the type alone, with its bounds.
func (r reader) allowed(document json.RawMessage, object interface{}, version schema.GroupVersion, wrong wrongNumber) string {
	seen := sets.NewString()
	var rules []string
	for _, extreme := range wrong.extremes {
		check := &fieldCheck{scheme: r.scheme, version: version, instead: map[string]json.RawMessage{wrong.err.Field: extreme}}
		invalid, err := r.validateDocument(check.document(document, object))
		if err != nil {
			continue
		}
		for _, err := range invalid {
			fieldErr, ok := err.(*field.Error)
			if ok && fieldErr.Field == wrong.err.Field && fieldErr.Detail != "" && !seen.Has(fieldErr.Detail) {
				seen.Insert(fieldErr.Detail)
				rules = append(rules, fieldErr.Detail)
			}
		}
	}
	if len(rules) == 0 {
		return wrong.err.Detail
	}
	what := wrong.err.Detail
	if kind := wrong.goType.Kind(); kind == reflect.Int || kind == reflect.Int32 || kind == reflect.Int64 {
		what = "must be a whole number"
	}
	return fmt.Sprintf("%s; %s", what, strings.Join(rules, "; "))
}
