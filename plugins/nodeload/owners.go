// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"math"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

const (
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

// scales are those of an owner's pods, by resource.
type scales struct {
	each []scale
	seen int64 // the time of the last measurements at which the owner had a pod, in nanoseconds since 1970
}
type scale struct{ value, variance float64 }

// of returns the scale of a resource; 1 if nothing is known.
func (s *scales) of(r int) float64 {
	if s == nil {
		return 1
	}
	return s.each[r].value
}

// certainty returns how well the scale of a resource is known, from 0 to 1.
func (s *scales) certainty(r int) float64 {
	if s == nil {
		return 0
	}
	return 1 - s.each[r].variance/uncertain
}

// ownerScales are the scales of all owners. They never change once their view is in use.
type ownerScales struct {
	byOwner map[owner]*scales
	// allSeen is the time at which the owners of all pods were looked for.
	allSeen int64
}

// aged returns a copy for a later time: less certain, and without the owners that had no pod for long.
func (o *ownerScales) aged(now int64) *ownerScales {
	aged := &ownerScales{make(map[owner]*scales, len(o.byOwner)), o.allSeen}
	for of, s := range o.byOwner {
		if unseen := now - s.seen; unseen < othersAge || of.kind == "Job" && unseen < jobsAge {
			aged.byOwner[of] = &scales{append([]scale(nil), s.each...), s.seen}
			for r := range s.each {
				aged.byOwner[of].each[r].variance = math.Min(uncertain, s.each[r].variance+drift)
			}
		}
	}
	return aged
}

// see makes an owner's scales for some resources if there are none, and returns them; nil without an owner, or if there
// are too many.
func (o *ownerScales) see(of owner, resources int, now int64) *scales {
	s := o.byOwner[of]
	if s == nil {
		if of == (owner{}) || len(o.byOwner)*resources >= mostScales {
			return nil
		}
		s = &scales{each: make([]scale, resources)}
		for r := range s.each {
			s.each[r] = scale{1, uncertain}
		}
		o.byOwner[of] = s
	}
	s.seen = now
	return s
}
