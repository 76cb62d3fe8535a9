// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kube-scheduler-fork/build/logtail"
)

const (
	// Patience is how long anything may take: many times what it takes on a slow, busy machine.
	Patience = 3 * time.Minute
	// poll is the time between two looks at something that is waited for.
	poll = 100 * time.Millisecond
	// tailLines is how much of each log is shown when something was waited for in vain.
	tailLines = 20
)

// Await asks until a condition holds, which is when it gives no error. Its last error says in the end what was missing,
// and the ends of the logs follow.
func Await(t testing.TB, what string, condition func() error, logs ...string) {
	t.Helper()
	deadline := time.Now().Add(Patience)
	for {
		err := condition()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waiting for %s: after %s: %v; next: look into the ends of the logs:\n%s",
				what, Patience, err, Tails(logs...))
		}
		time.Sleep(poll)
	}
}

// Unless is for conditions: no error if something holds, and else what is said.
func Unless(holds bool, format string, arguments ...any) error {
	if holds {
		return nil
	}
	return fmt.Errorf(format, arguments...)
}

// Await is Await with the logs of the schedulers, and more. It ends when a component of the control plane ends.
func (c *Cluster) Await(t testing.TB, what string, condition func() error, logs ...string) {
	t.Helper()
	Await(t, what, func() error {
		if err := c.Failure(); err != nil {
			t.Fatalf("waiting for %s: %v", what, err)
		}
		return condition()
	}, append(logs, c.logs...)...)
}

// Tails gives the ends of log files, each under its name.
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

// AwaitBound waits until a pod is bound, and gives its node.
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

// WhyPending is what a scheduler says of a pod that it did not bind.
func WhyPending(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return condition.Message
		}
	}
	return ""
}
