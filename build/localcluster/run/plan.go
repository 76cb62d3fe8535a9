// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-scheduler-fork/build/localcluster"
)

// staysPending is the annotation, with the value "true", of an example pod that should stay Pending.
const staysPending = "kube-scheduler-run/stays-pending"

// plan holds the objects that a run creates.
type plan struct {
	// nodes are those of the manifests, in addition to the usual ones.
	nodes []*corev1.Node
	// objects are the custom objects of the manifests, which are created before the scheduler starts.
	objects []*unstructured.Unstructured
	// waves are pods that are created together, after the pods of the wave before are running.
	waves [][]*corev1.Pod
	// orphan reports whether the first wave has a pod without a schedulerName, and no profile serves it.
	orphan bool
}

// newPlan reads the manifests. The first wave has count pods, which ask for the profiles in turn; each manifest is
// another wave.
func newPlan(profiles []string, count int, manifests []string) (*plan, error) {
	p := &plan{orphan: !slices.Contains(profiles, corev1.DefaultSchedulerName)}
	dealt := dealPods(count, profiles)
	if p.orphan {
		// It shows what this configuration does to pods that name no scheduler, as most do.
		pod := localcluster.NewPod("names-no-scheduler", "")
		pod.Annotations = map[string]string{staysPending: "true"}
		dealt = append(dealt, pod)
	}
	if len(dealt) > 0 {
		p.waves = append(p.waves, dealt)
	}
	for _, file := range manifests {
		manifest, err := localcluster.ReadManifest(file)
		if err != nil {
			return nil, err
		}
		p.nodes = append(p.nodes, manifest.Nodes...)
		p.objects = append(p.objects, manifest.Objects...)
		p.waves = append(p.waves, manifest.Pods)
	}
	return p, nil
}

// dealPods returns pods that ask for the profiles in turn.
func dealPods(count int, profiles []string) []*corev1.Pod {
	width := len(fmt.Sprint(count))
	var pods []*corev1.Pod
	for i := range count {
		pods = append(pods, localcluster.NewPod(fmt.Sprintf("pod-%0*d", width, i+1), profiles[i%len(profiles)]))
	}
	return pods
}

func (p *plan) pods() []*corev1.Pod { return slices.Concat(p.waves...) }

// result is a pod and its placement.
type result struct {
	pod *corev1.Pod
	localcluster.Placement
}

// err returns an error if the pod is not where it should be.
func (r result) err() error {
	switch {
	case r.NotCreated || r.pod.Annotations[staysPending] != "true":
		return r.Err()
	case r.Node != "":
		return fmt.Errorf("pod %s/%s should stay Pending according to its annotation %s, but is bound to %s; "+
			"next: check its schedulerName and the plugins of that profile", r.Namespace, r.Name, staysPending, r.Node)
	case r.Served && r.Message == "":
		return r.Err() // no scheduler has looked at it yet
	}
	return nil
}

// judge returns the errors of all results.
func judge(results []result) error {
	var failures []error
	for _, result := range results {
		failures = append(failures, result.err())
	}
	return errors.Join(failures...)
}
