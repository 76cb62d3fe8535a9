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

// tailLines bounds how much of a log is shown.
const tailLines = 20

// LogTail gives the last lines of the node's logs whose path, in the log folder, contains one of the words: "kubelet",
// "containerd", "boot", or a part of a pod's name. Without a word it gives those of all.
func (n *Node) LogTail(words ...string) string {
	var files []string
	err := filepath.WalkDir(n.logs, func(path string, entry fs.DirEntry, err error) error {
		// A log may vanish meanwhile, with its pod.
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

// contains tells whether a text contains one of the words, or there are none.
func contains(text string, words []string) bool {
	for _, word := range words {
		if strings.Contains(text, word) {
			return true
		}
	}
	return len(words) == 0
}

func indent(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }
