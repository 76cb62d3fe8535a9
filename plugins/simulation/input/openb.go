// SPDX-License-Identifier: Apache-2.0

package input

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// openBNodes is the header of OpenB's list of nodes.
	openBNodes = "sn,cpu_milli,memory_mib,gpu,model"
	// openBPods is that of its lists of pods.
	openBPods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
	// nvidiaGPU is the resource, and gpuProduct the label of its model.
	nvidiaGPU  = "nvidia.com/gpu"
	gpuProduct = "nvidia.com/gpu.product"
	// gpuMilli is the annotation of a pod that asks for a share of a GPU.
	gpuMilli = "simulation/gpu-milli"
)

// row is a line of CSV by column.
type row struct {
	place
	values map[string]string
}

// eachRow visits the lines of CSV with a header of these columns, in any order, and of names of resources.
func eachRow(name string, content io.Reader, columns string, visit func(row) error) error {
	reader := csv.NewReader(content)
	reader.TrimLeadingSpace, reader.Comment = true, '#'
	at := place{name, 1}
	var header []string
	for {
		record, err := reader.Read()
		var wrong *csv.ParseError
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &wrong):
			return place{name, wrong.Line}.fail(correct, "the line is not valid CSV: %v", wrong.Err)
		case err != nil:
			return at.failed(err, "CSV")
		}
		at.line, _ = reader.FieldPos(0)
		if header == nil {
			header = record
			for _, column := range header {
				if err := at.known(column, columns); err != nil {
					return err
				}
			}
			continue
		}
		values := map[string]string{}
		for i, value := range record {
			values[header[i]] = value
		}
		if err := visit(row{at, values}); err != nil {
			return err
		}
	}
}

// known returns an error unless it is one of the columns, or a resource.
func (p place) known(column, columns string) error {
	if strings.Contains(","+columns+",", ","+column+",") || strings.Contains(column, "/") {
		return nil
	}
	return p.fail("use "+columns+", and resources such as "+nvidiaGPU, "the column %q is unknown", column)
}

// translate adds the columns of a trace to those of OpenB.
func (r row) translate(gpus string) {
	r.values["cpu"], r.values["memory"] = r.values["cpu_milli"]+"m", r.values["memory_mib"]+"Mi"
	if gpus != "0" {
		r.values[nvidiaGPU] = gpus
	}
}

func readOpenBNodes(name string, content io.Reader, add func(decoded) error) error {
	return eachRow(name, content, openBNodes, func(r row) error {
		r.translate(r.values["gpu"])
		capacity, err := r.resources()
		if err != nil {
			return err
		}
		capacity[v1.ResourcePods] = resource.MustParse("110")
		sn := r.values["sn"]
		node := &v1.Node{TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}, Status: v1.NodeStatus{Capacity: capacity},
			ObjectMeta: metav1.ObjectMeta{Name: sn, UID: types.UID(sn), Labels: map[string]string{v1.LabelHostname: sn}}}
		if model := r.values["model"]; model != "" {
			node.Labels[gpuProduct] = model
		}
		defaults.Default(node)
		return add(decoded{place: r.place, key: newKey("Node", "", sn), object: node})
	})
}

// readOpenBPods reads a list whose times are in seconds.
func (t *traceReader) readOpenBPods(name string, content io.Reader) error {
	shares := 0
	err := eachRow(name, content, openBPods, func(r row) error {
		gpus, share := r.values["num_gpu"], ""
		if milli := r.values["gpu_milli"]; gpus == "1" && milli != "1000" {
			shares++
			gpus, share = "0", milli
		}
		r.translate(gpus)
		pod, err := r.pod()
		if err != nil {
			return err
		}
		if share != "" {
			pod.Annotations = map[string]string{gpuMilli: share}
		}
		if models := r.values["gpu_spec"]; models != "" {
			terms := []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{
				{Key: gpuProduct, Operator: v1.NodeSelectorOpIn, Values: strings.Split(models, "|")}}}}
			pod.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: terms}}}
		}
		workload, err := t.workload(r, pod.Name, pod)
		if err != nil {
			return err
		}
		if r.values["scheduled_time"] == "" {
			r.values["scheduled_time"] = r.values["creation_time"]
		}
		var times [3]time.Duration
		for i, column := range []string{"creation_time", "scheduled_time", "deletion_time"} {
			if times[i], err = r.duration(column, r.values[column]); err != nil {
				return err
			}
		}
		// A pod runs for at least a second, because 0 is for ever.
		if workload.Duration = times[2] - times[1]; workload.Duration < time.Second {
			workload.Duration = time.Second
		}
		t.trace.Events = append(t.trace.Events, Event{At: times[0], Where: r.String(), Pods: workload})
		return nil
	})
	if shares > 0 {
		t.trace.Warnings = append(t.trace.Warnings, fmt.Sprintf("%s: %d pods ask for a share of a GPU, which only a plugin "+
			"for it can place: they have the annotation %s, and request no %s", name, shares, gpuMilli, nvidiaGPU))
	}
	events := t.trace.Events
	sort.SliceStable(events, func(i, j int) bool { return events[i].At < events[j].At })
	for i := len(events) - 1; i >= 0; i-- {
		events[i].At -= events[0].At
	}
	return err
}
