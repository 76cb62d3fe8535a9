// SPDX-License-Identifier: Apache-2.0

// Package datalocality prefers nodes near the data that a pod reads: on the node, in its rack, in its zone. Pods name
// the datasets that they read. Nodes name the datasets that they hold, or pods that serve data do so for their nodes.
//
// names.go parses annotations, index.go has the nodes of each dataset, score.go has the formula, filtering.go and
// scoring.go have the extension points, explain.go has the texts for the decision records.
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
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/services"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/whatif"
)

// Name is the name of the plugin in the registry and in configurations.
const Name = "DataLocality"

// DataLocality filters and scores the nodes of one profile by the location of the pod's data.
type DataLocality struct {
	handle     framework.Handle
	annotation string
	// keys are the levels' topology keys, and percents the worth of a byte at these levels, the nearest first.
	keys     []string
	percents []int64
	// within is the number of the required level, or -1 without a filter. outside is the reason of rejections; all
	// statuses share the slice, whose capacity is its length.
	within  int
	outside []string

	index    *index
	counters counters
	// current is the current cycle. It is not in the CycleState, because the index has the marks of one cycle only, and
	// because that saves a lock and a look-up for each node in Score.
	current *cycle
	// marked is the cycle whose marks the index has.
	marked *cycle
}

// cycle holds the datasets that a pod reads. PreFilter or PreScore creates it, and nothing changes it.
type cycle struct {
	pod *v1.Pod
	// text is the pod's annotation. changes is that of the index when the cycle began.
	text    string
	changes int64
	// datasets are the pod's datasets that some node holds, bytes the bytes that it reads of each, and total their sum.
	datasets []*dataset
	bytes    []int64
	total    int64
	// unknown are the datasets that no node holds, and ignored the ignored parts of the pod's annotation.
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
	_ services.EndChecker           = &DataLocality{}
)

// New creates the plugin for one profile. It is called when the scheduler starts, and its error stops the scheduler.
func New(obj runtime.Object, handle framework.Handle) (framework.Plugin, error) {
	args, ok := obj.(*config.DataLocalityArgs)
	if !ok {
		return nil, fmt.Errorf("%s: want args of type DataLocalityArgs, got %T", Name, obj)
	}
	if err := validation.ValidateDataLocalityArgs(validation.ArgsPath(Name), args); err != nil {
		return nil, err
	}
	pl := &DataLocality{
		handle: handle, annotation: *args.DatasetsAnnotation, within: -1, counters: newCounters(handle), current: &cycle{},
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
	pl.index.annotation, pl.index.labelPrefix = *args.NodeAnnotation, args.NodeLabelPrefix
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

// EventsToRegister returns the events after which a rejected pod may fit: a new node, changed labels of a node, which
// define its domains and datasets, and a pod that begins to serve data. The end of a pod is an event too, because a
// dataset without nodes is unknown and then ignored. NodeFilter explains the events of taints and resources. Kubernetes
// 1.23 has no event for a node's annotation, and its scheduler retries only pods with affinity after the creation or
// change of a pod. In these cases, the rejected pod waits for the queue's flush, for 60 to 90 seconds.
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

// EndHelps reports whether the ended pod served data: without it, a dataset may be unknown, and then it is ignored.
func (pl *DataLocality) EndHelps(ended, _ *v1.Pod) bool {
	return pl.index.datasetOf(ended) != ""
}

// begin begins the cycle of a pod: it parses the pod's annotation, and marks the domains of its datasets in the index.
// A pod without the annotation costs one look-up: the index does not follow the snapshot for it.
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
		// Often, several pods read the same datasets.
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

// find looks up the pod's datasets in the index.
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
