// SPDX-License-Identifier: Apache-2.0

package overcommit

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sort"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/answers"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/overcommitting"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/pluginmetrics"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/services"
)

// The metrics are set after each refresh, failed or not. With the predictor Requests there is none.
var (
	nodesByState = pluginmetrics.NewGaugeVec("overcommit_nodes", "Number of nodes by state, at the last refresh: open if they take more "+
		"overcommitting pods, full, exceeded if those that they have ask for more than they may, for example because the predicted peak of the "+
		"ordinary pods has grown, and unmeasured.", "profile", "state")
	coresByKind = pluginmetrics.NewGaugeVec("overcommit_cores", "CPU of the measured nodes, in cores, at the last refresh: allocatable, the "+
		"predicted peak of the ordinary pods, used by overcommitting pods in as far as they ask for it, usable by more of them, and exceeded.", "profile", "kind")
)

// The states of a node.
const (
	open      = "open"
	fullState = "full"
	exceeded  = "exceeded"
	notKnown  = "unmeasured"
	pagePath  = "/overcommit"
)

// group has the plugins of a scheduler, which share a page.
type group struct {
	mu      sync.Mutex
	plugins []*Overcommit
}

func (g *group) add(pl *Overcommit) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.plugins = append(g.plugins[:len(g.plugins):len(g.plugins)], pl)
}

// Page is the answer at /overcommit.
type Page struct {
	Profiles []ProfilePage `json:"profiles"`
}

// ProfilePage is the state of a profile.
type ProfilePage struct {
	Profile string `json:"profile"`
	// Source is the number of the source in the metrics, and Problem why it is not fresh; empty with the predictor
	// Requests.
	Source  string     `json:"source,omitempty"`
	Problem string     `json:"problem,omitempty"`
	Taken   *time.Time `json:"taken,omitempty"`
	// Nodes are in the order of their names.
	Nodes []NodePage `json:"nodes"`
}

// NodePage is the state of a node. Amounts are in thousandths of a core.
type NodePage struct {
	Node  string `json:"node"`
	State string `json:"state"`
	// Allocatable is without the headroom.
	Allocatable int64 `json:"allocatableMilliCPU"`
	// Peak is the predicted peak of the ordinary pods, and By the predictor that it is from.
	Peak int64  `json:"peakMilliCPU"`
	By   string `json:"by,omitempty"`
	// Used is what overcommitting pods ask for, Usable what more may ask for, below zero in the state exceeded.
	Used   int64 `json:"usedMilliCPU"`
	Usable int64 `json:"usableMilliCPU"`
}

// Pages serves the nodes of all profiles as JSON; it is the same for each plugin.
func (pl *Overcommit) Pages() map[string]http.Handler {
	return map[string]http.Handler{pagePath: answers.Answer(func(*http.Request) (interface{}, error) {
		pl.group.mu.Lock()
		plugins := pl.group.plugins
		pl.group.mu.Unlock()
		page := Page{Profiles: []ProfilePage{}}
		for _, pl := range plugins {
			of := ProfilePage{Profile: pl.profile, Nodes: pl.look()}
			if pl.source != nil {
				status := pl.source.Status()
				of.Source, of.Problem = status.Source, status.Problem
			}
			if snapshot := pl.viewed.Load().snapshot; snapshot != nil {
				of.Taken = &snapshot.Taken
			}
			page.Profiles = append(page.Profiles, of)
		}
		return page, nil
	})}
}

// look returns the state of all nodes now, from the informers.
func (pl *Overcommit) look() []NodePage {
	nodes, err := pl.nodes.List(labels.Everything())
	pods, podsErr := pl.pods.List(labels.Everything())
	if err = utilerrors.NewAggregate([]error{err, podsErr}); err != nil {
		klog.ErrorS(err, "Listing nodes and pods failed; next: wait for the next refresh", "plugin", Name, "profile", pl.profile)
		return nil
	}
	byNode := map[string][]*v1.Pod{}
	for _, pod := range pods {
		if pod.Spec.NodeName != "" && !ended(pod) {
			byNode[pod.Spec.NodeName] = append(byNode[pod.Spec.NodeName], pod)
		}
	}
	snapshot := pl.viewed.Load().snapshot
	oldest := snapshot.OldestAt(pl.clock.Now(), pl.args.MaxSampleAge.Duration)
	found := make([]NodePage, 0, len(nodes))
	for _, node := range nodes {
		of := NodePage{Node: node.Name, State: notKnown}
		for _, pod := range byNode[node.Name] {
			of.Used += overcommitting.Asked(pod)
		}
		allocatable := node.Status.Allocatable.Cpu().MilliValue()
		of.Allocatable = pl.bound(allocatable, 0)
		if known := pl.predict(snapshot, node, byNode[node.Name]); known.at != notMeasured && known.at >= oldest {
			of.Peak, of.By = known.peak, known.by
			switch of.Usable = pl.bound(allocatable, known.peak) - of.Used; {
			case of.Usable > 0:
				of.State = open
			case of.Usable < 0 && of.Used > 0:
				of.State = exceeded
			default:
				of.State = fullState
			}
		}
		found = append(found, of)
	}
	sort.Slice(found, func(i, j int) bool { return found[i].Node < found[j].Node })
	return found
}

// setMetrics sets the metrics of the profile.
func (pl *Overcommit) setMetrics(nodes []NodePage) {
	states, cores := map[string]int{open: 0, fullState: 0, exceeded: 0, notKnown: 0}, map[string]int64{}
	for _, of := range nodes {
		states[of.State]++
		if of.State == notKnown {
			continue
		}
		cores["used"] += of.Used
		cores["allocatable"] += of.Allocatable
		cores["peak"] += of.Peak
		if of.Usable > 0 {
			cores["usable"] += of.Usable
		} else if of.State == exceeded {
			cores["exceeded"] -= of.Usable
		}
	}
	for state, count := range states {
		nodesByState.WithLabelValues(pl.profile, state).Set(float64(count))
	}
	for _, kind := range []string{"allocatable", "peak", "used", "usable", "exceeded"} {
		coresByKind.WithLabelValues(pl.profile, kind).Set(float64(cores[kind]) / 1000)
	}
}

// Explain returns, for the decision records, what overcommitting pods may still ask for on some nodes, and why.
func (pl *Overcommit) Explain(state *framework.CycleState, _ *v1.Pod, nodes []string) string {
	c := cycleOf(state)
	if c == nil {
		return ""
	}
	text := fmt.Sprintf("The pod asks for %dm of CPU.", c.asked)
	for _, nodeInfo := range services.Explained(pl.handle, nodes) {
		name := nodeInfo.Node().Name
		left, measured := pl.left(c, nodeInfo)
		if !measured {
			text += fmt.Sprintf(" %s: no recent measurement.", name)
			continue
		}
		peak, _ := pl.peakOf(c, nodeInfo)
		text += fmt.Sprintf(" %s: %dm left of %dm less %d %% headroom, less a predicted peak of ordinary pods of %dm, less %dm of overcommitting pods.",
			name, left, nodeInfo.Allocatable.MilliCPU, *pl.args.HeadroomPercent, peak, nodeInfo.Requested.ScalarResources[config.OvercommitResource])
	}
	return text
}

// CheckSources queries all measurements once, and writes how many nodes and pods have one.
func (pl *Overcommit) CheckSources(ctx context.Context, nodes []*v1.Node, out io.Writer) error {
	if pl.args.Predictor == config.OvercommitRequests {
		fmt.Fprintln(out, "the predictor Requests needs no measurements")
		return nil
	}
	snapshot, _, err := collector.Once(ctx, pl.spec(), nodes, out)
	if err != nil {
		return err
	}
	found, oldest, closed := 0, snapshot.OldestAt(snapshot.Taken, pl.args.MaxSampleAge.Duration), ""
	for _, node := range nodes {
		if known := pl.predict(snapshot, node, nil); known.at != notMeasured && known.at >= oldest {
			found++
		} else if closed == "" {
			closed = node.Name
		}
	}
	fmt.Fprintf(out, "the use of CPU by ordinary pods: measured on %d of %d nodes\n", found, len(nodes))
	if pl.podsAt >= 0 {
		fmt.Fprintf(out, "the use of CPU by pods: measured for %d pods\n", len(snapshot.Pods(pl.resources[pl.podsAt])))
	}
	if closed == "" {
		return nil
	}
	return fmt.Errorf("%d nodes take no overcommitting pods because they have no recent measurement, for example %s; next: check nodeMatch, and that "+
		"Prometheus scrapes the kubelets' /metrics/cadvisor, which all predictors but %s and %s need", len(nodes)-found, closed, config.OvercommitNSigma, config.OvercommitRequests)
}
