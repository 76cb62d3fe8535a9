// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kube-scheduler-fork/build/localcluster"
)

// load is the sum of the pods on a node.
type load struct {
	// pods are counted by profile.
	pods map[string]int
	cpu  resource.Quantity
}

func loads(results []result) map[string]*load {
	byNode := map[string]*load{}
	for _, result := range results {
		if result.Node == "" {
			continue
		}
		node := byNode[result.Node]
		if node == nil {
			node = &load{pods: map[string]int{}}
			byNode[result.Node] = node
		}
		node.pods[result.Profile]++
		for _, container := range result.pod.Spec.Containers {
			node.cpu.Add(*container.Resources.Requests.Cpu())
		}
	}
	return byNode
}

// measuredLoads returns the loads that the plugin NodeLoad has measured, by node, as text such as "cpu 90%"; nil if no
// profile enables the plugin.
func measuredLoads(ctx context.Context, scheduler *localcluster.Scheduler) (map[string]string, error) {
	content, err := scheduler.Get(ctx, "/node-load")
	if err != nil {
		return nil, ctx.Err() // a scheduler without the plugin has no such page
	}
	var status struct {
		Profiles []struct {
			Nodes []struct {
				Node      string
				Resources []struct {
					Resource        string
					MeasuredPercent *float64
				}
			}
		}
	}
	if err := json.Unmarshal(content, &status); err != nil || len(status.Profiles) == 0 {
		return nil, err
	}
	loads := map[string]string{}
	for _, node := range status.Profiles[0].Nodes {
		var texts []string
		for _, r := range node.Resources {
			if r.MeasuredPercent != nil {
				texts = append(texts, fmt.Sprintf("%s %.0f%%", r.Resource, *r.MeasuredPercent))
			}
		}
		loads[node.Node] = strings.Join(texts, ", ")
	}
	return loads, nil
}

// printNodes prints a line for each node, with the number of pods by profile, their CPU requests and, unless measured
// is nil, the measured loads; and then the number of nodes with pods.
func printNodes(out io.Writer, nodes []corev1.Node, profiles []string, results []result, measured map[string]string) error {
	byNode := loads(results)
	headings := []string{"NODE", localcluster.DiskType, "ZONE", "PODS BY " + strings.Join(profiles, "\tBY "), "CPU REQUESTED"}
	if measured != nil {
		headings = append(headings, "MEASURED LOAD")
	}
	rows := [][]string{headings}
	used := make([]int, len(profiles))
	for _, node := range nodes {
		at := byNode[node.Name]
		if at == nil {
			at = &load{}
		}
		cells := []string{node.Name, orAbsent(node.Labels[localcluster.DiskType]), orAbsent(node.Labels[corev1.LabelTopologyZone])}
		for i, profile := range profiles {
			if at.pods[profile] > 0 {
				used[i]++
			}
			cells = append(cells, fmt.Sprint(at.pods[profile]))
		}
		cells = append(cells, fmt.Sprintf("%s of %s", at.cpu.String(), node.Status.Allocatable.Cpu()))
		if measured != nil {
			cells = append(cells, orAbsent(measured[node.Name]))
		}
		rows = append(rows, cells)
	}
	return printRows(out, rows, fmt.Sprintf("nodes with pods: %s\n", usage(len(nodes), len(byNode), profiles, used)))
}

// usage returns the number of nodes with pods: "3 of 5", and with more than one profile "3 of 5 (a 3, b 1)".
func usage(nodes, inUse int, profiles []string, used []int) string {
	text := fmt.Sprintf("%d of %d", inUse, nodes)
	if len(profiles) < 2 {
		return text
	}
	var each []string
	for i, profile := range profiles {
		each = append(each, fmt.Sprintf("%s %d", profile, used[i]))
	}
	return fmt.Sprintf("%s (%s)", text, strings.Join(each, ", "))
}
