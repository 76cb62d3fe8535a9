// SPDX-License-Identifier: Apache-2.0

package records

import (
	"reflect"
	"strings"
	"time"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// OpenAPIPath is the path of the OpenAPI 2 schema of all answers.
const OpenAPIPath = "/scheduling/openapi"

// answers describes the answer at each path.
var answers = []struct {
	path, summary string
	parameters    []spec.Parameter
	answer        interface{}
	posts         bool
}{
	{PodsPath, "the pods that have records, those that wait first", searching, PodList{}, false},
	{PodsPath + "/{namespace}/{name}", "the last attempts to schedule a pod", []spec.Parameter{
		parameter("path", "namespace", "of the pod"), parameter("path", "name", "of the pod"),
	}, PodRecord{}, false},
	{NodesPath + "/{name}", "what the last attempts say of a node", []spec.Parameter{parameter("path", "name", "of the node")}, NodeRecord{}, false},
	{QueuePath, "the pods that wait", searching, Queue{}, false},
	{WhatIfPath, "what would become of a pod", []spec.Parameter{
		parameter("query", "pod", "NAMESPACE/NAME; not with POST, where the body is the manifest of a pod"),
		parameter("query", "nodes", "all: with the verdicts of all nodes"),
	}, WhatIf{}, true},
}

var searching = []spec.Parameter{parameter("query", "search", "leaves the pods that have all words of it")}

func parameter(in, name, description string) spec.Parameter {
	return spec.Parameter{
		ParamProps:   spec.ParamProps{Name: name, In: in, Description: description, Required: in == "path"},
		SimpleSchema: spec.SimpleSchema{Type: "string"},
	}
}

// openAPI derives the schema of the answers from their Go types.
func openAPI() *spec.Swagger {
	document := &spec.Swagger{SwaggerProps: spec.SwaggerProps{
		Swagger: "2.0",
		Info: &spec.Info{InfoProps: spec.InfoProps{
			Title: "Scheduling records", Version: strings.TrimPrefix(APIVersion, "scheduling-records/"),
		}},
		Produces: []string{"application/json"}, Paths: &spec.Paths{Paths: map[string]spec.PathItem{}}, Definitions: spec.Definitions{},
	}}
	for _, a := range answers {
		response := spec.Response{ResponseProps: spec.ResponseProps{
			Description: "OK", Schema: schemaOf(reflect.TypeOf(a.answer), document.Definitions),
		}}
		operation := &spec.Operation{OperationProps: spec.OperationProps{
			Summary: a.summary, Parameters: a.parameters,
			Responses: &spec.Responses{ResponsesProps: spec.ResponsesProps{StatusCodeResponses: map[int]spec.Response{200: response}}},
		}}
		item := spec.PathItem{PathItemProps: spec.PathItemProps{Get: operation}}
		if a.posts {
			item.Post = operation
		}
		document.Paths.Paths[a.path] = item
	}
	return document
}

// schemaOf returns the schema of a type. Structs are added to the definitions.
func schemaOf(t reflect.Type, definitions spec.Definitions) *spec.Schema {
	switch {
	case t == reflect.TypeOf(time.Time{}):
		return spec.DateTimeProperty()
	case t.Kind() == reflect.Ptr:
		return schemaOf(t.Elem(), definitions)
	case t.Kind() == reflect.Slice:
		return spec.ArrayProperty(schemaOf(t.Elem(), definitions))
	case t.Kind() == reflect.String:
		return spec.StringProperty()
	case t.Kind() == reflect.Bool:
		return spec.BooleanProperty()
	case t.Kind() == reflect.Float64:
		return spec.Float64Property()
	case t.Kind() != reflect.Struct:
		return spec.Int64Property()
	}
	if _, known := definitions[t.Name()]; !known {
		schema := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{}}}
		definitions[t.Name()] = schema
		addFields(t, &schema, definitions)
		definitions[t.Name()] = schema
	}
	return spec.RefSchema("#/definitions/" + t.Name())
}

func addFields(t reflect.Type, schema *spec.Schema, definitions spec.Definitions) {
	for i := 0; i < t.NumField(); i++ {
		field := t.Field(i)
		tag := strings.Split(field.Tag.Get("json"), ",")
		if field.Anonymous {
			addFields(field.Type, schema, definitions)
			continue
		}
		schema.Properties[tag[0]] = *schemaOf(field.Type, definitions)
		if len(tag) == 1 {
			schema.Required = append(schema.Required, tag[0])
		}
	}
}
