// SPDX-License-Identifier: Apache-2.0

// Package history writes what happened in a cluster to a file that kube-scheduler-simulate reads as a trace: from the
// series of a Prometheus, or from watches. docs/history.md has the format.
package history

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// Version is the version of the format.
const Version = 1

// The sources of a history.
const (
	FromPrometheus = "prometheus"
	FromWatches    = "watch"
)

// Header is the first line of a history.
type Header struct {
	Version int       `json:"history"`
	Start   time.Time `json:"start"`
	Source  string    `json:"source"`
	// By is the version of the program that wrote the file.
	By string `json:"by"`
	// Cluster is the UID of the namespace kube-system, or empty if it is unknown.
	Cluster string `json:"cluster,omitempty"`
}

// Event is a line of a history. docs/history.md says which fields belong together.
type Event struct {
	// Time is since the start of the history.
	Time Duration `json:"time"`

	Change string `json:"change,omitempty"`
	// Node is the name of a node, or a Node.
	Node any `json:"node,omitempty"`

	// Pod is a Pod without a node. Or Namespace, Name and Like are a pod with the spec of an earlier one.
	Pod       any    `json:"pod,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Like      string `json:"like,omitempty"`
	UID       string `json:"uid,omitempty"`
	// Owner and Workload are KIND/NAME.
	Owner    string    `json:"owner,omitempty"`
	Workload string    `json:"workload,omitempty"`
	On       string    `json:"on,omitempty"`
	Age      *Duration `json:"age,omitempty"`

	// Bound, Delete, Ended and Of are NAMESPACE/NAME.
	Bound  string            `json:"bound,omitempty"`
	Delete string            `json:"delete,omitempty"`
	Ended  string            `json:"ended,omitempty"`
	Use    map[string]string `json:"use,omitempty"`
	Of     string            `json:"of,omitempty"`

	Gap    *Duration `json:"gap,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Last   bool      `json:"last,omitempty"`
}

// Duration is written as a Go duration, such as 1h2m3.5s.
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = Duration(parsed)
	return err
}

// Writer writes a history. The times of its events may not go back.
type Writer struct {
	buffer *bufio.Writer
	hide   *Hider
	last   Duration
}

// NewWriter writes the header. What it and Write write is hidden, unless hide is nil.
func NewWriter(w io.Writer, header Header, hide *Hider) (*Writer, error) {
	history := &Writer{buffer: bufio.NewWriter(w), hide: hide}
	header.Version = Version
	if hide != nil {
		header.Cluster = hide.Name(header.Cluster)
	}
	return history, history.line(header)
}

func (w *Writer) line(value any) error {
	text, err := json.Marshal(value)
	if err == nil {
		_, err = w.buffer.Write(append(text, '\n'))
	}
	return err
}

// Write writes an event.
func (w *Writer) Write(event Event) error {
	if event.Time < w.last {
		return fmt.Errorf("an event at %v follows one at %v", time.Duration(event.Time), time.Duration(w.last))
	}
	w.last = event.Time
	if w.hide != nil {
		hidden, err := w.hide.event(event)
		if err != nil {
			return err
		}
		return w.line(hidden)
	}
	return w.line(event)
}

// Flush passes on what is buffered.
func (w *Writer) Flush() error { return w.buffer.Flush() }

// Live visits the objects of a resource that are in the cluster now, with the fields of a snapshot.
type Live func(ctx context.Context, group, resource string, visit func(map[string]any) error) error

// Hider replaces texts by others, equal ones by equal ones.
type Hider struct {
	// Object replaces the texts in an object, Name a name, and Kind the kind of an owner.
	Object     func(map[string]any)
	Name, Kind func(string) string
}

// event returns an event with other texts.
func (h *Hider) event(e Event) (hidden map[string]any, err error) {
	e.UID = "" // Nothing of the same cluster can be compared with it.
	text, err := json.Marshal(e)
	if err == nil {
		err = decode(text, &hidden)
	}
	for key, value := range hidden {
		name, _ := value.(string)
		switch object, _ := value.(map[string]any); key {
		case "node", "pod":
			if h.Object(object); object == nil {
				hidden[key] = h.Name(name)
			}
		case "owner", "workload":
			kind, name, _ := strings.Cut(name, "/")
			hidden[key] = h.Kind(kind) + "/" + h.Name(name)
		case "like", "bound", "delete", "ended", "of":
			namespace, name, _ := strings.Cut(name, "/")
			hidden[key] = h.Name(namespace) + "/" + h.Name(name)
		case "namespace", "name", "on":
			hidden[key] = h.Name(name)
		}
	}
	return hidden, err
}

// decode decodes JSON with its numbers as they are written.
func decode(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(into)
}
