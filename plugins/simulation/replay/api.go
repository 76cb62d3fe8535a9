// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	jsonpatch "github.com/evanphx/json-patch"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/watch"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// api is the API server: a transport that answers from a simulation's store. Changes are checked and confirmed at once, and made by
// apply in a fixed order, because many goroutines send them at the same virtual time.
type api struct {
	simulation *Simulation
	// wake holds an element while there are changes.
	wake chan struct{}

	mutex   sync.Mutex
	changes []change
}

// change is a change that was confirmed, and is not made yet.
type change struct {
	// order sorts changes of the same time.
	order string
	make  func()
}

// newAPI returns an API server with a configuration for its clients.
func newAPI(s *Simulation) (*api, *rest.Config) {
	a := &api{simulation: s, wake: make(chan struct{}, 1)}
	return a, &rest.Config{Host: "http://simulated", Transport: a, QPS: -1}
}

// paths parses the paths of requests.
var paths = apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// request is a request for one or several objects.
type request struct {
	*apirequest.RequestInfo
	resource schema.GroupVersionResource
}

func parse(sent *http.Request) (request, error) {
	info, err := paths.NewRequestInfo(sent)
	if err != nil {
		return request{}, err
	}
	if !info.IsResourceRequest {
		return request{}, fmt.Errorf("%s is not simulated", sent.URL.Path)
	}
	if info.Resource == "namespaces" {
		info.Namespace = "" // A namespace has none.
	}
	return request{info, schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}}, nil
}

func (r request) key() string { return strings.TrimPrefix(r.Namespace+"/"+r.Name, "/") }

// RoundTrip implements http.RoundTripper.
func (a *api) RoundTrip(sent *http.Request) (*http.Response, error) {
	r, err := parse(sent)
	if err != nil {
		return answer(http.StatusNotFound, failure(err)), nil
	}
	var body []byte
	if sent.Body != nil {
		if body, err = io.ReadAll(sent.Body); err != nil {
			return nil, err
		}
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	switch {
	case r.Resource == "events" && r.Verb == "create":
		return answer(http.StatusCreated, body), nil
	case r.Verb == "watch":
		return a.watch(a.tableOf(r)), nil
	case r.Verb == "list":
		return a.list(r, a.tableOf(r))
	}
	var known runtime.Object
	t := a.simulation.store.ofResource(r.resource)
	if t != nil {
		known = t.get(r.key())
	}
	if known == nil {
		return answer(http.StatusNotFound, failure(apierrors.NewNotFound(r.resource.GroupResource(), r.Name))), nil
	}
	switch r.Verb {
	case "get":
		return answer(http.StatusOK, encode(t, known)), nil
	case "create":
		if pod, ok := known.(*v1.Pod); ok && r.Subresource == "eviction" {
			return a.evict(r, pod)
		}
	case "delete":
		pod, ok := known.(*v1.Pod)
		if !ok {
			break
		}
		a.later("delete "+r.key(), func() { a.simulation.terminate(pod) })
		return answer(http.StatusOK, []byte(`{"kind":"Status","apiVersion":"v1","status":"Success"}`)), nil
	case "update", "patch":
		return a.update(r, t, known, sent, body)
	}
	return answer(http.StatusMethodNotAllowed, failure(fmt.Errorf("%s %s is not simulated", sent.Method, sent.URL.Path))), nil
}

// later confirms a change.
func (a *api) later(order string, do func()) {
	a.changes = append(a.changes, change{order, do})
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// apply makes the confirmed changes, and reports whether there were any.
func (a *api) apply() bool {
	a.mutex.Lock()
	changes := a.changes
	a.changes = nil
	a.mutex.Unlock()
	sort.SliceStable(changes, func(i, j int) bool { return changes[i].order < changes[j].order })
	for _, c := range changes {
		c.make()
	}
	return len(changes) > 0
}

// client is a client whose bindings take no way through HTTP and JSON, because there is one for each pod.
type client struct {
	kubernetes.Interface
	api *api
}

type coreClient struct {
	corev1.CoreV1Interface
	api *api
}

type podClient struct {
	corev1.PodInterface
	api       *api
	namespace string
}

// CoreV1 implements kubernetes.Interface.
func (c client) CoreV1() corev1.CoreV1Interface { return coreClient{c.Interface.CoreV1(), c.api} }

// Pods implements corev1.CoreV1Interface.
func (c coreClient) Pods(namespace string) corev1.PodInterface {
	return podClient{c.CoreV1Interface.Pods(namespace), c.api, namespace}
}

// Bind confirms the binding of a pod under the conditions of the API server.
func (c podClient) Bind(_ context.Context, binding *v1.Binding, _ metav1.CreateOptions) error {
	c.api.mutex.Lock()
	defer c.api.mutex.Unlock()
	key, s := c.namespace+"/"+binding.Name, c.api.simulation
	pod := s.current(key)
	if pod == nil {
		return apierrors.NewNotFound(v1.Resource("pods"), binding.Name)
	}
	if pod.DeletionTimestamp != nil || pod.Spec.NodeName != "" {
		return apierrors.NewConflict(v1.Resource("pods"), binding.Name,
			fmt.Errorf("pod %s is being deleted or is already assigned to a node", binding.Name))
	}
	c.api.later("bind "+key, func() { s.bind(pod, binding.Target.Name) })
	return nil
}

// evict confirms the eviction of a pod, unless a budget does not allow it.
func (a *api) evict(r request, pod *v1.Pod) (*http.Response, error) {
	if p := a.simulation.pods[r.key()]; p == nil {
		return answer(http.StatusNotFound, failure(apierrors.NewNotFound(r.resource.GroupResource(), r.Name))), nil
	} else if by := a.simulation.refused(p, pod); by != nil && by.Several {
		return answer(http.StatusInternalServerError, failure(apierrors.NewInternalError(fmt.Errorf("the pod has several PodDisruptionBudgets: %s", by.Budget)))), nil
	} else if by != nil {
		return answer(http.StatusTooManyRequests, failure(apierrors.NewTooManyRequests("PodDisruptionBudget "+by.Budget+" allows no disruption", 0))), nil
	}
	a.later("delete "+r.key(), func() { a.simulation.terminate(pod) })
	return answer(http.StatusCreated, []byte(`{"kind":"Status","apiVersion":"v1","status":"Success"}`)), nil
}

// update replaces or patches an object, and answers with the new one.
func (a *api) update(r request, t *table, known runtime.Object, sent *http.Request, body []byte) (*http.Response, error) {
	changed := known.DeepCopyObject()
	err := a.merge(changed, sent, body)
	if err != nil {
		return answer(http.StatusBadRequest, failure(err)), nil
	}
	a.later("update "+r.Resource+" "+r.key(), func() {
		// The object may have been changed or deleted meanwhile, at the same time.
		if latest := t.get(r.key()); latest != nil {
			latest = latest.DeepCopyObject()
			utilruntime.Must(a.merge(latest, sent, body)) // The same change succeeded before.
			a.simulation.store.put(latest)
			a.simulation.bindVolume(latest)
		}
	})
	return answer(http.StatusOK, encode(t, changed)), nil
}

// merge changes an object as a request asks.
func (a *api) merge(object runtime.Object, sent *http.Request, body []byte) error {
	if sent.Method == http.MethodPatch {
		original, err := json.Marshal(object)
		if err != nil {
			return err
		}
		if types.PatchType(sent.Header.Get("Content-Type")) == types.StrategicMergePatchType {
			body, err = strategicpatch.StrategicMergePatch(original, body, object)
		} else {
			body, err = jsonpatch.MergePatch(original, body)
		}
		if err != nil {
			return err
		}
	}
	if custom, ok := object.(*unstructured.Unstructured); ok {
		return custom.UnmarshalJSON(body)
	}
	// Into a new object: fields that the body lacks are cleared.
	fresh := reflect.New(reflect.TypeOf(object).Elem())
	err := json.Unmarshal(body, fresh.Interface())
	reflect.ValueOf(object).Elem().Set(fresh.Elem())
	return err
}

// kindOf has the kinds of resources of other projects, of which a snapshot may have no object.
var kindOf = map[string]string{
	"podgroups": "PodGroup", "elasticquotas": "ElasticQuota", "noderesourcetopologies": "NodeResourceTopology",
}

// tableOf returns the table of a request for a kind, which exists although no object of it may.
func (a *api) tableOf(r request) *table {
	if t := a.simulation.store.ofResource(r.resource); t != nil {
		return t
	}
	return a.simulation.store.addTable(schema.GroupVersionKind{Group: r.APIGroup, Version: r.APIVersion, Kind: kindOf[r.Resource]})
}

// list answers with all objects of a kind.
func (a *api) list(r request, t *table) (*http.Response, error) {
	var items []json.RawMessage
	for _, key := range sorted(t.indexer.ListKeys()) {
		object := t.get(key)
		if r.Namespace == "" || strings.HasPrefix(key, r.Namespace+"/") {
			items = append(items, encode(t, object))
		}
	}
	list := map[string]interface{}{
		"metadata": metav1.ListMeta{ResourceVersion: fmt.Sprint(atomic.LoadInt64(&a.simulation.store.version))}, "items": items,
	}
	// A client with types knows the kind that it asks for.
	if t.kind.Kind != "" {
		list["apiVersion"], list["kind"] = r.resource.GroupVersion().String(), t.kind.Kind+"List"
	}
	content, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	return answer(http.StatusOK, content), nil
}

// watch answers with the changes from now on.
func (a *api) watch(t *table) *http.Response {
	events := make(chan watch.Event, watchBuffer)
	a.simulation.store.mutex.Lock()
	t.watches = append(t.watches[:len(t.watches):len(t.watches)], events)
	a.simulation.store.mutex.Unlock()
	reader, writer := io.Pipe()
	go func() {
		for event := range events {
			line, err := json.Marshal(map[string]interface{}{"type": event.Type, "object": json.RawMessage(encode(t, event.Object))})
			if err != nil {
				continue
			}
			if _, err := writer.Write(append(line, '\n')); err != nil {
				return
			}
		}
	}()
	response := answer(http.StatusOK, nil)
	response.Body = reader
	return response
}

// encode returns an object in JSON, with its kind.
func encode(t *table, object runtime.Object) []byte {
	if _, custom := object.(*unstructured.Unstructured); !custom {
		object = object.DeepCopyObject()
		object.GetObjectKind().SetGroupVersionKind(t.kind)
	}
	content, err := json.Marshal(object)
	if err != nil {
		return failure(err)
	}
	return content
}

// failure returns an error as the API server's status.
func failure(err error) []byte {
	status := apierrors.NewInternalError(err).Status()
	if known, ok := err.(apierrors.APIStatus); ok {
		status = known.Status()
	}
	status.Kind, status.APIVersion = "Status", "v1"
	content, err := runtime.Encode(clientscheme.Codecs.LegacyCodec(v1.SchemeGroupVersion), &status)
	if err != nil {
		return nil
	}
	return content
}

func answer(code int, body []byte) *http.Response {
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
	}
}

func sorted(names []string) []string {
	sort.Strings(names)
	return names
}
