// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bufio"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/input"
)

// work is the input of a run. Its file is a sequence of gob values: the exported fields in JSON, and all objects of the
// cluster, in protobuf or, if they are not of Kubernetes itself, in JSON.
type work struct {
	Configurations  []configuration
	Hot             float64
	PriceLabel      string
	Length, Moment  time.Duration
	Question        question
	Taken           time.Time
	PodUse, NodeUse map[string]v1.ResourceList
	Events          []input.Event
	Workloads       []input.Workload
	Template        *v1.Node

	cluster *input.Cluster
	trace   *input.Trace
}

// object is an object of the cluster.
type object struct {
	Kind schema.GroupVersionKind
	Data []byte
}

// message is a type of Kubernetes, in protobuf.
type message interface {
	runtime.Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// save writes the work to a new file.
func (w *work) save() (path string, err error) {
	file, err := os.CreateTemp("", "kube-scheduler-simulate-*")
	if err != nil {
		return "", fmt.Errorf("the input cannot be written for the runs: %v; next: set TMPDIR to a directory with space", err)
	}
	defer func() {
		if closing := file.Close(); err == nil {
			err = closing
		}
		if err != nil {
			os.Remove(file.Name())
			err = fmt.Errorf("the input cannot be written for the runs: %v; next: set TMPDIR to a directory with space", err)
			return
		}
		// The processes have it now; it may be large.
		w.cluster, w.trace = nil, nil
	}()
	w.Taken, w.PodUse, w.NodeUse = w.cluster.Taken, w.cluster.PodUse, w.cluster.NodeUse
	header, err := json.Marshal(w)
	if err != nil {
		return "", err
	}
	buffer := bufio.NewWriterSize(file, 1<<20)
	encoder := gob.NewEncoder(buffer)
	if err := encoder.Encode(header); err != nil {
		return "", err
	}
	for _, of := range w.cluster.Objects {
		if err := put(encoder, of.(message)); err != nil {
			return "", err
		}
	}
	for _, node := range w.cluster.Nodes {
		if err := put(encoder, node); err != nil {
			return "", err
		}
	}
	for _, pod := range w.cluster.Pods {
		if err := put(encoder, pod); err != nil {
			return "", err
		}
	}
	for _, of := range w.cluster.Custom {
		data, err := of.MarshalJSON()
		if err != nil {
			return "", err
		}
		if err := encoder.Encode(object{of.GroupVersionKind(), data}); err != nil {
			return "", err
		}
	}
	return file.Name(), buffer.Flush()
}

// put writes an object.
func put(encoder *gob.Encoder, of message) error {
	kinds, _, err := clientscheme.Scheme.ObjectKinds(of)
	if err != nil {
		return err
	}
	data, err := of.Marshal()
	if err != nil {
		return err
	}
	return encoder.Encode(object{kinds[0], data})
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
	w.cluster = &input.Cluster{Taken: w.Taken, PodUse: w.PodUse, NodeUse: w.NodeUse}
	for {
		var next object
		if err := decoder.Decode(&next); err == io.EOF {
			return w, nil
		} else if err != nil {
			return nil, err
		}
		made, err := clientscheme.Scheme.New(next.Kind)
		if err != nil {
			custom := &unstructured.Unstructured{}
			if err := custom.UnmarshalJSON(next.Data); err != nil {
				return nil, err
			}
			w.cluster.Custom = append(w.cluster.Custom, custom)
			continue
		}
		if err := made.(message).Unmarshal(next.Data); err != nil {
			return nil, err
		}
		switch of := made.(type) {
		case *v1.Node:
			w.cluster.Nodes = append(w.cluster.Nodes, of)
		case *v1.Pod:
			w.cluster.Pods = append(w.cluster.Pods, of)
		default:
			w.cluster.Objects = append(w.cluster.Objects, of)
		}
	}
}
