// SPDX-License-Identifier: Apache-2.0

// Package history checks the histories of clusters that kubectl scheduling history writes, on a local control plane.
package history

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"kube-scheduler-fork/build/history"
	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

var shared cluster.Shared

func TestMain(m *testing.M) { cluster.Main(m, &shared, &living) }

// words has the keys of lines, and the words for them in a summary.
var words = [][2]string{{"change", ""}, {"node", ""}, {"pod", "pod "}, {"name", "pod "}, {"like", "like "}, {"owner", "of "}, {"workload", "workload "},
	{"bound", "bound "}, {"on", "on "}, {"delete", "delete "}, {"ended", "ended "}, {"reason", "gap "}, {"last", "last "}}

// read returns a summary of each line of a history but the first, and its time. It leaves out a line that is cut.
func read(t *testing.T, file string) (summaries []string, times []time.Duration) {
	t.Helper()
	text, _ := os.ReadFile(file) // It may not be there yet.
	for _, one := range bytes.Split(text, []byte("\n")) {
		line := map[string]any{}
		if json.Unmarshal(one, &line) != nil || line["time"] == nil {
			continue
		}
		var summary []string
		for _, word := range words {
			value := line[word[0]]
			if object, is := value.(map[string]any); is {
				value = object["metadata"].(map[string]any)["name"]
			}
			if value != nil {
				summary = append(summary, word[1]+fmt.Sprint(value))
			}
		}
		at, err := time.ParseDuration(line["time"].(string))
		if err != nil {
			t.Error(err)
		}
		summaries, times = append(summaries, strings.Join(summary, " ")), append(times, at)
	}
	return summaries, times
}

// stand is a control plane whose history is written to a file.
type stand struct {
	*cluster.Cluster
	file    string
	command *exec.Cmd
	output  bytes.Buffer
}

// follow starts the command.
func (s *stand) follow(t *testing.T, arguments ...string) {
	t.Helper()
	s.output.Reset()
	s.command = exec.CommandContext(t.Context(), cluster.Program(t, "KUBECTL_SCHEDULING"), append([]string{"history", "--follow", "-o", s.file}, arguments...)...)
	s.command.Env, s.command.Stderr = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig()), &s.output
	if err := s.command.Start(); err != nil {
		t.Fatal(err)
	}
}

// end ends the command by a signal.
func (s *stand) end(t *testing.T, signal os.Signal) {
	t.Helper()
	if err := s.command.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	if err := s.command.Wait(); (err != nil) != (signal == syscall.SIGKILL) {
		t.Errorf("after the signal %v: %v\n%s", signal, err, &s.output)
	}
}

// await waits until the file has the line after the first ones.
func (s *stand) await(t *testing.T, after int, line string) {
	t.Helper()
	s.Await(t, "the line "+line, func() error {
		lines, _ := read(t, s.file)
		return cluster.Unless(len(lines) > after && slices.Contains(lines[after:], line), "there is %q", lines)
	})
}

// check checks all lines.
func (s *stand) check(t *testing.T, want ...string) {
	t.Helper()
	if lines, _ := read(t, s.file); !slices.Equal(lines, want) {
		t.Errorf("the history is\n%s\nwant\n%s\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"), &s.output)
	}
}

// create creates a pod of an owner.
func (s *stand) create(t *testing.T, name string, owners ...metav1.OwnerReference) {
	t.Helper()
	pod := localcluster.NewPod(name, "nobody")
	pod.OwnerReferences, pod.Labels = owners, map[string]string{"pod-template-hash": "5d"}
	s.CreatePod(t, pod)
}

func controller(group, kind, name string, uid types.UID) metav1.OwnerReference {
	is := true
	return metav1.OwnerReference{APIVersion: group, Kind: kind, Name: name, UID: uid, Controller: &is}
}

func (s *stand) bind(t *testing.T, name, node string) {
	t.Helper()
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: name}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}
	if err := s.Client().CoreV1().Pods("default").Bind(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (s *stand) remove(t *testing.T, name string) {
	t.Helper()
	if err := s.Client().CoreV1().Pods("default").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (s *stand) patchNode(t *testing.T, name, patch string, subresources ...string) {
	t.Helper()
	_, err := s.Client().CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	if err != nil {
		t.Fatal(err)
	}
}

func TestFollow(t *testing.T) {
	s := &stand{Cluster: shared.Get(t), file: filepath.Join(t.TempDir(), "now.jsonl")}
	s.AddNodes(t, 2)
	web := controller("apps/v1", "ReplicaSet", "web-5d", "1")
	s.create(t, "web-1", web)
	s.bind(t, "web-1", "node-1")
	s.create(t, "waits")
	s.follow(t)
	s.await(t, 0, "pod web-1 like default/waits of ReplicaSet/web-5d workload Deployment/web on node-1")

	s.create(t, "web-2", web)
	s.bind(t, "web-2", "node-2")
	s.create(t, "task", controller("batch/v1", "Job", "etl", "2"))
	s.bind(t, "task", "node-2")
	s.await(t, 4, "ended default/task")
	s.remove(t, "web-1")
	s.await(t, 4, "ended default/web-1")
	s.patchNode(t, "node-1", `{"metadata": {"annotations": {"beat": "1"}}}`)
	s.patchNode(t, "node-1", `{"status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}]}}`, "status")
	s.patchNode(t, "node-1", `{"spec": {"unschedulable": true}}`)
	s.await(t, 4, "add node-1")
	first := []string{"add node-1", "add node-2", "pod waits", "pod web-1 like default/waits of ReplicaSet/web-5d workload Deployment/web on node-1",
		"pod web-2 like default/waits of ReplicaSet/web-5d workload Deployment/web", "bound default/web-2 on node-2",
		"pod task like default/waits of Job/etl", "bound default/task on node-2", "ended default/task",
		"delete default/web-1", "ended default/web-1", "add node-1"}
	s.check(t, first...)

	s.end(t, syscall.SIGKILL)
	cluster.Write(t, s.file, cluster.Read(t, s.file)+`{"time":"1h","del`)
	_, times := read(t, s.file)
	stopped := times[len(times)-1]
	s.remove(t, "web-2")
	s.Await(t, "the pod to be gone", func() error {
		_, err := s.Pod(t, "default", "web-2")
		return cluster.Unless(err != nil, "it is there")
	})
	s.create(t, "web-2", web)
	s.bind(t, "web-2", "node-1")
	s.create(t, "short", controller("batch/v1", "Job", "etl", "2"))
	s.bind(t, "short", "node-2")
	s.Await(t, "the pod to end", func() error {
		pod, err := s.Pod(t, "default", "short")
		if err != nil {
			return err
		}
		return cluster.Unless(pod.Status.Phase == corev1.PodSucceeded, "it does not")
	})
	if err := s.Client().CoreV1().Nodes().Delete(t.Context(), "node-2", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.follow(t)
	s.await(t, 12, "remove node-2")
	s.end(t, syscall.SIGINT)
	lines, times := read(t, s.file)
	if slices.Sort(lines[12:]); !slices.Equal(lines[:12], first) || !slices.Equal(lines[12:], []string{"bound default/short on node-2", "bound default/web-2 on node-1",
		"delete default/web-2", "ended default/short", "ended default/web-2", "gap the cluster was not watched", "last true",
		"pod short like default/waits of Job/etl", "pod web-2 like default/waits of ReplicaSet/web-5d workload Deployment/web", "remove node-2"}) {
		t.Errorf("after a crash, the history is %q", lines)
	}
	if !slices.IsSorted(times) || times[12] != stopped || times[13] <= stopped {
		t.Errorf("the times are %v, want a gap from %v on, and the others later", times, stopped)
	}
	if !strings.Contains(s.output.String(), "2 pods arrived, 1 gaps") {
		t.Errorf("it prints %s", &s.output)
	}

	s.follow(t)
	s.await(t, len(lines)-1, "gap the cluster was not watched")
	if err := s.ReplaceAPIServer(t.Context(), cluster.Program(t, "KUBE_APISERVER")); err != nil {
		t.Fatal(err)
	}
	s.create(t, "after")
	s.await(t, len(lines), "gap the cluster was not watched")
	s.await(t, len(lines), "pod after like default/waits")
	s.end(t, syscall.SIGINT)
	s.follow(t, "--anonymize")
	s.Await(t, "another file", func() error {
		files, _ := filepath.Glob(strings.Replace(s.file, ".jsonl", "-*.jsonl", 1))
		lines, _ := read(t, s.file)
		return cluster.Unless(len(files) == 1 && len(lines) >= 4, "the files are %q, and %s has %q", files, s.file, lines)
	})
	s.end(t, syscall.SIGINT)
	for _, word := range []string{"web", "node-", "waits", "5d", "Deployment/web", "pause"} {
		if text := cluster.Read(t, s.file); strings.Contains(text, word) {
			t.Errorf("the anonymized history has %q: %s", word, text)
		}
	}
}

func TestRotation(t *testing.T) {
	s := &stand{Cluster: shared.Get(t), file: filepath.Join(t.TempDir(), "now.jsonl")}
	s.AddNodes(t, 1)
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- history.Follow(ctx, history.FollowOptions{File: s.file, Client: dynamic.NewForConfigOrDie(config),
			Prune: func(string, map[string]any) {}, MaxSize: 1, Messages: t.Output()})
	}()
	s.await(t, 0, "add node-1")
	s.create(t, "stays")
	var files []string
	for round := 0; len(files) < 2; round++ {
		name := fmt.Sprint("web-", round)
		for range 20 {
			s.create(t, name)
			s.remove(t, name)
		}
		files, _ = filepath.Glob(strings.Replace(s.file, ".jsonl", "-*.jsonl", 1))
	}
	s.await(t, 1, "pod stays")
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for i, file := range append(files, s.file) {
		lines, times := read(t, file)
		if lines[0] != "add node-1" || lines[1] != "pod stays" && i > 0 || lines[len(lines)-1] != "last true" || times[0] > times[1] {
			t.Errorf("%s has %q", file, lines)
		}
	}
}
