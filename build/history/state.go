// SPDX-License-Identifier: Apache-2.0

package history

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// pod is what was written of a pod whose object exists, or may exist.
type pod struct {
	uid, on        string
	deleted, ended bool
}

// shape is the hash of a pod's labels, annotations and spec.
type shape [sha256.Size]byte

// state is what the file says of the cluster now.
type state struct {
	// nodes are the fields of nodes whose change is written, as JSON.
	nodes map[string]string
	pods  map[string]*pod
	// likes has a pod for each shape that is in the file, and shapes has their shapes. Each is the latest pod of its name.
	likes  map[shape]string
	shapes map[string]shape
}

func newState() state {
	return state{map[string]string{}, map[string]*pod{}, map[shape]string{}, map[string]shape{}}
}

// apply changes the state as an event says.
func (s *state) apply(event Event) error {
	known := s.pods[event.Bound+event.Delete+event.Ended]
	node, _ := event.Node.(map[string]any)
	object, _ := event.Pod.(map[string]any)
	switch {
	case event.Change == "remove":
		delete(s.nodes, fmt.Sprint(event.Node))
	case node != nil:
		s.nodes[keyOf(node)] = relevant(node)
	case object != nil:
		_, shape := shapeOf(object)
		s.arrive(keyOf(object), shape, event)
	case event.Like != "":
		shape, found := s.shapes[event.Like]
		if !found {
			return fmt.Errorf("there is no pod %.300q before", event.Like)
		}
		s.arrive(event.Namespace+"/"+event.Name, shape, event)
	case known == nil:
	case event.Bound != "":
		known.on = event.On
	case event.Delete != "":
		known.deleted = true
	default:
		known.ended = true
	}
	return nil
}

// arrive adds a pod, which is the latest of its name.
func (s *state) arrive(key string, of shape, event Event) {
	s.pods[key] = &pod{uid: event.UID, on: event.On}
	if s.likes[of] != key {
		delete(s.likes, s.shapes[key])
		delete(s.shapes, key)
	}
	if s.likes[of] == "" {
		s.likes[of], s.shapes[key] = key, of
	}
}

// keyOf returns NAMESPACE/NAME, or NAME.
func keyOf(object map[string]any) string {
	u := unstructured.Unstructured{Object: object}
	return strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/")
}

// relevant returns the fields of a node that matter. Its conditions and images change often.
func relevant(node map[string]any) string {
	var fields []any
	for _, path := range [][]string{{"metadata", "labels"}, {"spec", "taints"}, {"spec", "unschedulable"}, {"status", "allocatable"}} {
		value, _, _ := unstructured.NestedFieldNoCopy(node, path...)
		fields = append(fields, value)
	}
	text, _ := json.Marshal(fields)
	return string(text)
}

// shapeOf returns a pod as it is written, without what differs between the pods of a template but its name.
func shapeOf(object map[string]any) (map[string]any, shape) {
	u := unstructured.Unstructured{Object: object}
	metadata, spec := map[string]any{}, map[string]any{}
	if given, is := object["metadata"].(map[string]any); is {
		maps.Copy(metadata, given)
	}
	if given, is := object["spec"].(map[string]any); is {
		maps.Copy(spec, given)
	}
	maps.DeleteFunc(metadata, func(key string, _ any) bool { return key != "labels" && key != "annotations" })
	delete(spec, "nodeName")
	// A volume of which only the name is left does not matter to scheduling. That of a token has another name in each pod.
	if volumes, _ := spec["volumes"].([]any); volumes != nil {
		spec["volumes"] = slices.DeleteFunc(slices.Clone(volumes), func(one any) bool {
			volume, _ := one.(map[string]any)
			return len(volume) < 2
		})
	}
	text, _ := json.Marshal([]any{metadata, spec})
	metadata["namespace"], metadata["name"] = u.GetNamespace(), u.GetName()
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, sha256.Sum256(text)
}

// see writes what is new of an object.
func (f *follower) see(object map[string]any) {
	u := &unstructured.Unstructured{Object: object}
	key, uid := keyOf(object), string(u.GetUID())
	if u.GetNamespace() == "" {
		if before, known := f.nodes[key]; !known || before != relevant(object) {
			u.SetResourceVersion("")
			unstructured.RemoveNestedField(object, "status", "conditions")
			f.write(Event{Change: "add", Node: object})
		}
		return
	}
	if known := f.pods[key]; known != nil && known.uid != uid {
		f.gone(key)
	}
	phase, _, _ := unstructured.NestedString(object, "status", "phase")
	ended := phase == string(corev1.PodSucceeded) || phase == string(corev1.PodFailed)
	on, _, _ := unstructured.NestedString(object, "spec", "nodeName")
	if f.pods[key] == nil {
		created := u.GetCreationTimestamp().Time
		if ended && !created.After(f.since) {
			return // It ended before.
		}
		event := Event{Namespace: u.GetNamespace(), Name: u.GetName(), UID: uid}
		event.Owner, event.Workload = ownersOf(u)
		if f.starting {
			age := Duration(max(0, f.since.Sub(created)).Truncate(time.Millisecond))
			event.On, event.Age = on, &age
		}
		whole, shape := shapeOf(object)
		if event.Like = f.likes[shape]; event.Like == "" {
			event.Pod, event.Namespace, event.Name = whole, "", ""
		}
		f.write(event)
	}
	known := f.pods[key]
	if on != "" && known.on == "" && !known.ended {
		f.write(Event{Bound: key, On: on})
	}
	if u.GetDeletionTimestamp() != nil && !known.deleted && !known.ended {
		f.write(Event{Delete: key})
	}
	if ended && !known.ended {
		f.write(Event{Ended: key})
	}
}

// gone writes that an object no longer exists.
func (f *follower) gone(key string) {
	if _, known := f.nodes[key]; known {
		f.write(Event{Change: "remove", Node: key})
	}
	if known := f.pods[key]; known != nil && !known.ended {
		if !known.deleted {
			f.write(Event{Delete: key})
		}
		f.write(Event{Ended: key})
	}
	delete(f.pods, key)
}

// ownersOf returns the controller of a pod, and that of a ReplicaSet or a Job, which names and labels show.
func ownersOf(u *unstructured.Unstructured) (owner, workload string) {
	controller := metav1.GetControllerOf(u)
	if controller == nil {
		return "", ""
	}
	cut := strings.LastIndex(controller.Name, "-")
	if cut < 0 {
		return controller.Kind + "/" + controller.Name, ""
	}
	above, suffix := controller.Name[:cut], controller.Name[cut+1:]
	// The name of a CronJob's Job ends with the time for which it was planned, in minutes.
	minutes, err := strconv.ParseInt(suffix, 10, 64)
	late := u.GetCreationTimestamp().Sub(time.Unix(60*minutes, 0))
	switch {
	case controller.Kind == "ReplicaSet" && u.GetLabels()["pod-template-hash"] == suffix:
		workload = "Deployment/" + above
	case controller.Kind == "Job" && err == nil && late >= 0 && late < 24*time.Hour:
		workload = "CronJob/" + above
	}
	return controller.Kind + "/" + controller.Name, workload
}
