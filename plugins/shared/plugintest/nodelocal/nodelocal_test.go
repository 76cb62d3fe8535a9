// SPDX-License-Identifier: Apache-2.0

package nodelocal

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/utils/clock"
)

// planted is a score plugin with the key and the scores of a test.
type planted struct {
	framework.ScorePlugin
	handle framework.Handle
	clock  clock.PassiveClock
	pods   corelisters.PodLister
	calls  int
	key    func(pl *planted, pod *v1.Pod, key []byte) []byte
	score  func(pl *planted, pod *v1.Pod, node *v1.Node) int
}

func (pl *planted) Name() string { return "Planted" }

func (pl *planted) NodeLocalKey(pod *v1.Pod, key []byte) ([]byte, bool) {
	key = pl.key(pl, pod, key)
	return key, key != nil
}

func (pl *planted) Score(_ context.Context, _ *framework.CycleState, pod *v1.Pod, name string) (int64, *framework.Status) {
	info, _ := pl.handle.SnapshotSharedLister().NodeInfos().Get(name)
	return int64(pl.score(pl, pod, info.Node())), nil
}

func (pl *planted) nodes() []*framework.NodeInfo {
	nodes, _ := pl.handle.SnapshotSharedLister().NodeInfos().List()
	return nodes
}

// TestCheck has plugins that keep the contract, and others that break it in one way each.
func TestCheck(t *testing.T) {
	app := func(_ *planted, pod *v1.Pod, key []byte) []byte { return append(append(key, pod.Labels["app"]...), 0) }
	prefer := func(_ *planted, pod *v1.Pod, node *v1.Node) int { return len(pod.Labels["app"] + node.Labels["zone"]) }
	count := func(pl *planted, _ *v1.Pod, _ *v1.Node) int { return len(pl.nodes()) }
	for _, tt := range []struct {
		name  string
		key   func(pl *planted, pod *v1.Pod, key []byte) []byte
		score func(pl *planted, pod *v1.Pod, node *v1.Node) int
		// want is a part of the violations; none if it is empty.
		want string
	}{
		{"it keeps the contract", app, prefer, ""},
		{"no pod qualifies", func(*planted, *v1.Pod, []byte) []byte { return nil }, prefer, ""},
		{"the number of nodes, in the key", func(pl *planted, _ *v1.Pod, key []byte) []byte { return append(key, byte(len(pl.nodes()))) }, count, ""},
		{"the number of nodes", app, count, ": with the same key pod 0 in snapshot 0 has Score 30 Success, and pod 0 in snapshot 5 has Score 31 Success"},
		{"another node", app, func(pl *planted, _ *v1.Pod, node *v1.Node) (same int) {
			for _, other := range pl.nodes() {
				if other.Node().Labels["disk"] == node.Labels["disk"] {
					same++
				}
			}
			return same
		}, "pod 0 in snapshot 1 has"},
		{"a lister", app, func(pl *planted, _ *v1.Pod, _ *v1.Node) int {
			pods, _ := pl.pods.List(labels.Everything())
			return len(pods)
		}, "pod 0 in snapshot 1 has"},
		{"a clock", app, func(pl *planted, _ *v1.Pod, _ *v1.Node) int { return int(pl.clock.Now().Unix()) }, "pod 0 in snapshot 1 has Score 3600"},
		{"a counter", app, func(pl *planted, _ *v1.Pod, _ *v1.Node) int {
			pl.calls++
			return (pl.calls - 1) / size // 0 until a snapshot is evaluated again
		}, "pod 0 in snapshot 0 has Score 0 Success, and pod 0 in snapshot 0 has Score 1 Success"},
		{"a field that is not in the key", app, func(_ *planted, pod *v1.Pod, _ *v1.Node) int { return len(pod.Spec.NodeSelector["disk"]) },
			"pod 0 with another spec.nodeSelector.disk in snapshot"},
		{"a key without separators", func(_ *planted, pod *v1.Pod, key []byte) []byte {
			return append(append(key, pod.Namespace...), pod.Name...)
		},
			func(_ *planted, pod *v1.Pod, _ *v1.Node) int { return len(pod.Namespace) }, "another metadata.name (moved to namespace)"},
		{"a key that is not appended", func(_ *planted, pod *v1.Pod, _ []byte) []byte { return []byte(pod.Labels["app"]) }, prefer, "must append"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Check(t, func(_ runtime.Object, handle framework.Handle) (framework.Plugin, error) {
				pods := handle.SharedInformerFactory().Core().V1().Pods().Lister()
				return &planted{handle: handle, clock: clock.RealClock{}, pods: pods, key: tt.key, score: tt.score}, nil
			}, &config.NodeFilterArgs{})
			text := strings.Join(got.Violations, "\n")
			if (got.Qualified == 0) != strings.HasPrefix(tt.name, "no pod") || (text == "") != (tt.want == "") ||
				!strings.Contains(text, tt.want) {
				t.Errorf("%d pods qualified; want %q, got\n%s", got.Qualified, tt.want, text)
			}
		})
	}
}

// TestEveryPluginIsChecked fails if a plugin has NodeLocalKey, and its tests do not call Test.
func TestEveryPluginIsChecked(t *testing.T) {
	const plugins = "../../.."
	if _, err := os.Stat(plugins + "/go.mod"); err != nil {
		return // The patched tree, which also has Kubernetes' own plugins there: test/inprocess checks these.
	}
	files, err := filepath.Glob(plugins + "/*/*.go")
	if err != nil || len(files) < 100 {
		t.Fatalf("the plugins have %d Go files: %v", len(files), err)
	}
	has, checked := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		plugin, of, method := filepath.Base(filepath.Dir(file)), has, ") NodeLocalKey("
		if strings.HasSuffix(file, "_test.go") {
			of, method = checked, "nodelocal.Test(t, "
		}
		of[plugin] = of[plugin] || strings.Contains(string(text), method)
	}
	for plugin := range has {
		if has[plugin] && !checked[plugin] {
			t.Errorf("%s has the method NodeLocalKey, and its tests do not call nodelocal.Test(t, New, args, ...): see plugins/nodefilter", plugin)
		}
	}
}
