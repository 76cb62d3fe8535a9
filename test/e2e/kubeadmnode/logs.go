// SPDX-License-Identifier: Apache-2.0

package kubeadmnode

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"kube-scheduler-fork/build/logtail"
)

// tailLines limits the lines of a log that are shown.
const tailLines = 20

// LogTail returns the last lines of the node's logs whose path in the log directory contains one of the words:
// "kubelet", "containerd", "boot", or a part of a pod's name. Without words it returns those of all logs.
func (n *Node) LogTail(words ...string) string {
	var files []string
	err := filepath.WalkDir(n.logs, func(path string, entry fs.DirEntry, err error) error {
		// A log may be removed meanwhile, with its pod.
		if err == nil && entry.Type().IsRegular() && contains(strings.TrimPrefix(path, n.logs), words) {
			files = append(files, path)
		}
		return nil
	})
	sort.Strings(files)
	var text strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			content = []byte(err.Error())
		}
		fmt.Fprintf(&text, "the last lines of %s:\n%s\n", file, indent(logtail.Last(string(content), tailLines)))
	}
	if text.Len() == 0 {
		fmt.Fprintf(&text, "no logs of %s in %s (%v)\n", strings.Join(words, ", "), n.logs, err)
	}
	return text.String()
}

// contains reports whether a text contains one of the words, or there are no words.
func contains(text string, words []string) bool {
	for _, word := range words {
		if strings.Contains(text, word) {
			return true
		}
	}
	return len(words) == 0
}

func indent(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }
