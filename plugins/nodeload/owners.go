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
	// mostOwners is the maximum number of owners with a scale.
	mostOwners = 10000
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

// learned has what is known about the pods of an owner. It never changes once its view is in use.
type learned struct {
	scales []scale // by resource
	// seen is the time of the last view with a pod of the owner, in nanoseconds since 1970.
	seen int64
}

type scale struct{ value, variance float64 }

// scale returns the scale of a resource; 1 if nothing is known.
func (known *learned) scale(r int) float64 {
	if known == nil {
		return 1
	}
	return known.scales[r].value
}

// change is the expected change of a node's measurement, as a share of the capacity: parts to be multiplied by scales.
type change map[*scale]float64

// learn sets the owners of a view, from those of the previous one and from the changes of the measurements since.
func (v *view) learn(before *view, pods []*v1.Pod) {
	v.owners = make(map[owner]*learned, len(before.owners))
	for of, known := range before.owners {
		if unseen := v.made - known.seen; unseen < othersAge || of.kind == "Job" && unseen < jobsAge {
			v.owners[of] = &learned{append([]scale(nil), known.scales...), known.seen}
			for r := range known.scales {
				v.owners[of].scales[r].variance = math.Min(uncertain, known.scales[r].variance+drift)
			}
		}
	}
	changes := make([]change, len(v.nodes)*len(v.resources)) // by node, then by resource
	for _, pod := range pods {
		if known := v.owners[ownerOf(pod)]; known != nil {
			known.seen = v.made
		}
		if number := v.find(pod.Spec.NodeName); number >= 0 && startOf(pod, v.window, v.made) > before.settledAt {
			v.expect(before, number, run{pod: pod, end: running}, changes)
		}
	}
	for number := range v.nodes {
		for _, of := range *v.goneFrom(number) {
			v.expect(before, number, of, changes)
		}
	}
	for i := range changes {
		if number, r := i/len(v.resources), i%len(v.resources); len(changes[i]) > 0 {
			old := before.measured[before.find(v.nodes[number].Name)][r].measured
			changes[i].correct(v.measured[number][r].measured - old)
		}
	}
}

// expect adds the change that is expected from a pod to those of its node.
func (v *view) expect(before *view, number int, of run, changes []change) {
	earlier, known := before.find(v.nodes[number].Name), v.known(ownerOf(of.pod))
	for r := range v.resources {
		l, resource, c := &v.measured[number][r], &v.resources[r], &changes[number*len(v.resources)+r]
		if earlier < 0 || l.perUnit == 0 || before.measured[earlier][r].at == notMeasured || l.at <= before.measured[earlier][r].at {
			continue
		}
		start := startOf(of.pod, resource.window, v.made)
		share := lacking(start, of.end, before.measured[earlier][r].at, resource.window) - lacking(start, of.end, l.at, resource.window)
		if by := share * l.share(resource.estimator.estimate(of.pod, 1)); by != 0 {
			if *c == nil {
				*c = change{}
			}
			(*c)[&known.scales[r]] += by
		}
	}
}

// known returns what is known about an owner. Nothing is learned about pods without one, or if there are too many.
func (v *view) known(of owner) *learned {
	known, variance := v.owners[of], uncertain
	if known != nil {
		return known
	}
	if known = (&learned{make([]scale, len(v.resources)), v.made}); of != (owner{}) && len(v.owners) < mostOwners {
		v.owners[of] = known
	} else {
		variance = 0
	}
	for r := range known.scales {
		known.scales[r] = scale{1, variance}
	}
	return known
}

// correct corrects the scales by the measured change.
func (c change) correct(measured float64) {
	variance := noise
	for s, by := range c {
		measured -= by * s.value
		variance += by * by * s.variance
	}
	for s, by := range c {
		gain := by * s.variance / variance
		s.value = math.Min(mostScale, math.Max(0, s.value+gain*measured))
		s.variance -= gain * by * s.variance
	}
}
