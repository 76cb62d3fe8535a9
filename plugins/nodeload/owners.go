// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"math"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// The pods of an owner use a similar share of their requests. The plugin learns a scale for each owner, by which it
// multiplies the estimates of its pods, from the changes of nodes' measurements that are expected from pods that
// started and ended. Load that did not change has no effect. The rule is that of a Kalman filter without covariances:
// an error is attributed to noise, and to the owners by their part in the change and the uncertainty of their scales.

const (
	// mostScale is the maximum scale. A pod's estimate is at most its limit, too.
	mostScale = 1000
	// noise is the variance of a node's measurement without a change of its pods: (3 %)² of its capacity.
	noise = 0.03 * 0.03
	// outlier is the maximum error of an expected change that corrects scales, in standard deviations: a single wrong
	// measurement must not spoil them.
	outlier = 3
	// uncertain is the variance of a scale of which nothing is known, and drift the variance that a refresh adds.
	uncertain, drift = 1.0, 0.001
	// mostScales is the maximum number of scales that are remembered.
	mostScales = 20000
	// jobsAge and othersAge are how long an owner is remembered without a pod: jobs may run once a day.
	jobsAge, othersAge = int64(25 * time.Hour), int64(time.Hour)
	// seeEvery is how often the owners of all pods are looked for.
	seeEvery = int64(10 * time.Minute)
)

// owner identifies pods whose use is learned together; empty for pods without a controller.
type owner struct{ namespace, kind, name string }

// ownerOf returns the owner of a pod. All ReplicaSets of a Deployment are one owner, and so are Jobs whose names differ
// only after the last hyphen, in a number such as a CronJob's or in five characters that the API server generated.
func ownerOf(pod *v1.Pod) owner {
	for i := range pod.OwnerReferences {
		if is := pod.OwnerReferences[i].Controller; is == nil || !*is {
			continue
		}
		kind, name := pod.OwnerReferences[i].Kind, pod.OwnerReferences[i].Name
		last := strings.LastIndexByte(name, '-')
		suffix := name[last+1:]
		if last > 0 && (kind == "ReplicaSet" && suffix == pod.Labels["pod-template-hash"] ||
			kind == "Job" && (strings.Trim(suffix, "0123456789") == "" ||
				len(suffix) == 5 && strings.Trim(suffix, "bcdfghjklmnpqrstvwxz2456789") == "")) {
			name = name[:last]
		}
		return owner{pod.Namespace, kind, name}
	}
	return owner{}
}

// scales are those of an owner's pods, by resource. They never change once their view is in use.
type scales struct {
	each []scale
	seen int64 // the time of the last view that found a pod of the owner, in nanoseconds since 1970
}
type scale struct{ value, variance float64 }

// of returns the scale of a resource; 1 if nothing is known.
func (s *scales) of(r int) float64 {
	if s == nil {
		return 1
	}
	return s.each[r].value
}

// known returns how well the scale of a resource is known, from 0 to 1.
func (s *scales) known(r int) float64 {
	if s == nil {
		return 0
	}
	return 1 - s.each[r].variance/uncertain
}

// effect is a part of the change of a measurement: by how much it changes for a scale of 1.
type effect struct {
	*scale
	by float64
}

// learn sets the scales of a view, from those of the previous one and from the changes of the measurements since. It
// returns the number of pods in flight.
func (v *view) learn(before *view, pods []*v1.Pod, gone []run) (inFlight int) {
	v.scales = make(map[owner]*scales, len(before.scales))
	for of, s := range before.scales {
		if unseen := v.made - s.seen; unseen < othersAge || of.kind == "Job" && unseen < jobsAge {
			v.scales[of] = &scales{append([]scale(nil), s.each...), s.seen}
			for r := range s.each {
				v.scales[of].each[r].variance = math.Min(uncertain, s.each[r].variance+drift)
			}
		}
	}
	v.sawOwners = before.sawOwners
	if v.made-v.sawOwners >= seeEvery {
		v.sawOwners = v.made
	}
	effects := make([][]effect, len(v.nodes)*len(v.resources))
	for _, pod := range pods {
		if v.sawOwners == v.made {
			if s := v.scales[ownerOf(pod)]; s != nil {
				s.seen = v.made
			}
		}
		if v.find(pod.Spec.NodeName) < 0 {
			continue
		}
		of := run{node: pod.Spec.NodeName, start: StartOf(pod, v.window, v.made), end: Running}
		v.explain(effects, before, &of, pod)
		if v.lacks(&of) {
			inFlight++
		}
	}
	for i := range gone {
		v.explain(effects, before, &gone[i], nil)
	}
	for i, of := range effects {
		if number, r := i/len(v.resources), i%len(v.resources); len(of) > 0 {
			correct(of, v.measured[number][r].measured-before.measured[before.find(v.nodes[number].Name)][r].measured)
		}
	}
	return inFlight
}

// explain adds a run to the effects on its node's measurements. The pod is nil if it has ended.
func (v *view) explain(effects [][]effect, before *view, of *run, pod *v1.Pod) {
	number, earlier, s := v.findRun(of), before.find(of.node), (*scales)(nil)
	for r := 0; r < len(v.resources) && number >= 0 && earlier >= 0; r++ {
		from, to, window := &before.measured[earlier][r], &v.measured[number][r], v.resources[r].window
		share := Lacking(of.start, of.end, from.at, window) - Lacking(of.start, of.end, to.at, window)
		if from.at == notMeasured || to.at <= from.at || share == 0 {
			continue
		}
		if s == nil {
			if pod != nil {
				if waits(pod) {
					return
				}
				of.owner = ownerOf(pod)
			}
			if s = v.learned(of.owner); s == nil {
				return
			}
			s.seen = v.made
		}
		var expected use
		if pod != nil {
			expected = v.resources[r].estimator.use(pod, 1)
		} else {
			expected = of.uses[r]
		}
		effect := effect{&s.each[r], share * to.share(expected.plain)}
		if expected.plain == 0 {
			effect.scale, effect.by = &scale{value: 1}, share*to.share(expected.amount)
		}
		on, i := &effects[number*len(v.resources)+r], 0
		for i < len(*on) && (*on)[i].scale != effect.scale {
			i++
		}
		if i == len(*on) {
			*on = append(*on, effect)
		} else {
			(*on)[i].by += effect.by
		}
	}
}

// correct corrects the scales of the effects on a measurement by its change.
func correct(effects []effect, change float64) {
	variance := noise
	for _, of := range effects {
		change -= of.by * of.value
		variance += of.by * of.by * of.variance
	}
	limit := outlier * math.Sqrt(variance)
	change = math.Max(-limit, math.Min(limit, change))
	for _, of := range effects {
		gain := of.by * of.variance / variance
		of.value = math.Min(mostScale, math.Max(0, of.value+gain*change))
		of.variance -= gain * of.by * of.variance
	}
}

// learned returns scales that can be corrected; nil without an owner, or if there are too many.
func (v *view) learned(of owner) *scales {
	if v.scales[of] == nil && of != (owner{}) && len(v.scales)*len(v.resources) < mostScales {
		v.scales[of] = &scales{make([]scale, len(v.resources)), v.made}
		for r := range v.resources {
			v.scales[of].each[r] = scale{1, uncertain}
		}
	}
	return v.scales[of]
}
