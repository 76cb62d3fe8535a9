// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

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

// printNodes prints a line for each node, with the number of pods by profile and their CPU requests, and then the
// number of nodes with pods.
func printNodes(out io.Writer, nodes []corev1.Node, profiles []string, results []result) error {
	byNode := loads(results)
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(table, "NODE\t%s\tZONE\tPODS BY %s\tCPU REQUESTED\n", localcluster.DiskType, strings.Join(profiles, "\tBY "))
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
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "nodes with pods: %s\n\n", usage(len(nodes), len(byNode), profiles, used))
	return err
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
