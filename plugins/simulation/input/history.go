// SPDX-License-Identifier: Apache-2.0

package input

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// historyVersion is the version of the format that docs/history.md describes.
	historyVersion = 1
	// These are the sources of histories.
	fromPrometheus = "prometheus"
	fromWatches    = "watch"
	// mostMemory limits what a history may take, in bytes. The others are about what a line, a pod and a node take.
	mostMemory = 2 << 30
	podMemory  = 2 << 10
	lineMemory = 300
	makeAgain  = "make it again: kubectl scheduling history --prometheus URL --since 7d -o FILE"
	seeFormat  = "correct the line, as docs/history.md says"
)

// history collects the lines of a history.
type history struct {
	*Trace
	share  func(*v1.Pod) *v1.Pod
	source string
	at     place
	now    time.Duration
	last   bool
	memory int
	pods   map[string]*life
	// nodes have each name that was ever there, and whether it is there now. onto counts the pods that were bound to a node.
	nodes map[string]bool
	onto  map[string]int
	// workloads have the owner of each owner, and owners all that are in Owners.
	workloads map[string]string
	owners    map[string]bool
	// amounts are lists by their text.
	amounts map[string]v1.ResourceList
	// unknown counts the lines about what was gone before the history began, and replaced the pods whose end it lacks.
	unknown, replaced int
}

// life is the latest pod of a name.
type life struct {
	*Workload
	created time.Duration
	// bound is -1 before the pod is bound.
	bound time.Duration
	// deletion is the number of the event that deletes it, from 1 on.
	deletion int
	// first is whether it has a node from the start on.
	first, ended bool
}

// texts returns the values of a line's keys that are texts. known are all keys that it may have, after commas.
func (p place) texts(fields map[string]json.RawMessage, known string) (row, error) {
	r := row{p, map[string]string{}}
	for key, value := range fields {
		text := ""
		if !strings.Contains(known+",", ","+key+",") {
			return r, p.fail(seeFormat, "the key %q is unknown in this line", short(key))
		}
		if !strings.Contains(",history,pod,node,use,last,", ","+key+",") && json.Unmarshal(value, &text) != nil {
			return r, p.fail(seeFormat, "%s is not a text", key)
		}
		r.values[key] = text
	}
	return r, nil
}

// readHeader reads the first line of a history.
func (t *traceReader) readHeader(at place, fields map[string]json.RawMessage) error {
	version, by := 0, ""
	_ = json.Unmarshal(fields["by"], &by) // The version decides what it is.
	if err := json.Unmarshal(fields["history"], &version); err != nil || version < 1 {
		return at.fail(seeFormat, "history is not a version, which is a whole number from 1 on")
	}
	if version > historyVersion {
		return at.fail(fmt.Sprintf("with kubectl-scheduling of release %s: kubectl scheduling history --convert %s --to-version %d > NEW",
			short(by), at.file, historyVersion), "the history has version %d, and this release reads version %d", version, historyVersion)
	}
	r, err := at.texts(fields, ",history,start,source,by,cluster")
	if err != nil {
		return err
	}
	start, err := time.Parse(time.RFC3339Nano, r.values["start"])
	if err != nil || start.Year() < 2001 || !start.Before(latestTime) {
		return at.fail(seeFormat, "start is not a time in RFC 3339 between 2001 and 2100")
	}
	if source := r.values["source"]; source != fromPrometheus && source != fromWatches {
		return at.fail(seeFormat, "the source is unknown")
	}
	t.trace.History, t.trace.Start, t.trace.Running = true, start, map[types.UID]*Workload{}
	t.history = &history{Trace: &t.trace, share: t.share, source: r.values["source"], at: at, pods: map[string]*life{}, nodes: map[string]bool{},
		onto: map[string]int{}, workloads: map[string]string{}, owners: map[string]bool{}, amounts: map[string]v1.ResourceList{}}
	return nil
}

// lineKeys has the further keys of each kind of line, by the key that only this kind has.
var lineKeys = map[string]string{"change": "node", "pod": "uid,owner,workload,on,age", "like": "namespace,name,uid,owner,workload,on,age",
	"bound": "on", "delete": "", "ended": "", "use": "of", "gap": "reason", "last": ""}

// read reads a line after the first, which may not be JSON.
func (h *history) read(at place, fields map[string]json.RawMessage, err error) error {
	h.at = at
	if err != nil {
		next := makeAgain
		if h.source == fromWatches {
			next = fmt.Sprintf("leave out what it says: sed -i %dd %s", at.line, at.file)
		}
		return at.fail(next, "the line is cut, or not valid JSON")
	}
	if fields["history"] != nil {
		return at.fail("give each history alone", "another history begins here")
	}
	kind := ""
	for key := range fields {
		if _, is := lineKeys[key]; is && kind != "" {
			return at.fail(seeFormat, "the line says several things")
		} else if is {
			kind = key
		}
	}
	r, err := at.texts(fields, ",time,"+kind+","+lineKeys[kind])
	if err != nil {
		return err
	}
	if h.memory += lineMemory; kind == "change" || kind == "pod" || kind == "like" {
		h.memory += podMemory
	}
	now, err := r.duration("time", r.values["time"])
	switch {
	case err != nil:
		return err
	case h.memory > mostMemory:
		return at.fail("a history of a shorter time, or of fewer namespaces", "the history takes more than %d GiB of memory", mostMemory>>30)
	case now < h.now:
		return at.fail("make the history again on a machine whose clock does not go back", "the time goes back, from %v to %v", h.now, now)
	case h.last:
		return at.fail(seeFormat, "the line follows the last one")
	}
	h.now = now
	switch kind {
	case "change":
		return h.change(r, fields["node"])
	case "pod", "like":
		return h.create(r, fields["pod"])
	case "bound", "delete", "ended":
		return h.happen(r, kind)
	case "use":
		return h.use(r, fields["use"])
	case "gap":
		length, err := r.duration("gap", r.values["gap"])
		h.Gaps, h.GapTime = h.Gaps+1, h.GapTime+length
		return err
	}
	if h.last = string(fields["last"]) == "true"; !h.last {
		return at.fail(seeFormat, "the line does not say what happens")
	}
	return nil
}

func (h *history) add(event Event) {
	event.At = h.now
	h.Events = append(h.Events, event)
}

// change reads a change of a node.
func (h *history) change(r row, text json.RawMessage) error {
	switch name := ""; NodeChange(r.values["change"]) {
	case AddNode:
		node := &v1.Node{}
		if err := utiljson.Unmarshal(text, node); err != nil {
			return r.fail(seeFormat, "node cannot be decoded: %s", reason(err))
		}
		if len(validation.IsDNS1123Subdomain(node.Name)) > 0 {
			return r.fail(seeFormat, "Node %s has a name that is not valid", short(node.Name))
		}
		node.TypeMeta, node.UID = metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}, types.UID(node.Name)
		defaults.Default(node)
		if _, seen := h.nodes[node.Name]; seen || h.now > 0 {
			h.add(Event{Node: node.Name, Change: AddNode, NodeObject: node})
		} else {
			h.Nodes = append(h.Nodes, node)
		}
		h.nodes[node.Name] = true
		return nil
	case RemoveNode:
		if json.Unmarshal(text, &name) != nil {
			return r.fail(seeFormat, "node is not a name")
		}
		if !h.nodes[name] {
			return h.strange(r, "node "+short(name))
		}
		h.nodes[name] = false
		h.add(Event{Node: name, Change: RemoveNode})
		return nil
	}
	return r.fail(seeFormat, "change is not add or remove")
}

// strange counts a line about what is not there. A watch may begin after a pod or a node is gone, and see its last events.
func (h *history) strange(r row, what string) error {
	if h.source != fromWatches {
		return r.fail(makeAgain, "there is no %s here", what)
	}
	h.unknown++
	return nil
}

// create reads a pod that is created, or that is there at the start.
func (h *history) create(r row, text json.RawMessage) error {
	w := &Workload{Owner: r.values["owner"], Class: r.values["workload"], Count: 1, Real: &Real{}}
	var err error
	if text != nil {
		if w.Pod, w.Later, err = decodePod(text); err != nil {
			return r.fail(seeFormat, "pod cannot be decoded: %s", reason(err))
		}
		if len(w.Pod.Spec.Containers) == 0 {
			return r.fail(seeFormat, "the pod has no containers")
		}
		w.Name, w.Pod = w.Pod.Name, h.share(w.Pod)
	} else {
		like := h.pods[r.values["like"]]
		if like == nil {
			return r.fail(seeFormat, "there is no pod %s before this line, which another one is like", short(r.values["like"]))
		}
		w.Pod, w.Later, w.Name = like.Pod, like.Later, r.values["name"]
		if namespace := r.values["namespace"]; namespace != w.Pod.Namespace {
			same := *w.Pod
			same.Namespace, w.Pod = namespace, &same
		}
	}
	if err = r.check(w.Pod, w.Name); err == nil {
		err = h.own(r, w)
	}
	if err != nil {
		return err
	}
	key, on := w.Pod.Namespace+"/"+w.Name, r.values["on"]
	if earlier := h.pods[key]; earlier != nil && !earlier.ended {
		h.replaced++
		earlier.first = true // It was not complete as far as is known, so its successor ends it.
		h.end(key, earlier)
	}
	of := &life{Workload: w, created: h.now, bound: -1}
	h.pods[key] = of
	age := time.Duration(0)
	if _, aged := r.values["age"]; (on != "" || aged) && h.now > 0 {
		return r.fail(seeFormat, "only a pod at time 0 has on and age")
	} else if aged {
		age, err = r.duration("age", r.values["age"])
	}
	if on == "" || err != nil {
		h.add(Event{Pods: w})
		return err
	}
	of.bound, of.first, w.Real.Node = 0, true, on
	running := *w.Pod
	running.Name = w.Name
	running.Spec.NodeName, running.Status.Phase, running.OwnerReferences = on, v1.PodRunning, OwnerReferences(w.Owner)
	running.UID, running.CreationTimestamp = types.UID(key), metav1.NewTime(h.Start.Add(-age))
	if h.Running[running.UID] != nil {
		return r.fail(seeFormat, "pod %s is twice on a node at the start", key)
	}
	h.Pods, h.Running[running.UID] = append(h.Pods, &running), w
	return nil
}

// happen reads what happens to a pod.
func (h *history) happen(r row, kind string) error {
	key := r.values[kind]
	of := h.pods[key]
	switch {
	case kind == "bound" && (of == nil || of.ended || of.bound >= 0):
		return r.fail(seeFormat, "there is no pod %s that waits here", short(key))
	case of == nil:
		return h.strange(r, "pod "+short(key))
	case kind == "bound":
		of.bound, of.Real.Node, of.Real.Waited = h.now, r.values["on"], h.now-of.created
		h.onto[of.Real.Node]++
	case of.ended || kind == "delete" && of.deletion > 0:
		// Its end is known: an object may stay for long, and is deleted then.
	case kind == "delete":
		h.add(Event{Delete: key})
		of.deletion = len(h.Events)
	default:
		h.end(key, of)
	}
	return nil
}

// end notes the end of a pod.
func (h *history) end(key string, of *life) {
	of.ended = true
	if of.bound < 0 {
		of.Real.Waited = h.now - of.created
	}
	grace := time.Duration(0)
	switch {
	case of.deletion > 0:
		grace = h.now - h.Events[of.deletion-1].At
		h.Events[of.deletion-1].Grace = &grace
	case of.first || of.bound < 0:
		h.add(Event{Delete: key, Grace: &grace})
	default:
		// 0 is for ever.
		if of.Duration = h.now - of.bound; of.Duration < time.Millisecond {
			of.Duration = time.Millisecond
		}
	}
}

// use reads the use of a pod.
func (h *history) use(r row, text json.RawMessage) error {
	of := h.pods[r.values["of"]]
	if of == nil {
		return h.strange(r, "pod "+short(r.values["of"]))
	} else if of.ended {
		return nil
	}
	now, known := h.amounts[string(text)]
	if !known {
		read := map[string]string{}
		if err := json.Unmarshal(text, &read); err != nil {
			return r.fail(seeFormat, "use is not a list of quantities by resource")
		}
		now = v1.ResourceList{}
		for name, amount := range read {
			quantity, err := resource.ParseQuantity(amount)
			if err != nil || quantity.Sign() < 0 {
				return r.fail(seeFormat, "use of %s is not a quantity", short(name))
			}
			now[v1.ResourceName(name)] = quantity
		}
		h.amounts[string(text)] = now
		h.memory += lineMemory + 2*len(text)
	}
	after := time.Duration(0)
	if of.bound >= 0 {
		after = h.now - of.bound
	}
	if n := len(of.Use); n > 0 {
		before, whole := of.Use[n-1], now.DeepCopy()
		for name, quantity := range before.Resources {
			if _, set := now[name]; !set {
				whole[name] = quantity
			}
		}
		if len(whole) > len(now) { // Otherwise measurements share it.
			now = whole
		}
		if before.After == after {
			of.Use = of.Use[:n-1]
		}
	}
	of.Use = append(of.Use, Use{after, now})
	return nil
}

// finish checks what only the whole history shows, and adds warnings.
func (h *history) finish() error {
	h.Length = h.now
	if !h.last && h.source == fromPrometheus {
		return h.at.fail(makeAgain, "the history is cut: its last line is missing")
	}
	if len(h.Nodes) == 0 {
		return h.at.fail("check that you may read nodes, and make the history again", "the history has no nodes at the start")
	}
	nowhere := 0
	for name, count := range h.onto {
		if _, seen := h.nodes[name]; !seen {
			nowhere += count
		}
	}
	for _, of := range h.pods {
		if !of.ended && of.bound < 0 {
			of.Real.Waited = h.now - of.created
		}
	}
	there, pods := map[string]bool{}, h.Pods
	for _, node := range h.Nodes {
		there[node.Name] = true
	}
	h.Pods = nil
	for _, pod := range pods {
		if there[pod.Spec.NodeName] {
			h.Pods = append(h.Pods, pod)
		}
	}
	for _, warning := range []struct {
		count int
		text  string
	}{
		{h.Gaps, fmt.Sprintf("the history has gaps, in which nothing is known of what happened, of %v in all", h.GapTime)},
		{nowhere, "pods were bound to nodes that were never in the history"},
		{len(pods) - len(h.Pods), "pods are on nodes that are not in the history at its start, and left out"},
		{h.unknown, "lines are about pods or nodes that were gone when the history began, and are left out"},
		{h.replaced, "pods have no end in the history: they end when another one of their name is created"},
	} {
		if warning.count > 0 {
			h.Warnings = append(h.Warnings, fmt.Sprintf("%s: %s: %d", h.at.file, warning.text, warning.count))
		}
	}
	return nil
}
