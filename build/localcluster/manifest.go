// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	yamlstream "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// strictly decodes objects. An unknown field is an error, because it may be mistyped.
var strictly = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

// Manifest holds the objects of a file.
type Manifest struct {
	// Nodes are fake nodes for CreateNodes.
	Nodes []*corev1.Node
	// Objects are custom objects for CreateObjects.
	Objects []*unstructured.Unstructured
	// Pods are for Place; there is at least one.
	Pods []*corev1.Pod
}

// ReadManifest reads the pods, the nodes and the custom objects of a manifest, YAML or JSON, of one or more documents.
// It refuses other kinds, because no controller would create their pods.
func ReadManifest(file string) (*Manifest, error) {
	manifest := &Manifest{}
	if err := eachDocument(file, manifest.add); errors.As(err, new(*fs.PathError)) {
		return nil, fmt.Errorf("cannot read the manifest: %w; next: give a file that exists with MANIFEST", err)
	} else if err != nil {
		return nil, err
	}
	if len(manifest.Pods) == 0 {
		return nil, fmt.Errorf("%s contains no pod; next: give a manifest with kind: Pod", file)
	}
	return manifest, nil
}

// eachDocument visits the documents of a YAML file, as JSON, except empty ones.
func eachDocument(file string, visit func(json []byte) error) error {
	open, err := os.Open(file)
	if err != nil {
		return err
	}
	defer open.Close()
	// > of Windows PowerShell writes UTF-16, and kubectl reads it, too.
	text := transform.NewReader(open, unicode.BOMOverride(transform.Nop))
	documents := yamlstream.NewYAMLReader(bufio.NewReader(text))
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		var json []byte
		if err == nil {
			json, err = yaml.YAMLToJSONStrict(document)
		}
		if err != nil {
			err = fmt.Errorf("%w; next: correct it", err)
		} else if string(json) != "null" {
			err = visit(json)
		}
		if err != nil {
			return fmt.Errorf("%s, document %d: %w", file, number, err)
		}
	}
}

// add reads one document.
func (m *Manifest) add(json []byte) error {
	custom := &unstructured.Unstructured{}
	if err := custom.UnmarshalJSON(json); err == nil && !scheme.Scheme.IsGroupRegistered(custom.GroupVersionKind().Group) {
		m.Objects = append(m.Objects, custom)
		return nil
	}
	object, kind, err := strictly.Decode(json, nil, nil)
	if err != nil {
		return fmt.Errorf("%w; next: correct it", err)
	}
	switch object := object.(type) {
	case *corev1.Node:
		m.Nodes = append(m.Nodes, object)
	case *corev1.Pod:
		if object.Spec.NodeName != "" {
			return fmt.Errorf("spec.nodeName is %s, so no scheduler would place the pod; next: remove spec.nodeName",
				object.Spec.NodeName)
		}
		if object.Namespace == "" {
			object.Namespace = corev1.NamespaceDefault
		}
		m.Pods = append(m.Pods, object)
	default:
		return fmt.Errorf("it is a %s: only pods and nodes can be created here, because no controller runs; "+
			"next: write the pod itself, kind: Pod", kind.Kind)
	}
	return nil
}
