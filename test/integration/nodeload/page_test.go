// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

// page is the status of NodeLoad, with its one source.
type page struct {
	state, problem string
	snapshot       uint64
	// of has the readings of each profile, by node and resource.
	of map[string]map[string]map[string]reading
}

// reading is the load of a node for a resource: the measurement in percent of the capacity, or the reason why none counts.
type reading struct {
	percent float64
	missing string
}

func (s *stand) page(scheduler *localcluster.Scheduler) (*page, error) {
	raw, err := s.Get(context.Background(), scheduler.URL()+"/node-load")
	if err != nil {
		return nil, err
	}
	var all struct {
		Profiles []struct {
			Profile  string
			Source   struct{ State, Problem string }
			Snapshot uint64
			Nodes    []struct {
				Node      string
				Resources []struct {
					Resource, Missing string
					MeasuredPercent   float64
				}
			}
		}
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("the status is not JSON: %w", err)
	}
	p := &page{of: map[string]map[string]map[string]reading{}}
	for _, profile := range all.Profiles {
		p.state, p.problem, p.snapshot = profile.Source.State, profile.Source.Problem, profile.Snapshot
		p.of[profile.Profile] = map[string]map[string]reading{}
		for _, node := range profile.Nodes {
			resources := map[string]reading{}
			for _, resource := range node.Resources {
				resources[resource.Resource] = reading{resource.MeasuredPercent, resource.Missing}
			}
			p.of[profile.Profile][node.Node] = resources
		}
	}
	return p, nil
}

// mustPage returns the status of a running scheduler.
func (s *stand) mustPage(t *testing.T, scheduler *localcluster.Scheduler) *page {
	t.Helper()
	var p *page
	s.await(t, "the status", func() (err error) {
		p, err = s.page(scheduler)
		return err
	})
	return p
}

// loads checks the measured load of all nodes, and returns an error for the first unexpected one.
func (p *page) loads(profile, resource string, expected func(node string, percent float64) bool) error {
	nodes := p.of[profile]
	if len(nodes) != nodeCount {
		return fmt.Errorf("the status has %d nodes", len(nodes))
	}
	for node, readings := range nodes {
		seen, known := readings[resource]
		if !known || seen.missing != "" || !expected(node, seen.percent) {
			return fmt.Errorf("%s of %s is at %.1f %% (known: %v, missing: %q)", resource, node, seen.percent, known, seen.missing)
		}
	}
	return nil
}

// marks returns the nodes without a measurement of a resource, with the reasons.
func (p *page) marks(profile, resource string) map[string]string {
	marks := map[string]string{}
	for node, resources := range p.of[profile] {
		if why := resources[resource].missing; why != "" {
			marks[node] = why
		}
	}
	return marks
}

// awaitFresh waits until all nodes have a fresh measurement of some resources, in the status and in the metrics.
func (s *stand) awaitFresh(t *testing.T, scheduler *localcluster.Scheduler, resources ...string) {
	t.Helper()
	s.await(t, "all nodes to be measured", func() error {
		page, err := s.page(scheduler)
		if err != nil {
			return err
		}
		for profile := range page.of {
			for _, resource := range resources {
				if err := page.loads(profile, resource, func(string, float64) bool { return true }); err != nil {
					return err
				}
				if fresh := s.sum(t, scheduler, `scheduler_node_load_nodes\{.*resource="`+resource+`".*state="fresh".*\}`); fresh != nodeCount {
					return fmt.Errorf("%s: the metrics count %v fresh nodes", resource, fresh)
				}
			}
		}
		return cluster.Unless(len(page.of) > 0, "the status has no profile")
	})
}

// sum returns the sum of the series of a running scheduler's metrics that match a regular expression.
func (s *stand) sum(t *testing.T, scheduler *localcluster.Scheduler, series string) (sum float64) {
	t.Helper()
	s.await(t, "the metrics", func() error {
		content, err := s.Get(context.Background(), scheduler.URL()+"/metrics")
		sum = cluster.Sum(content, series)
		return err
	})
	return sum
}
