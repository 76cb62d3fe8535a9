// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// printEvents prints the events of the pods, except those that the table shows: the node of a bound pod, and why one is
// Pending.
func printEvents(out io.Writer, results []result, events []corev1.Event) error {
	byPod := map[types.NamespacedName][]corev1.Event{}
	for _, event := range events {
		pod := types.NamespacedName{Namespace: event.InvolvedObject.Namespace, Name: event.InvolvedObject.Name}
		if event.InvolvedObject.Kind == "Pod" && event.Reason != "Scheduled" {
			byPod[pod] = append(byPod[pod], event)
		}
	}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	rows := 0
	for _, result := range results {
		ofPod := byPod[types.NamespacedName{Namespace: result.Namespace, Name: result.Name}]
		slices.SortStableFunc(ofPod, func(a, b corev1.Event) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
		for _, event := range ofPod {
			if result.Node == "" && event.Reason == "FailedScheduling" {
				continue
			}
			if rows++; rows == 1 {
				fmt.Fprintln(table, "POD\tEVENT\tMESSAGE")
			}
			fmt.Fprintf(table, "%s\t%s\t%s\n", podName(result.Placement), event.Reason, oneLine(event.Message))
		}
	}
	if rows == 0 {
		return nil
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out)
	return err
}

// printLog prints the lines of a log that contain a text.
func printLog(out io.Writer, file, text string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var found []byte
	lines := 0
	for line := range bytes.Lines(content) {
		if bytes.Contains(line, []byte(text)) {
			lines++
			found = append(found, line...)
		}
	}
	_, err = fmt.Fprintf(out, "%d lines of the scheduler's log contain %q\n%s\n", lines, text, found)
	return err
}

func oneLine(text string) string { return strings.ReplaceAll(text, "\n", " ") }
