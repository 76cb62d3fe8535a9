package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kube-scheduler-fork/build/controlplane"
)

// absent stands in a cell that has nothing to say.
const absent = "-"

// printTable prints a line for each pod: which profile bound it, to which node, and after which time; or why not.
func printTable(out io.Writer, placements []controlplane.Placement, diskTypes map[string]string) error {
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "POD\tSCHEDULER\tNODE\tNODE LABEL "+controlplane.DiskType+"\tAFTER")
	for _, placement := range placements {
		fmt.Fprintln(table, strings.Join(row(placement, diskTypes), "\t"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out)
	return err
}

func row(p controlplane.Placement, diskTypes map[string]string) []string {
	name := p.Name
	if p.Namespace != corev1.NamespaceDefault {
		name = p.Namespace + "/" + p.Name
	}
	switch {
	case p.Node != "":
		return []string{name, boundBy(p), p.Node, orAbsent(diskTypes[p.Node]), p.After.Round(time.Millisecond).String()}
	case !p.Served:
		return []string{name, absent, absent, absent, "Pending: no profile is called " + p.Asked}
	case p.Message == "":
		return []string{name, absent, absent, absent, "Pending: " + p.Asked + " says nothing"}
	}
	return []string{name, absent, absent, absent, "Pending: " + strings.ReplaceAll(p.Message, "\n", " ")}
}

// boundBy names the profile that the pod's event names, loudly if it is not the one that the pod asks for.
func boundBy(p controlplane.Placement) string {
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

// diskTypes gives the label that the examples choose nodes by, for each node's name.
func diskTypes(nodes []corev1.Node) map[string]string {
	types := map[string]string{}
	for _, node := range nodes {
		types[node.Name] = node.Labels[controlplane.DiskType]
	}
	return types
}
