// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"math"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The pods of an owner use a similar share of their requests. The plugin learns a scale for each owner, by which it
// multiplies the estimates of its pods, from the changes of nodes' measurements that are expected from pods that started
// and ended. Load that did not change has no effect. The rule is that of a Kalman filter without covariances: an error
// is attributed to noise, and to the owners by their part in the change and by the uncertainty of their scales.

const (
	// mostScale is the maximum scale. A pod's estimate is at most its limit, too.
	mostScale = 1000
	// noise is the variance of a node's measurement without a change of its pods: (3 %)² of its capacity.
	noise = 0.03 * 0.03
	// uncertain is the variance of a scale of which nothing is known, and drift the variance that a refresh adds.
	uncertain, drift = 1.0, 0.001
	// mostScales is the maximum number of scales that are remembered.
	mostScales = 20000
	// jobsAge and othersAge are how long an owner is remembered without a pod: jobs may run once a day.
	jobsAge, othersAge = int64(25 * time.Hour), int64(time.Hour)
)

// owner identifies pods whose use is learned together; empty for pods without a controller.
type owner struct{ namespace, kind, name string }

// ownerOf returns the owner of a pod. All ReplicaSets of a Deployment are one owner, and so are Jobs whose names differ
// only after the last hyphen, in a number such as a CronJob's or in five characters that the API server generated.
func ownerOf(pod *v1.Pod) owner {
	controller := metav1.GetControllerOfNoCopy(pod)
	if controller == nil {
		return owner{}
	}
	name := controller.Name
	last := strings.LastIndexByte(name, '-')
	suffix := name[last+1:]
	if last > 0 && (controller.Kind == "ReplicaSet" && suffix == pod.Labels["pod-template-hash"] ||
		controller.Kind == "Job" && (strings.Trim(suffix, "0123456789") == "" ||
			len(suffix) == 5 && strings.Trim(suffix, "bcdfghjklmnpqrstvwxz2456789") == "")) {
		name = name[:last]
	}
	return owner{pod.Namespace, controller.Kind, name}
}

// scaleKey is an owner and the index of a resource.
type scaleKey struct {
	owner
	resource int
}

// scale never changes once its view is in use.
type scale struct {
	value, variance float64
	// seen is the time of the last view with a pod of the owner, in nanoseconds since 1970.
	seen int64
}

// scale returns the scale of a resource for the pods of an owner; 1 if nothing is known.
func (v *view) scale(of owner, r int) float64 {
	if known := v.scales[scaleKey{of, r}]; known != nil {
		return known.value
	}
	return 1
}

// learn sets the scales of a view, from those of the previous one and from the changes of the measurements since.
func (v *view) learn(before *view, pods []*v1.Pod) {
	v.scales = make(map[scaleKey]*scale, len(before.scales))
	for key, s := range before.scales {
		if unseen := v.made - s.seen; unseen < othersAge || key.kind == "Job" && unseen < jobsAge {
			v.scales[key] = &scale{s.value, math.Min(uncertain, s.variance+drift), s.seen}
		}
	}
	runs := make([][]run, len(v.nodes))
	for _, pod := range pods {
		for r, of := 0, ownerOf(pod); r < len(v.resources); r++ {
			if known := v.scales[scaleKey{of, r}]; known != nil {
				known.seen = v.made
			}
		}
		if number := v.find(pod.Spec.NodeName); number >= 0 && startOf(pod, v.window, v.made) > before.settledAt {
			runs[number] = append(runs[number], run{pod: pod, end: running})
		}
	}
	for number, node := range v.nodes {
		earlier, runs := before.find(node.Name), append(runs[number], v.gone[number].Load().([]run)...)
		for r := 0; r < len(v.resources) && len(runs) > 0 && earlier >= 0; r++ {
			if from, to := &before.measured[earlier][r], &v.measured[number][r]; from.at != notMeasured && to.at > from.at {
				v.correct(r, from, to, runs)
			}
		}
	}
}

// correct corrects the scales of the owners of pods that ran on a node by the change of its load between two times.
func (v *view) correct(r int, from, to *load, runs []run) {
	resource, wrong, variance := &v.resources[r], to.measured-from.measured, noise
	expected := map[*scale]float64{} // with the scale 1
	for _, of := range runs {
		start := startOf(of.pod, resource.window, v.made)
		share := lacking(start, of.end, from.at, resource.window) - lacking(start, of.end, to.at, resource.window)
		if s := v.known(scaleKey{ownerOf(of.pod), r}); share != 0 && s != nil {
			expected[s] += share * to.share(resource.estimator.estimate(of.pod, 1))
		}
	}
	for s, change := range expected {
		wrong -= change * s.value
		variance += change * change * s.variance
	}
	for s, change := range expected {
		gain := change * s.variance / variance
		s.value = math.Min(mostScale, math.Max(0, s.value+gain*wrong))
		s.variance -= gain * change * s.variance
	}
}

// known returns a scale that can be corrected; nil without an owner, or if there are too many.
func (v *view) known(key scaleKey) *scale {
	if v.scales[key] == nil && key.owner != (owner{}) && len(v.scales) < mostScales {
		v.scales[key] = &scale{1, uncertain, v.made}
	}
	return v.scales[key]
}
