// SPDX-License-Identifier: Apache-2.0

package input

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/laterfields"
	"k8s.io/kubernetes/pkg/util/taints"
	strictjson "sigs.k8s.io/json"
)

const (
	// gangLabel has the name of a pod's gang.
	gangLabel = "pod-group.scheduling.sigs.k8s.io"
	// traceColumns are the columns of a trace, next to names of resources.
	traceColumns = "time,name,namespace,count,cpu,memory,duration,start_delay,priority,priority_class,gang,gang_size,labels," +
		"node_selector,tolerations,scheduler,use_cpu,use_memory,owner,node,change,delete"
)

type traceReader struct {
	trace Trace
	// like is the last pod with the same requests of CPU and memory, and made is the pod of the same columns.
	like, made map[string]*v1.Pod
	// history is nil unless the trace is one.
	history *history
}

// ReadTrace reads a history, or a trace as CSV or JSON lines, or OpenB's list of pods, also compressed with gzip. The
// error has type *Error.
func ReadTrace(path string) (*Trace, error) {
	t := &traceReader{like: map[string]*v1.Pod{}, made: map[string]*v1.Pod{}}
	err := eachFile([]string{path}, func(name string, content *bufio.Reader) error {
		switch {
		case startsWith(content, openBPods):
			return t.readOpenBPods(name, content)
		case startsWith(content, "{"):
			return t.readLines(name, content)
		}
		return eachRow(name, content, traceColumns, func(r row) error { return t.add(r, nil, nil) })
	})
	if err == nil && t.history != nil {
		err = t.history.finish()
	} else if err == nil && len(t.trace.Events) == 0 {
		err = place{file: path}.fail("write at least a header and one line: time,name,cpu and 5m,web,500m", "there are no events")
	}
	trace := t.trace // Without the reader, which is larger.
	return &trace, err
}

var upper = regexp.MustCompile("[A-Z]")

// longestLine limits the bytes of a line: no object of an API server is longer.
const longestLine = 16 << 20

// readLines reads lines of JSON: a history, or a trace.
func (t *traceReader) readLines(name string, content *bufio.Reader) error {
	at := place{file: name}
	var text []byte
	for {
		part, err := content.ReadSlice('\n')
		if text = append(text, part...); len(text) > longestLine {
			at.line++
			return at.fail("check that each object is on its own line", "the line is longer than %d MiB", longestLine>>20)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		at.line++
		failed := err
		if errors.Is(err, io.EOF) {
			failed = nil
		}
		if len(bytes.TrimSpace(text)) > 0 && failed == nil {
			failed = t.readLine(item{place: at, text: text})
		}
		if failed != nil && err != nil && t.history != nil && t.history.source == fromWatches && !json.Valid(text) {
			t.trace.Warnings = append(t.trace.Warnings, at.String()+": the last line is cut, and left out")
			return nil
		}
		if failed != nil {
			return at.failed(failed, "JSON")
		}
		if err != nil {
			return nil
		}
		text = text[:0]
	}
}

// readLine reads a line of JSON. That of a trace has the columns as keys, and also the keys pod and use.
func (t *traceReader) readLine(i item) error {
	fields := map[string]json.RawMessage{}
	err := json.Unmarshal(i.text, &fields)
	if t.history != nil {
		return t.history.read(i.place, fields, err)
	}
	if err != nil {
		return i.failed(err, "JSON")
	}
	if _, isHeader := fields["history"]; isHeader && len(t.trace.Events) == 0 {
		return t.readHeader(i.place, fields)
	}
	r, pod, found := row{i.place, map[string]string{}}, (*v1.Pod)(nil), (*laterfields.Found)(nil)
	for key, value := range fields {
		var err error
		switch key {
		case "pod":
			pod, found, err = decodePod(value)
		case "use":
			var uses []map[string]string
			err = json.Unmarshal(value, &uses)
			for _, use := range uses {
				for resource, amount := range use {
					if resource != "after" {
						r.values["use_"+resource] += use["after"] + "=" + amount + ";"
					}
				}
			}
		default:
			column := upper.ReplaceAllStringFunc(key, func(letter string) string { return "_" + strings.ToLower(letter) })
			if err := i.known(column, traceColumns); err != nil {
				return err
			}
			r.values[column] = strings.Trim(string(value), `"`)
		}
		if err != nil {
			return i.fail(correct, "%s cannot be decoded: %s", key, reason(err))
		}
	}
	return t.add(r, pod, found)
}

// without removes a field at a path, which leads through lists.
func without(value interface{}, path []string) {
	switch value := value.(type) {
	case map[string]interface{}:
		if len(path) == 1 {
			delete(value, path[0])
		} else {
			without(value[strings.TrimSuffix(path[0], "[]")], path[1:])
		}
	case []interface{}:
		for i := range value {
			without(value[i], path)
		}
	}
}

// templatedPod is a Pod or a PodTemplate.
type templatedPod struct {
	v1.Pod   `json:",inline"`
	Template v1.PodTemplateSpec `json:"template"`
}

// withoutLater returns a pod without the fields that laterfields reads.
func withoutLater(text []byte) []byte {
	fields := map[string]interface{}{}
	_ = json.Unmarshal(text, &fields) // It has been decoded before.
	for _, field := range laterfields.Fields {
		path := strings.Split(strings.Fields(field.Path)[0], ".")
		without(fields, path)
		without(fields["template"], path)
	}
	known, _ := json.Marshal(fields) // It was JSON.
	return known
}

// decodePod decodes a Pod or a PodTemplate without unknown fields. It returns its later fields, too.
func decodePod(text []byte) (*v1.Pod, *laterfields.Found, error) {
	read := templatedPod{}
	unknown, err := strictjson.UnmarshalStrict(text, &read)
	if err == nil && len(unknown) > 0 && unknownField.MatchString(unknown[0].Error()) {
		unknown, err = strictjson.UnmarshalStrict(withoutLater(text), &templatedPod{})
	}
	if err == nil && len(unknown) > 0 {
		err = unknown[0]
	}
	if read.Kind == "PodTemplate" {
		template := struct{ Template json.RawMessage }{}
		_ = json.Unmarshal(text, &template) // It has been decoded before.
		text, read.Labels, read.Annotations, read.Spec = template.Template, read.Template.Labels, read.Template.Annotations, read.Template.Spec
	}
	pod := podOf(read.ObjectMeta, read.Spec)
	return pod, laterfields.FromJSON(text, pod), err
}

// resources returns the amounts in the columns.
func (r row) resources() (v1.ResourceList, error) {
	list := v1.ResourceList{}
	for column, value := range r.values {
		other := strings.Contains(column, "/") && !strings.HasPrefix(column, "use_")
		if value != "" && (column == "cpu" || column == "memory" || other) {
			quantity, err := resource.ParseQuantity(value)
			if err != nil || quantity.Sign() < 0 {
				return nil, r.fail(correct, "%s is not a quantity such as 500m or 2Gi", column)
			}
			list[v1.ResourceName(column)] = quantity
		}
	}
	return list, nil
}

// pod returns the pod in the columns.
func (r row) pod() (*v1.Pod, error) {
	var wrong []string
	note := func(column string, err error) {
		if err != nil {
			wrong = append(wrong, column)
		}
	}
	requests, err := r.resources()
	if err != nil {
		return nil, err
	}
	spec := v1.PodSpec{SchedulerName: r.values["scheduler"], PriorityClassName: r.values["priority_class"],
		Containers: []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{Requests: requests}}}}
	if value := r.values["priority"]; value != "" {
		priority, err := strconv.ParseInt(value, 10, 32)
		note("priority", err)
		number := int32(priority)
		spec.Priority = &number
	}
	tainted, _, err := taints.ParseTaints(split(r.values["tolerations"]))
	note("tolerations", err)
	for _, taint := range tainted {
		toleration := v1.Toleration{Key: taint.Key, Operator: v1.TolerationOpEqual, Value: taint.Value, Effect: taint.Effect}
		if taint.Value == "" {
			toleration.Operator = v1.TolerationOpExists
		}
		spec.Tolerations = append(spec.Tolerations, toleration)
	}
	meta := metav1.ObjectMeta{Name: r.values["name"], Namespace: r.values["namespace"]}
	meta.Labels, err = labels.ConvertSelectorToLabelsMap(strings.Join(split(r.values["labels"]), ","))
	note("labels", err)
	spec.NodeSelector, err = labels.ConvertSelectorToLabelsMap(strings.Join(split(r.values["node_selector"]), ","))
	note("node_selector", err)
	if len(wrong) > 0 {
		return nil, r.fail("write labels as k=v;k=v, tolerations as k=v:NoSchedule", "%s is not valid", wrong[0])
	}
	return podOf(meta, spec), nil
}

// podColumns are the columns that a pod depends on, except for its name and resources with a slash.
const podColumns = ",namespace,cpu,memory,priority,priority_class,gang,labels,node_selector,tolerations,scheduler,"

// pod returns the pod in the columns, which lines share that differ only by its name and by other columns.
func (t *traceReader) pod(r row) (*v1.Pod, error) {
	var parts []string
	for column, value := range r.values {
		if value != "" && (strings.Contains(column, "/") || strings.Contains(podColumns, ","+column+",")) {
			parts = append(parts, strconv.Quote(column)+strconv.Quote(value))
		}
	}
	sort.Strings(parts)
	key := strings.Join(parts, "")
	if t.made[key] == nil {
		made, err := r.pod()
		if err != nil {
			return nil, err
		}
		t.made[key] = made
	}
	return t.made[key], nil
}

// split returns the parts between semicolons.
func split(text string) []string {
	return strings.FieldsFunc(strings.ReplaceAll(text, " ", ""), func(r rune) bool { return r == ';' })
}

// add appends an event, which must not be before the last one.
func (t *traceReader) add(r row, pod *v1.Pod, found *laterfields.Found) error {
	at, err := r.duration("time", r.values["time"])
	if err != nil {
		return err
	}
	if n := len(t.trace.Events); n > 0 && t.trace.Events[n-1].At > at {
		return r.fail("sort the lines by time", "the time goes back, from %v to %v", t.trace.Events[n-1].At, at)
	}
	event := Event{At: at, Where: r.String(), Delete: r.values["delete"],
		Node: r.values["node"], Change: NodeChange(r.values["change"])}
	switch event.Change {
	case "", AddNode, CordonNode, DrainNode, FailNode, RemoveNode:
	default:
		return r.fail("write add, cordon, drain, fail or remove", "the change of node %s is unknown", event.Node)
	}
	pods := event.Node == "" && event.Delete == ""
	if (event.Node == "") != (event.Change == "") || event.Node != "" && event.Delete != "" || pod != nil && !pods ||
		event.Delete != "" && strings.Count(event.Delete, "/") != 1 {
		return r.fail("write pods, or a node and its change, or NAMESPACE/NAME of a pod to delete", "the event is not clear")
	}
	if pods {
		name := r.values["name"]
		if pod != nil {
			name = pod.Name
		} else {
			if pod, err = t.pod(r); err != nil {
				return err
			}
		}
		if event.Pods, err = t.workload(r, name, pod); err != nil {
			return err
		}
		event.Pods.Later = found
	}
	t.trace.Events = append(t.trace.Events, event)
	return nil
}

// longest limits times, so that the sum of some can be represented.
const longest = 10 * 365 * 24 * time.Hour

// duration parses a Go duration, or seconds.
func (p place) duration(field, text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		d, err = time.ParseDuration(text + "s")
	}
	if err != nil || d < 0 || d > longest {
		return 0, p.fail(correct, "%s is not a time such as 1h30m, or seconds, of at most 10 years", field)
	}
	return d, nil
}

// workload returns the pods of a line.
func (t *traceReader) workload(r row, name string, pod *v1.Pod) (*Workload, error) {
	w := &Workload{Name: name, Owner: r.values["owner"], Count: 1}
	if w.Name == "" {
		w.Name = "pod-" + strconv.Itoa(r.line)
	}
	if gang := r.values["gang"]; gang != pod.Labels[gangLabel] && gang != "" {
		pod.Labels = labels.Merge(pod.Labels, labels.Set{gangLabel: gang})
	}
	var err error
	for column, into := range map[string]*int{"count": &w.Count, "gang_size": &w.GangSize} {
		if value := r.values[column]; value != "" {
			if *into, err = strconv.Atoi(value); err != nil || *into < 1 {
				return nil, r.fail(correct, "%s is not a number from 1 on", column)
			}
		}
	}
	for column, into := range map[string]*time.Duration{"duration": &w.Duration, "start_delay": &w.StartDelay} {
		if value := r.values[column]; value != "" {
			if *into, err = r.duration(column, value); err != nil {
				return nil, err
			}
		}
	}
	if pod.Labels[gangLabel] != "" && w.GangSize == 0 {
		w.GangSize = w.Count
	}
	if len(pod.Spec.Containers) == 0 {
		return nil, r.fail(correct, "the pod has no containers")
	}
	w.Pod = t.share(pod)
	if w.Use, err = r.uses(); err != nil {
		return nil, err
	}
	return w, r.check(w.Pod, w.Name)
}

// share returns a pod, or an earlier one that differs only by its name. It saves memory if the earlier one has the same spec.
func (t *traceReader) share(pod *v1.Pod) *v1.Pod {
	requests := pod.Spec.Containers[0].Resources.Requests
	size := requests.Cpu().String() + " " + requests.Memory().String()
	if like := t.like[size]; like != nil && like != pod {
		share(pod, like)
		renamed := *like
		if renamed.Name = pod.Name; equality.Semantic.DeepEqual(&renamed, pod) {
			return like
		}
	}
	t.like[size] = pod
	return pod
}

// uses returns the use of all resources from each time on: each column has one quantity, or 0s=100m;10m=2.
func (r row) uses() ([]Use, error) {
	byTime := map[time.Duration]v1.ResourceList{}
	for column, text := range r.values {
		if !strings.HasPrefix(column, "use_") {
			continue
		}
		for _, part := range split(text) {
			if !strings.Contains(part, "=") {
				part = "0s=" + part
			}
			pair := strings.SplitN(part, "=", 2)
			after, err := r.duration(column, pair[0])
			if err != nil {
				return nil, err
			}
			quantity, err := resource.ParseQuantity(pair[1])
			if err != nil || quantity.Sign() < 0 {
				return nil, r.fail(correct, "%s is not a quantity, or 0s=100m;10m=2", column)
			}
			if byTime[after] == nil {
				byTime[after] = v1.ResourceList{}
			}
			byTime[after][v1.ResourceName(strings.TrimPrefix(column, "use_"))] = quantity
		}
	}
	var list []Use
	for after, resources := range byTime {
		list = append(list, Use{after, resources})
	}
	sort.Slice(list, func(i, j int) bool { return list[i].After < list[j].After })
	for i := 1; i < len(list); i++ {
		for name, quantity := range list[i-1].Resources {
			if _, set := list[i].Resources[name]; !set {
				list[i].Resources[name] = quantity
			}
		}
	}
	return list, nil
}
