// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"math"

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
)

// learning is what the change of the measurements teaches.
type learning struct {
	before, now *measurements
	scales      *ownerScales
	effects     [][]effect // on the measurements, by node and resource
}

// effect is a part of the change of a measurement: by how much it changes for a scale of 1.
type effect struct {
	*scale
	by float64
}

// learn returns the scales after a change of the measurements, and the number of pods in flight.
func learn(before, now *measurements, old *ownerScales, pods []*v1.Pod, ended []run) (scales *ownerScales, inFlight int) {
	l := learning{before, now, old.aged(now.made), make([][]effect, len(now.nodes)*len(now.resources))}
	seesAll := now.made-old.allSeen >= seeEvery
	if seesAll {
		l.scales.allSeen = now.made
	}
	for _, pod := range pods {
		if seesAll {
			if s := l.scales.byOwner[ownerOf(pod)]; s != nil {
				s.seen = now.made
			}
		}
		node := now.find(pod.Spec.NodeName)
		if node < 0 {
			continue
		}
		of := run{node: pod.Spec.NodeName, start: StartOf(pod, now.window, now.made), end: Running}
		l.explain(&of, pod)
		if now.lacks(node, of.start) {
			inFlight++
		}
	}
	for i := range ended {
		l.explain(&ended[i], nil)
	}
	for i, of := range l.effects {
		if node, r := i/len(now.resources), i%len(now.resources); len(of) > 0 {
			correct(of, now.measured[node][r].measured-before.measured[before.find(now.nodes[node].Name)][r].measured)
		}
	}
	return l.scales, inFlight
}

// explain adds a run to the effects on its node's measurements. The pod is nil if it has ended.
func (l *learning) explain(of *run, pod *v1.Pod) {
	node, earlier, s := l.now.findAt(of.node, of.start), l.before.find(of.node), (*scales)(nil)
	for r := 0; r < len(l.now.resources) && node >= 0 && earlier >= 0; r++ {
		resource, from, to := &l.now.resources[r], &l.before.measured[earlier][r], &l.now.measured[node][r]
		share := Lacking(of.start, of.end, from.at, resource.window) - Lacking(of.start, of.end, to.at, resource.window)
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
			if s = l.scales.see(of.owner, len(l.now.resources), l.now.made); s == nil {
				return
			}
		}
		var expected use
		if pod != nil {
			expected = resource.estimator.use(pod, 1)
		} else {
			expected = of.uses[r]
		}
		effect := effect{&s.each[r], share * to.share(expected.plain)}
		if expected.plain == 0 {
			effect.scale, effect.by = &scale{value: 1}, share*to.share(expected.amount)
		}
		l.add(effect, node*len(l.now.resources)+r)
	}
}

// add adds an effect on a measurement to those of the same scale.
func (l *learning) add(of effect, measurement int) {
	effects := l.effects[measurement]
	for i := range effects {
		if effects[i].scale == of.scale {
			effects[i].by += of.by
			return
		}
	}
	l.effects[measurement] = append(effects, of)
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
