// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kube-scheduler-fork/build/localcluster"
)

// absent is the text of an empty cell.
const absent = "-"

// printTable prints a line for each pod: its profile, its node and the time to bind it, or why it is Pending.
func printTable(out io.Writer, results []result, nodes []corev1.Node) error {
	diskTypes := map[string]string{}
	for _, node := range nodes {
		diskTypes[node.Name] = node.Labels[localcluster.DiskType]
	}
	fmt.Fprintln(out)
	rows := [][]string{{"POD", "SCHEDULER", "NODE", "NODE LABEL " + localcluster.DiskType, "AFTER"}}
	for _, result := range results {
		rows = append(rows, row(result.Placement, diskTypes))
	}
	return printRows(out, rows, "")
}

// printRows prints rows with aligned cells, and then a line.
func printRows(out io.Writer, rows [][]string, line string) error {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, line)
	return err
}

func row(p localcluster.Placement, diskTypes map[string]string) []string {
	name := podName(p)
	switch {
	case p.NotCreated:
		return []string{name, absent, absent, absent, "not created: timed out"}
	case p.Node != "":
		return []string{name, boundBy(p), p.Node, orAbsent(diskTypes[p.Node]), p.After.Round(time.Millisecond).String()}
	case !p.Served:
		return []string{name, absent, absent, absent, "Pending: no profile is named " + p.Asked}
	case p.Message == "":
		return []string{name, absent, absent, absent, "Pending: no message from " + p.Asked}
	}
	return []string{name, absent, absent, absent, "Pending: " + oneLine(p.Message)}
}

// podName returns a pod's name, with its namespace if it is not default.
func podName(p localcluster.Placement) string {
	if p.Namespace == corev1.NamespaceDefault {
		return p.Name
	}
	return p.Namespace + "/" + p.Name
}

// boundBy returns the profile of the pod's event, with a warning if the pod asks for another.
func boundBy(p localcluster.Placement) string {
	switch p.Profile {
	case p.Asked:
		return p.Profile
	case "":
		return "UNKNOWN (no event)"
	}
	return p.Profile + " INSTEAD OF " + p.Asked
}

func orAbsent(cell string) string {
	if cell == "" {
		return absent
	}
	return cell
}
