// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kube-scheduler-fork/build/nextstep"
)

// noImages is a container runtime that fails for every image: a rollback then stops before it changes anything.
type noImages struct{ cri.ImageServiceClient }

func (noImages) ImageStatus(context.Context, *cri.ImageStatusRequest, ...grpc.CallOption) (*cri.ImageStatusResponse, error) {
	return nil, errors.New("no images")
}

func TestARollbackNamesTheFileThatHasTheEditsWhichItTakesBack(t *testing.T) {
	edited := strings.Replace(stock, "    image:", "    - --v=9\n    image:", 1)
	edit, err := Apply([]byte(edited), Swap{Image: "ours:1", Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	tool := toolFor(t, string(edit.Manifest))
	tool.node.runtime = &runtime{images: noImages{}}
	put(t, tool.state.original(), stock)
	// A later install included the edit, so it no longer counts as one.
	if err := writeRecord(tool.state.installedFile(), installed{Manifest: sum(edit.Manifest), Image: "ours:1"}); err != nil {
		t.Fatal(err)
	}
	if err := tool.rollback(context.Background(), ToStock); err == nil || !strings.Contains(err.Error(), "no images") {
		t.Fatalf("the rollback: %v", err)
	}
	kept, err := filepath.Glob(filepath.Join(tool.state.folder, "edited-*"))
	if err != nil || len(kept) != 1 || get(t, kept[0]) != string(edit.Manifest) {
		t.Fatalf("kept %q, %v", kept, err)
	}
	if said := tool.options.Output.(*strings.Builder).String(); !strings.Contains(said, "the restored one is older, and the current one is kept as "+kept[0]) {
		t.Errorf("it does not name %s: %q", kept[0], said)
	}
}

func TestARollbackSaysWhatItWentBackTo(t *testing.T) {
	swapped, err := Apply([]byte(stock), Swap{Image: "ours:1", Version: "v1.23.17+ours", ConfigFolder: "/kept/0123",
		ConfigSHA256: strings.Repeat("0123456789abcdef", 4)})
	if err != nil {
		t.Fatal(err)
	}
	for want, manifest := range map[string]string{
		"the image registry.k8s.io/kube-scheduler:v1.23.17 and no configuration":              stock,
		"the image ours:1 (v1.23.17+ours) and the configuration /kept/0123/" + ConfigFileName: string(swapped.Manifest),
	} {
		if got := inWords([]byte(manifest)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestARunThatIsInterruptedBeforeTheChangeSaysNothingElse(t *testing.T) {
	swapped, err := Apply([]byte(stock), Swap{Image: "ours:1", Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	interrupted, stop := context.WithCancel(context.Background())
	stop()
	for name, run := range map[string]func(*Tool) error{
		"install":  func(tool *Tool) error { return tool.Install(interrupted, Request{Image: "ours:2"}) },
		"rollback": func(tool *Tool) error { return tool.Rollback(interrupted, ToStock) },
	} {
		tool := toolFor(t, string(swapped.Manifest))
		client := fake.NewSimpleClientset()
		client.PrependReactor("*", "*", func(clienttesting.Action) (bool, apiruntime.Object, error) {
			return true, nil, context.Canceled
		})
		tool.node.runtime, tool.node.cluster = &runtime{images: noImages{}}, &cluster{client: client}
		put(t, tool.state.original(), stock)
		if err := writeRecord(tool.state.installedFile(), installed{Manifest: sum(swapped.Manifest)}); err != nil {
			t.Fatal(err)
		}
		if err := run(tool); err != errInterruptedBefore {
			t.Errorf("%s: %v, want %v", name, err, errInterruptedBefore)
		}
		tool.keepImages(interrupted, []byte(stock))
		if said := tool.options.Output.(*strings.Builder).String(); said != "" {
			t.Errorf("%s says %q", name, said)
		}
		if got := get(t, tool.manifest); got != string(swapped.Manifest) {
			t.Errorf("%s has changed the manifest:\n%s", name, got)
		}
	}
	// After a write, the user must see the actual error.
	if err := (&Tool{wrote: true}).orInterrupted(interrupted, errors.New("it did not work")); err == errInterruptedBefore {
		t.Error("what was changed is not told")
	}
}

func TestAFullDiskKeepsNoRollbackFromWhatIsKeptElsewhere(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a disk that is full")
	}
	swapped, err := Apply([]byte(stock), Swap{Image: "ours:1", Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(string(swapped.Manifest), "    image:", "    - --v=9\n    image:", 1)
	for name, c := range map[string]struct {
		manifest, previous string
		where              string
	}{
		"nothing but the swap of what is put back": {string(swapped.Manifest), "", "kube-scheduler-swap install creates it again"},
		"it is kept already":                       {edited, edited, "it is in "},
		"it is kept nowhere":                       {edited, "", ""},
	} {
		tool := toolFor(t, c.manifest)
		if err := unix.Mount("tmpfs", tool.state.folder, "tmpfs", 0, "size=64k"); err != nil {
			t.Skip("no disk can be mounted here: ", err)
		}
		t.Cleanup(func() { _ = unix.Unmount(tool.state.folder, 0) })
		put(t, tool.state.original(), stock)
		if c.previous != "" {
			put(t, tool.state.previous(), c.previous)
		}
		if err := os.WriteFile(filepath.Join(tool.state.folder, "ballast"), make([]byte, 64<<10), 0o600); !errors.Is(err, unix.ENOSPC) {
			t.Fatalf("the disk is not full: %v", err)
		}
		pod := describe(t, c.manifest)
		err := tool.state.keepReplaced([]byte(c.manifest), &pod, []byte(stock))
		said := tool.options.Output.(*strings.Builder).String()
		if (err == nil) != (c.where != "") || !strings.Contains(said, c.where) {
			t.Errorf("%s: %v; it says %q, want %q", name, err, said, c.where)
		}
		if err != nil && !strings.Contains(err.Error(), "make room in "+tool.state.folder) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNothingToTakeBackIsNoSuccessWhereNoSchedulerWorks(t *testing.T) {
	for name, c := range map[string]struct {
		original bool
		next     string
	}{
		"never swapped":           {false, "kubeadm init phase control-plane scheduler"},
		"edited since a rollback": {true, "cp "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tool := toolFor(t, stock)
				if c.original {
					put(t, tool.state.original(), strings.Replace(stock, "    image:", "    - --v=9\n    image:", 1))
				}
				tool.node.runtime = &runtime{containers: &runtimeWith{runs: time.Now().Add(time.Hour)}}
				passed(t, tool, time.Hour)
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
