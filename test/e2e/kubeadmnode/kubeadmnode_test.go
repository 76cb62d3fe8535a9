// SPDX-License-Identifier: Apache-2.0

package kubeadmnode

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"kube-scheduler-fork/test/cluster"
)

// patience is how long the tests wait for what takes a second or two.
const patience = time.Minute

// The tests of the package e2e use nodes in every other way: with kubeadm, with pods, joined, and without power.
func TestNodeIsConfinedAndLeavesNothingBehind(t *testing.T) {
	before := leftOvers(t)
	node, err := hub.Start(t.Context(), NodeOptions{Name: "alone"})
	if err != nil {
		t.Fatal(err)
	}

	t.Run("CancelledScriptLeavesNoProcess", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		ended := make(chan error, 1)
		go func() {
			_, err := node.Run(ctx, "sleep 2000; true")
			ended <- err
		}()
		err := eventually(t, func(ctx context.Context) (bool, error) {
			_, err := node.Run(ctx, "pgrep --full --exact 'sleep 2000'")
			return err == nil, nil
		})
		cancel(enough)
		if err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, enough) {
			t.Errorf("the script ended with %v, want the reason of the cancellation", err)
		}
		// The kernel takes a moment to end it.
		err = eventually(t, func(ctx context.Context) (bool, error) {
			_, err := node.Run(ctx, "! pgrep --full --exact 'sleep 2000'")
			return err == nil, nil
		})
		if err != nil {
			t.Errorf("what the script started lives on: %v", err)
		}
	})
	t.Run("MachinesFilesAndSettingsStay", func(t *testing.T) {
		const setting = "/proc/sys/kernel/panic"
		value := cluster.Read(t, setting)
		folders := []string{"/etc", "/usr/bin", "/var/lib", "/opt", "/root"}
		script := "for folder in " + strings.Join(folders, " ") + "; do echo node > $folder/of-a-node; done; echo 7777 > " + setting
		if _, err := node.Run(t.Context(), script); err != nil {
			t.Fatal(err)
		}
		if got := cluster.Read(t, node.Root()+setting); got != "7777\n" {
			t.Errorf("the node's own %s is %q, want 7777", setting, got)
		}
		if got := cluster.Read(t, setting); got != value {
			t.Errorf("the machine's %s became %q, was %q", setting, got, value)
		}
		for _, folder := range folders {
			if _, err := os.Stat(folder + "/of-a-node"); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s/of-a-node on the machine: %v, want no such file", folder, err)
			}
		}
		if _, err := node.Run(t.Context(), "echo > "+filepath.Join(hub.folder, "of-a-node")); err == nil {
			t.Error("the node writes to the output folder")
		}
	})
	t.Run("NoOtherNetworkIsReached", func(t *testing.T) {
		// An address for documentation.
		for place, command := range map[string]interface{ CombinedOutput() ([]byte, error) }{
			"the node": node.Command(t.Context(), "ip", "route", "get", "192.0.2.1"),
			"the hub":  exec.CommandContext(t.Context(), "ip", "route", "get", "192.0.2.1"),
		} {
			output, err := command.CombinedOutput()
			if reached := err == nil && !strings.Contains(string(output), "via "+hubAddress); reached {
				t.Errorf("from %s: %s, want no way, or one to the hub", place, output)
			}
		}
	})

	if err := node.Close(); err != nil {
		t.Error(err)
	}
	expectNothingLeft(t, before)
}

// eventually waits until a condition holds.
func eventually(t *testing.T, condition wait.ConditionWithContextFunc) error {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return wait.PollImmediateUntilWithContext(ctx, pollInterval, condition)
}

// leftOvers lists everything that a node could leave in the hub: processes, mounts, network interfaces and namespaces,
// cgroups, folders.
func leftOvers(t *testing.T) []string {
	t.Helper()
	var found []string
	add := func(kind, pattern string, read func(string) (string, error)) {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			// A process may end meanwhile.
			if name, err := read(path); err == nil {
				found = append(found, kind+" "+name)
			}
		}
	}
	asIs := func(path string) (string, error) { return path, nil }
	add("process", "/proc/[0-9]*/comm", func(path string) (string, error) {
		name, err := os.ReadFile(path)
		return path + " " + string(name), err
	})
	add("namespace", "/proc/[0-9]*/ns/*", os.Readlink)
	add("folder", filepath.Join(hub.memory, "*"), asIs)
	folders, err := hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		add("cgroup", filepath.Join(folder, hub.cgroup, "*"), func(path string) (string, error) {
			info, err := os.Stat(path)
			if err == nil && !info.IsDir() {
				err = os.ErrNotExist
			}
			return path, err
		})
	}
	for line := range strings.Lines(cluster.Read(t, "/proc/self/mounts")) {
		found = append(found, "mount "+line)
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range interfaces {
		found = append(found, "interface "+one.Name)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// expectNothingLeft checks that everything is as it was before. The kernel takes a moment for some of it.
func expectNothingLeft(t *testing.T, before []string) {
	t.Helper()
	var left []string
	err := eventually(t, func(context.Context) (bool, error) {
		left = slices.DeleteFunc(leftOvers(t), func(one string) bool { return slices.Contains(before, one) })
		return len(left) == 0, nil
	})
	if err != nil {
		t.Errorf("left behind:\n%s", strings.Join(left, "\n"))
	}
}
