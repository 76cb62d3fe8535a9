// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/swap/host"
	"kube-scheduler-fork/build/swap/manifest"
	"kube-scheduler-fork/build/swap/swaptest"
)

func TestARollbackNamesTheFileThatHasTheEditsWhichItTakesBack(t *testing.T) {
	edited := swaptest.StockWith("--v=9")
	edit := swaptest.Swapped(t, edited, manifest.Swap{Image: "ours:1", Version: "v1"})
	tool := toolFor(t, edit)
	tool.node.Runtime = &host.Runtime{Images: &swaptest.FakeRuntime{Broken: true}}
	swaptest.Put(t, tool.state.Original(), swaptest.Stock)
	// A later install included the edit, so it no longer counts as one.
	recordInstalled(t, tool, edit, manifest.Swap{Image: "ours:1"})
	if err := tool.rollback(context.Background(), ToStock); err == nil || !strings.Contains(err.Error(), "no images") {
		t.Fatalf("the rollback: %v", err)
	}
	kept, err := filepath.Glob(filepath.Join(tool.state.Path, "edited-*"))
	if err != nil || len(kept) != 1 || swaptest.Get(t, kept[0]) != edit {
		t.Fatalf("kept %q, %v", kept, err)
	}
	if said := said(tool); !strings.Contains(said, "the restored one is older, and the current one is kept as "+kept[0]) {
		t.Errorf("it does not name %s: %q", kept[0], said)
	}
}

func TestARunThatIsInterruptedBeforeTheChangeSaysNothingElse(t *testing.T) {
	swapped := swaptest.Swapped(t, swaptest.Stock, manifest.Swap{Image: "ours:1", Version: "v1"})
	interrupted, stop := context.WithCancel(context.Background())
	stop()
	for name, run := range map[string]func(*Tool) error{
		"install":  func(tool *Tool) error { return tool.Install(interrupted, Request{Image: "ours:2"}) },
		"rollback": func(tool *Tool) error { return tool.Rollback(interrupted, ToStock) },
	} {
		tool := toolFor(t, swapped)
		client := fake.NewSimpleClientset()
		client.PrependReactor("*", "*", func(clienttesting.Action) (bool, apiruntime.Object, error) {
			return true, nil, context.Canceled
		})
		tool.node.Runtime, tool.node.Cluster = &host.Runtime{Images: &swaptest.FakeRuntime{Broken: true}}, &host.Cluster{Client: client}
		swaptest.Put(t, tool.state.Original(), swaptest.Stock)
		recordInstalled(t, tool, swapped, manifest.Swap{})
		if err := run(tool); err != errInterruptedBefore {
			t.Errorf("%s: %v, want %v", name, err, errInterruptedBefore)
		}
		tool.saveImages(interrupted, []byte(swaptest.Stock))
		if said := said(tool); said != "" {
			t.Errorf("%s says %q", name, said)
		}
		if got := swaptest.Get(t, tool.manifest); got != swapped {
			t.Errorf("%s has changed the manifest:\n%s", name, got)
		}
	}
	// After a write, the user must see the actual error.
	if err := (&Tool{wrote: true}).orInterrupted(interrupted, errors.New("it did not work")); err == errInterruptedBefore {
		t.Error("what was changed is not told")
	}
}

func TestNothingToTakeBackIsNoSuccessWhereNoSchedulerWorks(t *testing.T) {
	for name, c := range map[string]struct {
		original bool
		next     string
	}{
		"never swapped":           {false, byKubeadm},
		"edited since a rollback": {true, "cp "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tool := toolFor(t, swaptest.Stock)
				if c.original {
					swaptest.Put(t, tool.state.Original(), swaptest.StockWith("--v=9"))
				}
				tool.node.Runtime = &host.Runtime{Containers: &swaptest.FakeRuntime{Runs: time.Now().Add(time.Hour)}}
				swaptest.Passed(t, tool.manifest, time.Hour)
				err := tool.rollback(context.Background(), ToStock)
				if err == nil || !strings.Contains(err.Error(), "nothing to roll back, but") {
					t.Fatalf("the rollback: %v", err)
				}
				if _, next := nextstep.Split(err, ""); !strings.Contains(next, c.next) {
					t.Errorf("next: %s, want %s", next, c.next)
				}
			})
		})
	}
}

// TestByKubeadmIsOnThePage: test/e2e runs the commands of the page, on a node with a registry of its own.
func TestByKubeadmIsOnThePage(t *testing.T) {
	if page := swaptest.Get(t, "../../docs/operations.md"); !strings.Contains(strings.Join(strings.Fields(page), " "), byKubeadm) {
		t.Errorf("docs/operations.md does not have the command %s", byKubeadm)
	}
}

func TestALeaderThatBindsNothingIsNamedWithWhatToDoThere(t *testing.T) {
	tool := toolFor(t, swaptest.Stock)
	what, next := nextstep.Split(tool.undoneError(&host.Failure{Reason: "it did not bind", Leader: "cp2_1234"}, nil, true), "")
	if !strings.Contains(what, "cp2_1234 holds the lease but binds no pods") || strings.Contains(what, "the new scheduler does not work") {
		t.Error(what)
	}
	if !strings.HasPrefix(next, "on cp2: kube-scheduler-swap rollback") {
		t.Error(next)
	}
	if got := tool.undoneError(&host.Failure{Reason: "it did not bind"}, nil, true).Error(); !strings.Contains(got, "the new scheduler does not work") {
		t.Error(got)
	}
}
