// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"kube-scheduler-fork/test/e2e/kubeadmnode"
)

// page has the commands of a page in docs/, by the name in the comment above each block.
type page struct {
	blocks map[string]string
	run    map[string]bool
	// folder is the working directory of the commands: the unpacked bundle.
	folder string
}

var (
	fence = regexp.MustCompile("(?m)^```")
	block = regexp.MustCompile("(?ms)^<!-- e2e: ([a-z-]+) -->\n```sh\n(.*?)^```$")
)

func readPage(t *testing.T, file string) *page {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := &page{blocks: map[string]string{}, run: map[string]bool{}, folder: "/root/release"}
	for _, found := range block.FindAllStringSubmatch(string(content), -1) {
		if p.blocks[found[1]] != "" {
			t.Fatalf("%s has two blocks named %s", file, found[1])
		}
		p.blocks[found[1]] = found[2]
	}
	if fences := len(fence.FindAll(content, -1)); fences != 2*len(p.blocks) {
		t.Fatalf("%s has %d lines that begin or end a block, and %d blocks with a name: one is never run", file, fences, len(p.blocks))
	}
	return p
}

// do runs the commands of a block on a node, as root, in the directory of the
// bundle. The replaced texts, in pairs, are those that need the internet.
func (p *page) do(t *testing.T, node *kubeadmnode.Node, name string, replace ...string) string {
	t.Helper()
	output, err := p.try(t, node, name, replace...)
	if err != nil {
		t.Fatalf("the commands under %q of the page: %v", name, err)
	}
	return output
}

// try is do for a block that may fail.
func (p *page) try(t *testing.T, node *kubeadmnode.Node, name string, replace ...string) (string, error) {
	t.Helper()
	script, known := p.blocks[name]
	if !known {
		t.Fatalf("the page has no block named %s", name)
	}
	p.run[name] = true
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(script, replace[i]) {
			t.Fatalf("the block %s does not hold %q", name, replace[i])
		}
		script = strings.ReplaceAll(script, replace[i], replace[i+1])
	}
	return node.Run(t.Context(), "cd "+p.folder+"\n"+script)
}

// complete checks that every block was run.
func (p *page) complete(t *testing.T) {
	t.Helper()
	for name := range p.blocks {
		if !p.run[name] {
			t.Errorf("the commands under %q of the page were never run", name)
		}
	}
}
