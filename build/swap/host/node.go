// SPDX-License-Identifier: Apache-2.0

// Package host is what the tool sees of this node and its cluster: kubelet and its control groups, the container runtime,
// the scheduler's pod and its file system, and the API server. It never writes the manifest.
package host

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"kube-scheduler-fork/build/swap/manifest"
)

// Node is this control-plane node: its kubelet, its container runtime, and the API server of its cluster.
type Node struct {
	Kubelet *Kubelet
	Runtime *Runtime
	Cluster *Cluster
	// Say prints a line of progress.
	Say func(format string, arguments ...any)
}

// podName returns the name of a static pod in the API server and the container runtime.
func (n *Node) podName(pod *manifest.Pod) string { return pod.Object.Name + "-" + n.Kubelet.NodeName }

// prober connects only to schedulers of this node, whose certificates are self-signed.
var prober = &http.Client{
	Timeout:   2 * time.Second,
	Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
}

// Healthy returns why a scheduler is not healthy; empty if it is.
func Healthy(ctx context.Context, url string) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err.Error()
	}
	answer, err := prober.Do(request)
	if err != nil {
		return fmt.Sprintf("it does not answer: %v", errors.Unwrap(err))
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 500))
		return fmt.Sprintf("%s returns %s: %s", url, answer.Status, strings.TrimSpace(string(text)))
	}
	return ""
}

// restartTime is the time for kubelet to start a static pod after its manifest changed, and for the scheduler to become
// healthy: kubelet retries 10 to 15 seconds after the old container has ended, and its end may take some time too.
const restartTime = 45 * time.Second

// worksTime is the time in which a running scheduler must renew its lease, which it does every two seconds.
const worksTime = 8 * time.Second

// Broken returns why the current manifest's scheduler does not work: none of its containers runs, or it is not healthy.
// It waits as long as a scheduler may take to renew its lease, and longer while kubelet starts it. A state that cannot
// be determined does not count as broken.
func (n *Node) Broken(ctx context.Context, pod *manifest.Pod, manifest string) error {
	began, announced := time.Now(), false
	for {
		looking, stop := context.WithTimeout(ctx, LookTime)
		problem, changed, err := n.trouble(looking, pod, manifest)
		stop()
		switch {
		case err != nil || problem == "":
			return nil
		case time.Since(began) < worksTime:
		case time.Since(changed) > restartTime || time.Since(began) > 2*restartTime:
			return errors.New(problem)
		case !announced:
			announced = true
			n.Say("the manifest was changed just now: waiting until kubelet has started the current scheduler "+
				"(%s)", problem)
		}
		select {
		case <-time.After(PollInterval):
		case <-ctx.Done():
			return nil
		}
	}
}

// trouble returns what is wrong with the running scheduler; empty: nothing. changed is the last time that the manifest
// was written or kubelet created a sandbox for it.
func (n *Node) trouble(ctx context.Context, pod *manifest.Pod, manifest string) (problem string, changed time.Time, err error) {
	containers, err := n.Containers(ctx, pod)
	if err != nil {
		return "", time.Time{}, err
	}
	problem = "none of its containers runs"
	if slices.ContainsFunc(containers, Runs) {
		problem = Healthy(ctx, pod.HealthURL())
	}
	if problem == "" {
		return "", time.Time{}, nil
	}
	var file unix.Stat_t
	if err := unix.Stat(manifest, &file); err == nil {
		// Use the change time: a rename does not update the others.
		changed = time.Unix(file.Ctim.Unix())
	}
	sandboxes, err := n.sandboxes(ctx, pod)
	for _, sandbox := range sandboxes {
		if created := time.Unix(0, sandbox.CreatedAt); created.After(changed) {
			changed = created
		}
	}
	return problem, changed, err
}
