// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kube-scheduler-fork/test/cluster"
)

// terminals is the walk of docs/does-it-help.md in one shell, with blocks of the page.
const terminals = `set -o errexit -o monitor
await() { timeout 60 bash -c 'until [ "$(cat history.jsonl 2> /dev/null | grep -c "$0")" -ge $1 ]; do sleep 0.1; done' "$@"; }
%s%s &
await '"history":1' 1
%sawait '"ended":"default/etl-' 3
kill -INT $!
wait $!
%s%s`

// TestWalkOfThePageShowsWhatThePageSays runs the commands as a reader does.
func TestWalkOfThePageShowsWhatThePageSays(t *testing.T) {
	_, page, _ := strings.Cut(cluster.Read(t, "../../../docs/does-it-help.md"), "\n## Ten minutes")
	blocks := regexp.MustCompile("(?m)(?:^    .*\n)+").FindAllString(page, -1)
	if len(blocks) != 7 {
		t.Fatalf("the walk has %d blocks, want 7; next: change this test with the page", len(blocks))
	}
	flags := strings.NewReplacer("make run ", "--objects=../../../manifests/crds ", "CONFIG=", "--config=../../../", "NODES=", "--nodes=",
		"PODS=", "--pods=", "MANIFEST=", "--manifest=../../../", "KEEP=yes", "--keep")
	first := newRun(t, strings.Fields(flags.Replace(blocks[0]))...)
	first.follow(t, "everything keeps running")
	export, err := first.output.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}

	second := exec.CommandContext(t.Context(), "bash", "-c",
		fmt.Sprintf(terminals, blocks[1], strings.TrimSpace(blocks[2]), blocks[3], blocks[4], blocks[5]))
	second.Dir = t.TempDir()
	second.Env = append(os.Environ(), strings.TrimPrefix(strings.TrimSpace(export), "export "), "HOME="+second.Dir,
		"PATH="+filepath.Dir(cluster.Program(t, "KUBECTL_SCHEDULING"))+":"+filepath.Dir(cluster.Program(t, "KUBECTL"))+":"+os.Getenv("PATH"))
	manifests, err := filepath.Abs("../../../manifests")
	if err == nil {
		err = os.Symlink(manifests, filepath.Join(second.Dir, "manifests"))
	}
	if err != nil {
		t.Fatal(err)
	}
	output, err := second.CombinedOutput()
	if t.Logf("%s", output); err != nil {
		t.Error(err)
	}
	for _, says := range []string{`100\.0 % of 6 pods agree`, `nodes used \(nodes\) +6 +1 `, `in one zone only \(workloads\) +0 +1 `,
		`100\.0 % of 3 pods agree`, `pods placed \(pods\) +3 +3 `} {
		if !regexp.MustCompile(says).Match(output) {
			t.Errorf("the output has no %q", says)
		}
	}
	if nodes := regexp.MustCompile(`shadow-\d .*(node-\d)`).FindAllSubmatch(output, -1); len(nodes) != 2 || string(nodes[0][1]) != string(nodes[1][1]) {
		t.Errorf("the pods of the other profile are on %q, want one node", nodes)
	}
	if err := first.command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	first.drain(t)
	_ = first.command.Wait() // what it leaves is tested above
	output, err = newRun(t, strings.Fields(flags.Replace(blocks[6]))...).command.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "nodes with pods: 1 of 6") {
		t.Errorf("%v: %s", err, output)
	}
}
