// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bufio"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/laterfields"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/input"
)

// work is the input of a run. Its file is a sequence of byte slices: the exported fields in JSON, each event in JSON, and then each object of
// Kubernetes itself in protobuf. Each run reads it, and JSON takes ten times as long: 5 s for 5,000 nodes and 50,000 pods.
type work struct {
	Configurations  []configuration
	Hot             float64
	PriceLabel      string
	Length, Moment  time.Duration
	Question        question
	Again           bool // The pods of the snapshot are placed again.
	Taken           time.Time
	PodUse, NodeUse map[string]v1.ResourceList
	Later           map[types.UID]*laterfields.Found
	EvictUnhealthy  map[string]bool
	Custom          []*unstructured.Unstructured
	Running         map[types.UID]*input.Workload
	History         bool
	Events          []input.Event `json:"-"`
	EventCount      int
	Workloads       []input.Workload
	Template        *v1.Node

	cluster *input.Cluster
	trace   *input.Trace
	// replaced is whether a history replaces nodes and pods of a snapshot.
	replaced bool
}

var serializer = protobuf.NewSerializer(clientscheme.Scheme, clientscheme.Scheme)

// save writes the work to a new file. The processes have the cluster then, and this one drops it: it may be large.
func (w *work) save() (path string, err error) {
	file, err := os.CreateTemp("", "kube-scheduler-simulate-*")
	if err == nil {
		if err = w.write(file); err != nil {
			os.Remove(file.Name())
		}
	}
	if err != nil {
		return "", fmt.Errorf("the input cannot be written for the runs: %v; next: set TMPDIR to a directory with space", err)
	}
	w.cluster, w.trace = nil, nil
	return file.Name(), nil
}

// write encodes the work into a file, and closes it.
func (w *work) write(file io.WriteCloser) error {
	defer file.Close()
	of := w.cluster
	w.Taken, w.PodUse, w.NodeUse, w.Custom = of.Taken, of.PodUse, of.NodeUse, of.Custom
	w.Later, w.EvictUnhealthy, w.Running, w.EventCount = of.Later, of.EvictUnhealthy, map[types.UID]*input.Workload{}, len(w.Events)
	for uid, known := range of.Running {
		withoutPod := *known
		withoutPod.Pod = nil // The cluster has it.
		w.Running[uid] = &withoutPod
	}
	buffer := bufio.NewWriterSize(file, 1<<20)
	encoder := gob.NewEncoder(buffer)
	header, err := json.Marshal(w)
	if err == nil {
		err = encoder.Encode(header)
	}
	pods := map[*v1.Pod]int{}
	for i := range w.Events {
		var data []byte
		if err == nil {
			data, err = json.Marshal(sentEvent(w.Events[i], i, pods))
		}
		if err == nil {
			err = encoder.Encode(data)
		}
	}
	put := func(object runtime.Object) {
		var data []byte
		if err == nil {
			data, err = runtime.Encode(serializer, object)
		}
		if err == nil {
			err = encoder.Encode(data)
		}
	}
	for _, object := range of.Objects {
		put(object)
	}
	for _, node := range of.Nodes {
		put(node)
	}
	for _, pod := range of.Pods {
		put(pod)
	}
	if err == nil {
		err = buffer.Flush()
	}
	if err != nil {
		return err
	}
	return file.Close()
}

// sent is an event in the file.
type sent struct {
	input.Event
	// Like is the number, from 1 on, of an earlier event with the same pod: pods are large, and few.
	Like int `json:",omitempty"`
}

// sentEvent returns an event without its pod, if an earlier one has it. numbers has the number of the event for each pod.
func sentEvent(of input.Event, number int, numbers map[*v1.Pod]int) sent {
	if of.Pods == nil {
		return sent{Event: of}
	}
	like := numbers[of.Pods.Pod]
	if like == 0 {
		numbers[of.Pods.Pod] = number + 1
		return sent{Event: of}
	}
	withoutPod := *of.Pods
	withoutPod.Pod, of.Pods = nil, &withoutPod
	return sent{of, like}
}

// receive returns an event of the file.
func (w *work) receive(data []byte) (input.Event, error) {
	var of sent
	err := json.Unmarshal(data, &of)
	if err == nil && of.Like > 0 {
		of.Pods.Pod = w.Events[of.Like-1].Pods.Pod
	}
	return of.Event, err
}

// open reads the file of a work.
func open(path string) (*work, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	decoder := gob.NewDecoder(bufio.NewReaderSize(file, 1<<20))
	var header []byte
	if err := decoder.Decode(&header); err != nil {
		return nil, err
	}
	w := &work{}
	if err := json.Unmarshal(header, w); err != nil {
		return nil, err
	}
	w.cluster = &input.Cluster{Taken: w.Taken, PodUse: w.PodUse, NodeUse: w.NodeUse, Custom: w.Custom,
		Later: w.Later, EvictUnhealthy: w.EvictUnhealthy, Running: w.Running}
	w.Events = make([]input.Event, 0, w.EventCount)
	for {
		var data []byte
		if err := decoder.Decode(&data); errors.Is(err, io.EOF) {
			return w, nil
		} else if err != nil {
			return nil, err
		}
		if len(w.Events) < w.EventCount {
			event, err := w.receive(data)
			if err != nil {
				return nil, err
			}
			w.Events = append(w.Events, event)
			continue
		}
		object, err := runtime.Decode(serializer, data)
		if err != nil {
			return nil, err
		}
		switch object := object.(type) {
		case *v1.Node:
			w.cluster.Nodes = append(w.cluster.Nodes, object)
		case *v1.Pod:
			w.cluster.Pods = append(w.cluster.Pods, object)
		default:
			w.cluster.Objects = append(w.cluster.Objects, object)
		}
	}
}
