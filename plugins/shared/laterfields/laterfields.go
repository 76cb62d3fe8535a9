// SPDX-License-Identifier: Apache-2.0

// Package laterfields knows the fields of pods that Kubernetes got after 1.23 and that change where a pod may run or what
// it uses. The API types of 1.23 lack them, and their decoders skip them without a word.
//
// What can be said with the types of 1.23 is said with them, in the pod that was decoded: the requests of sidecars, of
// resized pods and of pod-level resources. The rest of what was found lies beside the pod, by its UID.
package laterfields

import (
	"reflect"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/json"
)

// Found is what a pod has of later fields, as far as its types cannot hold it. It is immutable.
type Found struct {
	// Gates are the names of the pod's scheduling gates: it is not tried until the last is gone.
	Gates []string
	// Refusal is a constant sentence that names a field which this scheduler does not know, and the first release that
	// does; or empty.
	Refusal string
	// Spread has what the pod's topologySpreadConstraints with the same index have besides; or it is nil.
	Spread []Spread
}

// Spread is what a topology spread constraint has of later fields. The zero value means what 1.23 does.
type Spread struct {
	// MinDomains is the number of domains below which the least number of pods in a domain counts as 0; 0 for none.
	MinDomains int32
	// NodeAffinityPolicy and NodeTaintsPolicy are Honor or Ignore, or empty if the pod does not say.
	NodeAffinityPolicy, NodeTaintsPolicy string
}

// FromProtobuf reads the later fields of a pod from the message of which it was decoded, without the envelope
// of Kubernetes, and changes the pod's requests to what the pod uses. It returns nil if nothing lies beside the pod.
// A pod that was decoded and cannot be read here is refused: nobody knows what it has.
func FromProtobuf(message []byte, pod *v1.Pod) *Found {
	any, err := read(message, podFields, reflect.Value{})
	if !any && err == nil && !hasLaterToleration(nil, pod) {
		return nil
	}
	fields := &later{}
	if err == nil {
		_, err = read(message, podFields, reflect.ValueOf(fields).Elem())
	}
	return found(fields, err, pod)
}

// FromJSON is FromProtobuf for a pod's JSON.
func FromJSON(data []byte, pod *v1.Pod) *Found {
	if !MayBeIn(data, pod) {
		return nil
	}
	fields := &later{}
	err := json.UnmarshalCaseSensitivePreserveInts(data, fields)
	return found(fields, err, pod)
}

// found returns what lies beside the pod, and says the rest with the types of 1.23. Bound pods have no gates and no
// refusal.
func found(fields *later, err error, pod *v1.Pod) *Found {
	found := &Found{}
	bound := pod.Spec.NodeName != ""
	switch {
	case err != nil && !bound:
		found.Refusal = "the pod has a field that this scheduler cannot read: it does not place this pod"
	case err == nil && bound:
		countBound(pod, fields)
		found.Spread = spreadOf(pod, fields)
	case err == nil:
		countSidecars(pod, fields)
		found.Spread = spreadOf(pod, fields)
		found.Refusal = refusal(fields, pod)
		for _, gate := range fields.Spec.Gates {
			found.Gates = append(found.Gates, gate.Name)
		}
	}
	if found.Gates == nil && found.Spread == nil && found.Refusal == "" {
		return nil
	}
	return found
}

// spreadOf returns what the pod's constraints have besides. It merges matchLabelKeys into their selectors, as API
// servers do from 1.34 on; a constraint without a selector matches no pods, and still does.
func spreadOf(pod *v1.Pod, fields *later) []Spread {
	var spread []Spread
	for i, f := range fields.Spec.Spread {
		if i >= len(pod.Spec.TopologySpreadConstraints) {
			break
		}
		selector := pod.Spec.TopologySpreadConstraints[i].LabelSelector
		for _, key := range f.MatchLabelKeys {
			if value, ok := pod.Labels[key]; ok && selector != nil {
				selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
					Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{value},
				})
			}
		}
		if s := (Spread{f.MinDomains, f.NodeAffinityPolicy, f.NodeTaintsPolicy}); s != (Spread{}) {
			if spread == nil {
				spread = make([]Spread, len(pod.Spec.TopologySpreadConstraints))
			}
			spread[i] = s
		}
	}
	return spread
}

// Store has what was found, by the UID of the pod. Its zero value is empty.
type Store struct{ found sync.Map }

// Set keeps what was found of a pod, in place of what was found before; nil for nothing.
func (s *Store) Set(uid types.UID, found *Found) {
	if found == nil {
		s.Delete(uid)
		return
	}
	s.found.Store(uid, found)
}

// Of returns what was found of a pod, or nil.
func (s *Store) Of(uid types.UID) *Found {
	found, _ := s.found.Load(uid)
	f, _ := found.(*Found)
	return f
}

// Delete forgets a pod.
func (s *Store) Delete(uid types.UID) { s.found.Delete(uid) }

// Pods is the store of this process's pods.
var Pods Store
