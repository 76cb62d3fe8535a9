// SPDX-License-Identifier: Apache-2.0

package records

import (
	"encoding/json"
	"flag"
	"io/ioutil"
	"reflect"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write openapi.json")

// object is a JSON object.
type object map[string]interface{}

func parameter(in, name, description string) object {
	return object{"name": name, "in": in, "description": description, "required": in == "path", "type": "string"}
}

// TestOpenAPI generates the schema of the answers from their Go types, and compares it with openapi.json.
func TestOpenAPI(t *testing.T) {
	paths, definitions := object{}, object{}
	search := []object{parameter("query", "search", "words that the listed pods have")}
	for _, a := range []struct {
		path, summary string
		parameters    []object
		answer        interface{}
	}{
		{PodsPath, "the pods with records, pending pods first", search, PodList{}},
		{PodsPath + "/{namespace}/{name}", "the last attempts to schedule a pod", []object{
			parameter("path", "namespace", "of the pod"), parameter("path", "name", "of the pod"),
		}, PodRecord{}},
		{QueuePath, "the pending pods", search, Queue{}},
		{WhatIfPath, "dry-run scheduling", []object{
			parameter("query", "pod", "NAMESPACE/NAME of a pending pod; not with POST, whose body is the manifest of a Pod, or a List of the Pods of a gang"),
			parameter("query", "nodes", "all: with the verdicts of all nodes, for one pod"),
		}, WhatIf{}},
	} {
		operation := object{"summary": a.summary, "parameters": a.parameters, "responses": object{
			"200": object{"description": "OK", "schema": schemaOf(reflect.TypeOf(a.answer), definitions)},
		}}
		paths[a.path] = object{"get": operation}
		if a.path == WhatIfPath {
			paths[a.path] = object{"get": operation, "post": operation}
		}
	}
	made, err := json.MarshalIndent(object{
		"swagger": "2.0", "produces": []string{"application/json"}, "paths": paths, "definitions": definitions,
		"info": object{"title": "Scheduling records", "version": strings.TrimPrefix(APIVersion, "scheduling-records/")},
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if *update && string(made)+"\n" != schema {
		if err := ioutil.WriteFile("openapi.json", append(made, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(made)+"\n" != schema {
		t.Error("openapi.json is out of date; next: make update")
	}
}

// schemaOf returns the schema of a type, and adds those of structures to the definitions.
func schemaOf(t reflect.Type, definitions object) object {
	switch {
	case t == reflect.TypeOf(time.Time{}):
		return object{"type": "string", "format": "date-time"}
	case t.Kind() == reflect.Ptr:
		return schemaOf(t.Elem(), definitions)
	case t.Kind() == reflect.Slice:
		return object{"type": "array", "items": schemaOf(t.Elem(), definitions)}
	case t.Kind() == reflect.String:
		return object{"type": "string"}
	case t.Kind() == reflect.Bool:
		return object{"type": "boolean"}
	case t.Kind() == reflect.Float64:
		return object{"type": "number", "format": "double"}
	case t.Kind() != reflect.Struct:
		return object{"type": "integer", "format": "int64"}
	}
	if _, known := definitions[t.Name()]; !known {
		properties, required := object{}, []string{}
		addFields(t, properties, &required, definitions)
		definitions[t.Name()] = object{"type": "object", "properties": properties, "required": required}
	}
	return object{"$ref": "#/definitions/" + t.Name()}
}

func addFields(t reflect.Type, properties object, required *[]string, definitions object) {
	for i := 0; i < t.NumField(); i++ {
		field := t.Field(i)
		tag := strings.Split(field.Tag.Get("json"), ",")
		if field.Anonymous {
			addFields(field.Type, properties, required, definitions)
			continue
		}
		if tag[0] == "-" {
			continue
		}
		properties[tag[0]] = schemaOf(field.Type, definitions)
		if len(tag) == 1 {
			*required = append(*required, tag[0])
		}
	}
}
