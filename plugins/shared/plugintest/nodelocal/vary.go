// SPDX-License-Identifier: Apache-2.0

package nodelocal

import (
	"reflect"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// variation changes an object in one place at a time.
type variation struct {
	// words are the values of strings.
	words []string
	// visit is called after each change, which is undone afterwards. The path is that of the field, without indexes. More
	// words follow if more than a string, a number or a key has changed.
	visit func(path string)
}

// vary changes what a field has, also to what a donor has there.
func (c variation) vary(now, donor interface{}, set func(interface{}), path string) {
	try := func(to interface{}, note string) {
		set(to)
		c.visit(path + note)
		set(now)
	}
	switch v := now.(type) {
	case string:
		for _, word := range c.words {
			try(word, "")
		}
	case bool:
		try(!v, "")
	case float64:
		for _, n := range []float64{0, 1, v + 1, 2 * v} {
			try(n, "")
		}
	case []interface{}:
		for i := range v {
			i := i
			c.vary(v[i], nil, func(to interface{}) { v[i] = to }, path)
			try(join(v[:i], v[i+1:]), " (an element less)")
			try(join(v[i:], v[:i]), " (in another order)")
			if i > 0 {
				if first, ok := v[i-1].(string); ok {
					try(join(v[:i-1], append([]interface{}{join(first, v[i])}, v[i+1:]...)), " (joined)")
				}
			}
		}
	case map[string]interface{}:
		other, _ := donor.(map[string]interface{})
		for _, key := range sets.StringKeySet(v).List() {
			c.varyEntry(v, other, key, strings.TrimPrefix(path+"."+key, "."))
		}
		for _, key := range sets.StringKeySet(other).List() {
			if _, has := v[key]; !has {
				v[key] = other[key]
				c.visit(strings.TrimPrefix(path+"."+key, ".") + " (as a whole)")
				delete(v, key)
			}
		}
	}
}

// maps matches the paths of entries whose keys are not names of fields.
var maps = regexp.MustCompile(`(labels|annotations|nodeSelector|requests|limits|overhead)\.`)

// varyEntry changes a field, removes it, gives its value to other keys, and moves parts of it to other fields: a key of
// NodeLocalKey without lengths and separators stays the same.
func (c variation) varyEntry(v, donor map[string]interface{}, key, path string) {
	now := v[key]
	c.vary(now, donor[key], func(to interface{}) { v[key] = to }, path)
	delete(v, key)
	c.visit(path + " (without)")
	if text, ok := now.(string); ok && maps.MatchString(path) {
		for _, word := range append(c.words, key+text) {
			if _, has := v[word]; !has {
				v[word] = text
				c.visit(path + " (as " + word + ")")
				delete(v, word)
			}
		}
		v[key+text] = ""
		c.visit(path + " (joined)")
		delete(v, key+text)
	}
	v[key] = now
	from := reflect.ValueOf(now)
	if kind := from.Kind(); kind != reflect.String && kind != reflect.Slice {
		return
	}
	for _, second := range sets.StringKeySet(v).List() {
		then := v[second]
		move := func(rest reflect.Value, moved interface{}) {
			v[key], v[second] = rest.Interface(), moved
			c.visit(path + " (moved to " + second + ")")
			v[key], v[second] = now, then
		}
		if n := from.Len(); second != key && n > 0 && reflect.TypeOf(then) == from.Type() {
			move(reflect.ValueOf(then), now)
			move(from.Slice(0, n-1), join(from.Slice(n-1, n).Interface(), then))
			move(from.Slice(1, n), join(then, from.Slice(0, 1).Interface()))
		}
	}
}

// join returns a new string or list.
func join(a, b interface{}) interface{} {
	if text, ok := a.(string); ok {
		return text + b.(string)
	}
	return append(append([]interface{}{}, a.([]interface{})...), b.([]interface{})...)
}
