// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

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
	rows := [][]string{{"POD", "EVENT", "MESSAGE"}}
	for _, result := range results {
		ofPod := byPod[types.NamespacedName{Namespace: result.Namespace, Name: result.Name}]
		slices.SortStableFunc(ofPod, func(a, b corev1.Event) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
		for _, event := range ofPod {
			if result.Node != "" || event.Reason != "FailedScheduling" {
				rows = append(rows, []string{podName(result.Placement), event.Reason, oneLine(event.Message)})
			}
		}
	}
	if len(rows) == 1 {
		return nil
	}
	return printRows(out, rows, "")
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
