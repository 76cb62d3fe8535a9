// SPDX-License-Identifier: Apache-2.0

// Package datalocality favours nodes that are near to the data which a pod reads: on the node, in its rack, in its zone.
// Pods name the datasets that they read. Nodes name those that they hold, or pods that serve data do so for their nodes.
//
// The files: names.go reads annotations, index.go knows which nodes hold what, score.go has the formula, filtering.go
// and scoring.go follow a pod, explain.go is for people.
package datalocality

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/whatif"
)

// Name is the name of the plugin in the registry and in configurations.
const Name = "DataLocality"

// DataLocality filters and scores the nodes of one profile by where the pod's data are.
type DataLocality struct {
	handle     framework.Handle
	annotation string
	// keys are the levels' topology keys, and percents what a byte counts there; the nearest first.
	keys     []string
	percents []int64
	// within is the number of the level at which data must be, -1 if they need not; outside says that they are not, in a
	// slice that all statuses share, because there is no room in it.
	within  int
	outside []string

	index    *index
	counters counters
	// current is the cycle that goes on. It is kept here and not in the CycleState, because the marks of the index are of
	// one cycle, too; and it costs Score a lock and a look-up less for each node.
	current *cycle
	// marked is the cycle whose marks the index has.
	marked *cycle
}

// cycle is what a pod reads. It does not change once PreFilter or PreScore has made it.
type cycle struct {
	pod *v1.Pod
	// text is the pod's annotation, and changes the state of the index.
	text    string
	changes int64
	// datasets are those of the pod that some node holds, and bytes what it reads of each, total of all of them.
	datasets []*dataset
	bytes    []int64
	total    int64
	// unknown are those that no node holds, and ignored what is wrong in the pod's annotation.
	unknown []read
	ignored refusals
}

var (
	_ framework.PreFilterPlugin     = &DataLocality{}
	_ framework.PreFilterExtensions = &DataLocality{}
	_ framework.FilterPlugin        = &DataLocality{}
	_ framework.PreScorePlugin      = &DataLocality{}
	_ framework.ScorePlugin         = &DataLocality{}
	_ framework.EnqueueExtensions   = &DataLocality{}
)

// New makes the plugin for one profile. It is called when the scheduler starts; an error from it stops the scheduler.
func New(obj runtime.Object, handle framework.Handle) (framework.Plugin, error) {
	args, ok := obj.(*config.DataLocalityArgs)
	if !ok {
		return nil, fmt.Errorf("%s: want args of type DataLocalityArgs, got %T", Name, obj)
	}
	if err := validation.ValidateDataLocalityArgs(validation.ArgsPath(Name), args); err != nil {
		return nil, err
	}
	pl := &DataLocality{
		handle: handle, annotation: args.DatasetsAnnotation, within: -1, counters: newCounters(handle), current: &cycle{},
	}
	for level := range args.Levels {
		pl.keys = append(pl.keys, args.Levels[level].TopologyKey)
		pl.percents = append(pl.percents, int64(args.Levels[level].Percent))
		if args.Levels[level].TopologyKey == args.RequireWithin {
			pl.within = level
			pl.outside = []string{fmt.Sprintf("node(s) had not all data that the pod reads within their %q", args.RequireWithin)}
		}
	}
	pl.index = newIndex(pl.keys, pl.counters.ignore)
	pl.index.annotation, pl.index.labelPrefix = args.NodeAnnotation, args.NodeLabelPrefix
	for i := range args.Servers {
		compiled, err := compileServer(&args.Servers[i])
		if err != nil {
			return nil, err
		}
		pl.index.servers = append(pl.index.servers, compiled)
	}
	return pl, nil
}

func compileServer(from *config.DataLocalityServer) (server, error) {
	compiled := server{label: from.DatasetLabel}
	if len(from.Namespaces) > 0 {
		compiled.namespaces = sets.NewString(from.Namespaces...)
	}
	if from.Selector != nil {
		selector, err := metav1.LabelSelectorAsSelector(from.Selector)
		if err != nil {
			return server{}, fmt.Errorf("%s: selector of a server: %w", Name, err)
		}
		compiled.selector = selector
	}
	return compiled, nil
}

// Name returns the name of the plugin.
func (pl *DataLocality) Name() string {
	return Name
}

// EventsToRegister says what can make a pod fit that the filter rejected: a node that comes or whose labels change, which
// say where it is and what it holds, and a pod that begins to serve data. A dataset that the last node gives up is not
// known any more, and keeps no pod waiting: so the end of a pod is an event, too. Why taints and resources are in the
// list, NodeFilter says. A node's annotation has no event in Kubernetes 1.23, and its scheduler shows a pod's coming or
// change to pods with affinity alone: after those the pod waits for the queue's flush, 60 to 90 seconds.
func (pl *DataLocality) EventsToRegister() []framework.ClusterEvent {
	if pl.within < 0 {
		return nil
	}
	events := []framework.ClusterEvent{{
		Resource: framework.Node,
		ActionType: framework.Add | framework.UpdateNodeLabel |
			framework.UpdateNodeTaint | framework.UpdateNodeAllocatable,
	}}
	if len(pl.index.servers) > 0 {
		events = append(events, framework.ClusterEvent{Resource: framework.Pod, ActionType: framework.All})
	}
	return events
}

// begin begins the cycle of a pod: it reads what the pod reads, and marks in the index where that is. A pod that reads
// nothing costs a look-up; for it the index does not even follow the snapshot.
func (pl *DataLocality) begin(state *framework.CycleState, pod *v1.Pod) (*cycle, *framework.Status) {
	c := &cycle{pod: pod}
	pl.current = c
	text, reads := pod.Annotations[pl.annotation]
	if !reads {
		return c, nil
	}
	c.text = text
	if err := pl.index.update(pl.handle.SnapshotSharedLister()); err != nil {
		return nil, framework.AsStatus(err)
	}
	if marked := pl.marked; marked != nil && marked.text == c.text && marked.changes == pl.index.changes {
		// Most pods come with others that read the same.
		*c = *marked
		c.pod = pod
	} else {
		pl.find(c)
		pl.index.mark(c.datasets)
	}
	pl.marked = c
	if !whatif.Is(state) {
		pl.counters.datasets.Set(float64(len(pl.index.datasets)))
		pl.counters.ignore(ofPod, malformed, c.ignored.malformed)
		pl.counters.ignore(ofPod, repeated, c.ignored.repeated)
		pl.counters.ignore(ofPod, tooMany, c.ignored.tooMany)
	}
	return c, nil
}

// find finds what a pod reads in the index.
func (pl *DataLocality) find(c *cycle) {
	var all []read
	all, c.ignored = parseReads(c.text)
	c.changes = pl.index.changes
	for _, one := range all {
		held, known := pl.index.datasets[one.name]
		if !known {
			c.unknown = append(c.unknown, one)
			continue
		}
		c.datasets = append(c.datasets, held)
		c.bytes = append(c.bytes, one.bytes)
		c.total += one.bytes
	}
}
