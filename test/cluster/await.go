// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kube-scheduler-fork/build/logtail"
)

const (
	// Patience limits every wait: many times what anything takes on a slow, busy machine.
	Patience = 3 * time.Minute
	// poll is the time between two checks of a condition.
	poll = 100 * time.Millisecond
	// tailLines limits the log lines that are shown after a timeout.
	tailLines = 20
)

// Await waits until a condition returns no error. After Patience the test fails with the last error and the ends of the
// logs.
func Await(t testing.TB, what string, condition func() error, logs ...string) {
	t.Helper()
	AwaitFor(t, Patience, what, condition, logs...)
}

// AwaitFor is Await with another patience, such as for a large cluster.
func AwaitFor(t testing.TB, patience time.Duration, what string, condition func() error, logs ...string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := condition()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waiting for %s: after %s: %v; next: look into the ends of the logs:\n%s",
				what, patience, err, Tails(logs...))
		}
		time.Sleep(poll)
	}
}

// Unless returns an error unless a condition holds.
func Unless(holds bool, format string, arguments ...any) error {
	if holds {
		return nil
	}
	return fmt.Errorf(format, arguments...)
}

// Await is Await with the logs of the schedulers. It also fails when a component of the control plane ends.
func (c *Cluster) Await(t testing.TB, what string, condition func() error, logs ...string) {
	t.Helper()
	Await(t, what, func() error {
		if err := c.Failure(); err != nil {
			t.Fatalf("waiting for %s: %v", what, err)
		}
		return condition()
	}, append(logs, c.logs...)...)
}

// Tails returns the ends of log files, each under its name.
func Tails(files ...string) string {
	var text strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			content = []byte(err.Error())
		}
		fmt.Fprintf(&text, "%s:\n%s\n", filepath.Base(file), logtail.Last(string(content), tailLines))
	}
	return text.String()
}

// AwaitBound waits until a pod is bound, and returns its node.
func (c *Cluster) AwaitBound(t testing.TB, pod *corev1.Pod) string {
	t.Helper()
	var node string
	c.Await(t, "the pod "+pod.Namespace+"/"+pod.Name+" to be bound", func() error {
		seen, err := c.Pod(t, pod.Namespace, pod.Name)
		if err != nil {
			return err
		}
		if node = seen.Spec.NodeName; node == "" {
			return fmt.Errorf("it is not: %s", WhyPending(seen))
		}
		return nil
	})
	return node
}

// AwaitPending waits until the scheduler has a message about a pod with some words, and returns it. It fails the test if the
// pod is bound.
func (c *Cluster) AwaitPending(t testing.TB, namespace, name, words string) (why string) {
	t.Helper()
	c.Await(t, "the pod "+namespace+"/"+name+" to wait because: "+words, func() error {
		seen, err := c.Pod(t, namespace, name)
		if err != nil {
			return err
		}
		if seen.Spec.NodeName != "" {
			t.Fatalf("the pod %s/%s is bound to %s", namespace, name, seen.Spec.NodeName)
		}
		why = WhyPending(seen)
		return Unless(why != "" && strings.Contains(why, words), "the message is %q", why)
	})
	return why
}

// Resources returns amounts of CPU and memory, and a number of pods.
func Resources(cpu, memory, pods string) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory), corev1.ResourcePods: resource.MustParse(pods),
	}
}

// WhyPending returns the scheduler's message about a pod that is not bound.
func WhyPending(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return condition.Message
		}
	}
	return ""
}

// Every calls a function the given number of times a second, until the context ends.
func Every(ctx context.Context, perSecond int, do func(i int)) {
	ticker := time.NewTicker(time.Second / time.Duration(perSecond))
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			do(i)
		}
	}
}
