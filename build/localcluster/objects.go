// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

// servedPatience limits the time until the API server serves a CustomResourceDefinition.
const servedPatience = time.Minute

// ReadObjects reads the objects of a YAML file with one or more documents, or of all *.yaml files in a directory.
func ReadObjects(path string) ([]*unstructured.Unstructured, error) {
	files := []string{path}
	if info, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("cannot read objects: %w; next: give a file or a directory that exists", err)
	} else if info.IsDir() {
		if files, err = filepath.Glob(filepath.Join(path, "*.yaml")); err != nil {
			return nil, err
		}
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		err := eachDocument(file, func(json []byte) error {
			object := &unstructured.Unstructured{}
			objects = append(objects, object)
			if err := object.UnmarshalJSON(json); err != nil {
				return fmt.Errorf("%w; next: correct it", err)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// CreateObjects creates objects of any kind, in order, and missing namespaces. Existing objects are not changed. When
// it returns, the API server serves the objects of new CustomResourceDefinitions.
func (c *ControlPlane) CreateObjects(ctx context.Context, objects ...*unstructured.Unstructured) error {
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := c.createObject(ctx, client, object); err != nil {
			return fmt.Errorf("cannot create the %s %s: %w; next: correct it", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

func (c *ControlPlane) createObject(ctx context.Context, client dynamic.Interface, object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	served, err := c.served(kind.GroupVersion(), func(r metav1.APIResource) bool { return r.Kind == kind.Kind })
	if err != nil {
		return err
	}
	resources := client.Resource(kind.GroupVersion().WithResource(served.Name))
	var creating dynamic.ResourceInterface = resources
	if served.Namespaced {
		namespace := object.GetNamespace()
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		if err := c.createNamespaces(ctx, namespace); err != nil {
			return err
		}
		creating = resources.Namespace(namespace)
	}
	if _, err = creating.Create(ctx, object, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	if kind.Kind != "CustomResourceDefinition" {
		return nil
	}
	group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(object.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions")
	for _, version := range versions {
		fields, _ := version.(map[string]any)
		if fields["served"] != true {
			continue
		}
		name, _ := fields["name"].(string)
		var last error
		err := wait.PollImmediateWithContext(ctx, 100*time.Millisecond, servedPatience, func(context.Context) (bool, error) {
			_, last = c.served(schema.GroupVersion{Group: group, Version: name}, func(r metav1.APIResource) bool { return r.Name == plural })
			return last == nil, nil
		})
		if err != nil {
			return errors.Join(err, last)
		}
	}
	return nil
}

// served returns the API resource of a kind.
func (c *ControlPlane) served(
	version schema.GroupVersion, wanted func(metav1.APIResource) bool,
) (*metav1.APIResource, error) {
	list, err := c.client.Discovery().ServerResourcesForGroupVersion(version.String())
	if err != nil {
		return nil, err
	}
	for _, resource := range list.APIResources {
		if !strings.Contains(resource.Name, "/") && wanted(resource) {
			return &resource, nil
		}
	}
	return nil, fmt.Errorf("the API server does not serve it in %s", version)
}
