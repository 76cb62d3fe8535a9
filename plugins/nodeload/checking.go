// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"

	v1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/collector"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/services"
)

var _ services.SourceChecker = &NodeLoad{}

// maxNamed is the maximum number of nodes that a line names.
const maxNamed = 10

// CheckSources queries all measurements once, exactly as the running scheduler does, and writes how many nodes have
// each.
func (pl *NodeLoad) CheckSources(ctx context.Context, nodes []*v1.Node, out io.Writer) error {
	if pl.args.Source == config.NodeLoadSourceMetricsServer {
		// A configuration check has no client for the API server.
		fmt.Fprintln(out, "this check does not query metrics.k8s.io; next: kubectl top nodes, and "+
			"kubectl auth can-i list nodes.metrics.k8s.io --as system:kube-scheduler")
		return nil
	}
	spec, err := pl.spec()
	if err != nil {
		return err
	}
	snapshot, status, err := collector.Once(ctx, spec, nodes, out)
	if err != nil {
		return err
	}
	m := newMeasurements(snapshot, pl.resources, nodes, snapshot.Taken, pl.maxSampleAge)
	problems := append([]error{pl.report(m, status.Problem, out)}, pl.checkTargets(ctx, nodes)...)
	return utilerrors.NewAggregate(problems)
}

// checkTargets returns an error for the built-in resources of which nodes match several scrape targets. Built-in
// queries merge targets that have the same label, so the answers do not show them.
func (pl *NodeLoad) checkTargets(ctx context.Context, nodes []*v1.Node) []error {
	client, err := source.New(pl.args.Prometheus)
	if err != nil {
		return []error{err}
	}
	defer client.Close()
	var problems []error
	seen := map[string]bool{}
	for i := range pl.resources {
		expression, known := source.Targets(pl.resources[i].name, pl.args.Prometheus.Matchers)
		if !known || pl.args.Resources[i].Query != "" {
			continue
		}
		targets, err := client.Labels(ctx, expression)
		if err != nil {
			return []error{fmt.Errorf("the scrape targets cannot be read: %w", err)}
		}
		// Most resources have the same targets.
		if text := pl.resources[i].asked.Distinguish(nodes, targets); text != "" && !seen[text] {
			seen[text] = true
			problems = append(problems, fmt.Errorf("%s: %s", pl.resources[i].name, text))
		}
	}
	return problems
}

// report writes which nodes have a measurement of each resource, and returns the expected failures.
func (pl *NodeLoad) report(m *measurements, problem string, out io.Writer) error {
	var problems []error
	oldest := m.snapshot.OldestAt(m.snapshot.Taken, pl.maxSampleAge)
	for r := range pl.resources {
		name := pl.resources[r].name
		found, missing := 0, map[collector.Missing][]string{}
		for _, node := range m.nodes {
			sample, why := m.sample(node.Name, r)
			switch {
			case why != collector.Present:
				missing[why] = append(missing[why], node.Name)
			case sample.At < oldest:
				missing[collector.TooOld] = append(missing[collector.TooOld], node.Name)
			default:
				found++
			}
		}
		fmt.Fprintf(out, "%s: measured on %d of %d nodes\n", name, found, len(m.nodes))
		for _, why := range collector.Reasons() {
			if names := missing[why]; len(names) > 0 {
				fmt.Fprintf(out, "%s: missing (%s) on %d: %s\n", name, why, len(names), some(names))
			}
		}
		if found == 0 && len(m.nodes) > 0 {
			problems = append(problems, fmt.Errorf("%s is not measured on any node; next: check the query's answer in Prometheus, and nodeMatch", name))
		}
		if pods := pl.resources[r].askedOfPods; pods.Pods {
			count := len(m.snapshot.Pods(pods))
			fmt.Fprintf(out, "%s: measured for %d pods\n", name, count)
			if count == 0 {
				problems = append(problems, fmt.Errorf("%s is not measured for any pod; next: check the answers to podQuery and "+
					"podTimestampQuery in Prometheus: their series need the labels namespace and pod", name))
			}
		}
	}
	if s := m.snapshot; s.Unmatched > 0 && len(m.nodes) > 0 {
		problems = append(problems, fmt.Errorf("%d series match no node, for example the one with %s=%q; next: check nodeMatch",
			s.Unmatched, s.UnmatchedLabel, s.UnmatchedExample))
	}
	if len(problems) > 0 && problem != "" {
		problems = append(problems, errors.New(problem))
	}
	return utilerrors.NewAggregate(problems)
}

// some returns the first names.
func some(names []string) string {
	sort.Strings(names)
	if more := len(names) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}
