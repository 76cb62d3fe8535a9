// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/watch"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/measured"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/services"
)

var _ services.SourceChecker = &NodeLoad{}

const (
	// maxNamed is how many nodes a line names.
	maxNamed = 10
	// look is the time between two looks at how the check goes.
	look = 20 * time.Millisecond
)

// CheckSources asks for all measurements once, exactly as the running scheduler does, and prints how many nodes they
// are about.
func (pl *NodeLoad) CheckSources(ctx context.Context, nodes []*v1.Node, out io.Writer) error {
	if pl.args.Source == config.NodeLoadSourceMetricsServer {
		// The check of a configuration gives plugins no client of the API server.
		fmt.Fprintln(out, "metrics.k8s.io is not asked by this check; next: kubectl top nodes, and "+
			"kubectl auth can-i list nodes.metrics.k8s.io --as system:kube-scheduler")
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pool := collector.NewPool(ctx)
	took := make(chan *measured.Snapshot, 1)
	fixed := newFixedNodes(nodes)
	go fixed.informer.Run(ctx.Done())
	source, err := subscribeTo(pool, pl, fixed, nil, func(snapshot *measured.Snapshot) {
		select {
		case took <- snapshot:
		default:
		}
	})
	if err != nil {
		return err
	}
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		select {
		case snapshot := <-took:
			return pl.report(snapshot, source, nodes, out)
		case <-ctx.Done():
			return fmt.Errorf("no answer in time: %w; next: see that one of the endpoints can be reached from here", ctx.Err())
		case <-ticker.C:
			// A snapshot that came comes first.
			if status := source.Status(); len(took) == 0 && status.Failures > 0 {
				return errors.New(status.LastError)
			}
		}
	}
}

// report prints what a snapshot has of each resource, and returns what will not work.
func (pl *NodeLoad) report(snapshot *measured.Snapshot, source measurements, nodes []*v1.Node, out io.Writer) error {
	status := source.Status()
	fmt.Fprintf(out, "%s answered in %v: %d series in %d requests, %d bytes\n", status.Endpoint, status.Duration.Round(time.Millisecond),
		status.Series, status.Requests, status.Bytes)
	for _, warning := range status.Warnings {
		fmt.Fprintf(out, "warning: %s\n", warning)
	}
	var problems []error
	oldest := snapshot.Taken.Add(-pl.maxSampleAge).UnixNano()
	for i := range pl.resources {
		name, slot := pl.resources[i].name, source.Slot(i)
		found, missing := 0, map[measured.Missing][]string{}
		for _, node := range nodes {
			why := measured.NoSeries
			if samples := snapshot.Node(node.Name); slot < len(samples) {
				if why = samples[slot].Missing; why == measured.Present && samples[slot].At < oldest {
					why = measured.TooOld
				}
			}
			if why == measured.Present {
				found++
			} else {
				missing[why] = append(missing[why], node.Name)
			}
		}
		fmt.Fprintf(out, "%s: measured on %d of %d nodes\n", name, found, len(nodes))
		for _, why := range measured.Reasons() {
			if names := missing[why]; len(names) > 0 {
				fmt.Fprintf(out, "%s: missing (%s) on %d: %s\n", name, why, len(names), some(names))
			}
		}
		if found == 0 && len(nodes) > 0 {
			problems = append(problems, fmt.Errorf("%s is measured on no node; next: look at the query's answer in Prometheus, and at nodeMatch", name))
		}
	}
	if snapshot.Unmatched > 0 && len(nodes) > 0 {
		problems = append(problems, fmt.Errorf("%d series are about no node, such as that with %s=%q; next: see nodeMatch",
			snapshot.Unmatched, snapshot.UnmatchedLabel, snapshot.UnmatchedExample))
	}
	if len(problems) > 0 && status.Problem != "" {
		problems = append(problems, errors.New(status.Problem))
	}
	return utilerrors.NewAggregate(problems)
}

// some lists the first names.
func some(names []string) string {
	sort.Strings(names)
	if more := len(names) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}

// fixedNodes is an informer of nodes that never change.
type fixedNodes struct {
	informer cache.SharedIndexInformer
}

func newFixedNodes(nodes []*v1.Node) fixedNodes {
	list := &v1.NodeList{}
	for _, node := range nodes {
		list.Items = append(list.Items, *node)
	}
	return fixedNodes{cache.NewSharedIndexInformer(&cache.ListWatch{
		ListFunc:  func(metav1.ListOptions) (runtime.Object, error) { return list, nil },
		WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
	}, &v1.Node{}, 0, cache.Indexers{})}
}

func (f fixedNodes) Informer() cache.SharedIndexInformer { return f.informer }
func (f fixedNodes) Lister() corelisters.NodeLister {
	return corelisters.NewNodeLister(f.informer.GetIndexer())
}
