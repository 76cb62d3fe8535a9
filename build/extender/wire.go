// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	kjson "sigs.k8s.io/json"
)

const (
	// maxNodes is how many nodes one request may be about: several times as many as Kubernetes supports in a cluster. A
	// node takes a few bytes in a request and a thousand in memory, so without it a small request could take all of the
	// memory.
	maxNodes = 50_000
	// maxObjectBytes is how big a pod or a node may be: nothing bigger can be stored, since etcd takes 1.5 MiB.
	maxObjectBytes = 3 << 20
)

// malformed is the error of a request that cannot be understood, or that asks for something that cannot be.
type malformed struct{ error }

func malformedf(format string, arguments ...any) error {
	return malformed{fmt.Errorf(format, arguments...)}
}

// question is what a scheduler asks of filter and of prioritize.
type question struct {
	pod *corev1.Pod
	// names are the names of the nodes, each once, in the order in which they were sent.
	names []string
	// nodes are the same nodes if they were sent whole, and nil if only their names were.
	nodes []*corev1.Node
	// sent are the same nodes just as they came. They go back like that: no field gets lost that a newer scheduler
	// knows.
	sent []json.RawMessage
}

// decodeQuestion reads an ExtenderArgs.
//
// What it is made of must be known and there once: a question that is not understood as a whole is not answered. Pods
// and nodes in it may have fields that this release of Kubernetes does not know.
func decodeQuestion(body []byte) (*question, error) {
	var args struct {
		Pod, Nodes json.RawMessage
		NodeNames  *[]string
	}
	if err := decodeStrictly(body, &args); err != nil {
		return nil, err
	}
	pod, err := decodePod(args.Pod)
	if err != nil {
		return nil, err
	}
	q := &question{pod: pod}
	switch whole := !isNull(args.Nodes); {
	case whole && args.NodeNames != nil:
		return nil, malformedf("both Nodes and NodeNames are given")
	case whole:
		err = q.decodeNodes(args.Nodes)
	case args.NodeNames != nil:
		q.names = *args.NodeNames
	default:
		return nil, malformedf("neither Nodes nor NodeNames is given")
	}
	if err != nil {
		return nil, err
	}
	return q, checkNodeNames(q.names)
}

func (q *question) decodeNodes(list json.RawMessage) error {
	var nodes struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(list, &nodes); err != nil {
		return malformedf("Nodes: %w", err)
	}
	if err := checkCount(len(nodes.Items)); err != nil {
		return err
	}
	q.sent = nodes.Items
	q.nodes = make([]*corev1.Node, len(nodes.Items))
	q.names = make([]string, len(nodes.Items))
	for i, item := range nodes.Items {
		node := &corev1.Node{}
		if err := decodeObject(item, node); err != nil {
			return malformedf("Nodes.items[%d]: %w", i, err)
		}
		q.nodes[i], q.names[i] = node, node.Name
	}
	return nil
}

// preemption is what a scheduler asks of preempt: whether the pod would get onto each of some nodes without some pods
// there.
type preemption struct {
	pod        *corev1.Pod
	candidates []candidate
}

// candidate is a node with the pods that the scheduler would remove from it, at least one.
type candidate struct {
	node       string
	victims    []types.UID
	violations int64
}

// decodePreemption reads an ExtenderPreemptionArgs. The candidates are in the order of their names. Of victims that
// were sent whole, only their UIDs are looked at: the rest is known.
func decodePreemption(body []byte) (*preemption, error) {
	var args struct {
		Pod                   json.RawMessage
		NodeNameToVictims     map[string]json.RawMessage
		NodeNameToMetaVictims map[string]json.RawMessage
	}
	if err := decodeStrictly(body, &args); err != nil {
		return nil, err
	}
	pod, err := decodePod(args.Pod)
	if err != nil {
		return nil, err
	}
	candidates, uid := args.NodeNameToMetaVictims, metaVictimUID
	switch {
	case args.NodeNameToVictims != nil && args.NodeNameToMetaVictims != nil:
		return nil, malformedf("both NodeNameToVictims and NodeNameToMetaVictims are given")
	case args.NodeNameToVictims != nil:
		candidates, uid = args.NodeNameToVictims, victimUID
	case candidates == nil:
		return nil, malformedf("neither NodeNameToVictims nor NodeNameToMetaVictims is given")
	}
	names := slices.Sorted(maps.Keys(candidates))
	if err := checkNodeNames(names); err != nil {
		return nil, err
	}
	p := &preemption{pod: pod}
	for _, name := range names {
		candidate, err := decodeCandidate(name, candidates[name], uid)
		if err != nil {
			return nil, err
		}
		p.candidates = append(p.candidates, candidate)
	}
	return p, nil
}

// decodeCandidate reads a Victims or a MetaVictims, which differ in where a pod has its UID.
func decodeCandidate(node string, victims json.RawMessage, uid func(json.RawMessage) (types.UID, error)) (candidate, error) {
	var decoded struct {
		Pods             []json.RawMessage
		NumPDBViolations int64
	}
	if err := decodeStrictly(victims, &decoded); err != nil {
		return candidate{}, malformedf("the victims on node %q: %w", node, err)
	}
	if len(decoded.Pods) == 0 {
		return candidate{}, malformedf("there is no victim on node %q", node)
	}
	c := candidate{node: node, violations: decoded.NumPDBViolations}
	seen := sets.NewString()
	for i, pod := range decoded.Pods {
		uid, err := uid(pod)
		if err == nil && uid == "" {
			err = errors.New("it has no UID")
		} else if err == nil && seen.Has(string(uid)) {
			err = fmt.Errorf("the UID %q is there twice", uid)
		}
		if err != nil {
			return candidate{}, malformedf("victim %d on node %q: %w", i, node, err)
		}
		seen.Insert(string(uid))
		c.victims = append(c.victims, uid)
	}
	return c, nil
}

func victimUID(pod json.RawMessage) (types.UID, error) {
	var decoded struct {
		Metadata struct {
			UID types.UID `json:"uid"`
		} `json:"metadata"`
	}
	err := kjson.UnmarshalCaseSensitivePreserveInts(pod, &decoded)
	return decoded.Metadata.UID, err
}

func metaVictimUID(pod json.RawMessage) (types.UID, error) {
	var decoded struct{ UID types.UID }
	err := decodeStrictly(pod, &decoded)
	return decoded.UID, err
}

// decodeBinding reads an ExtenderBindingArgs, of which nothing may be missing.
func decodeBinding(body []byte) (*extenderv1.ExtenderBindingArgs, error) {
	args := &extenderv1.ExtenderBindingArgs{}
	if err := decodeStrictly(body, args); err != nil {
		return nil, err
	}
	for _, field := range []struct{ name, value string }{
		{"PodName", args.PodName}, {"PodNamespace", args.PodNamespace}, {"PodUID", string(args.PodUID)}, {"Node", args.Node},
	} {
		if field.value == "" {
			return nil, malformedf("%s is missing", field.name)
		}
	}
	return args, nil
}

// decodePod reads the pod to be scheduled, which has a name, a namespace and a UID as every pod in a cluster has.
func decodePod(content json.RawMessage) (*corev1.Pod, error) {
	if isNull(content) {
		return nil, malformedf("no Pod is given")
	}
	pod := &corev1.Pod{}
	if err := decodeObject(content, pod); err != nil {
		return nil, malformedf("Pod: %w", err)
	}
	if pod.Name == "" || pod.Namespace == "" || pod.UID == "" {
		return nil, malformedf("Pod: its name, its namespace or its UID is missing")
	}
	return pod, nil
}

// decodeObject reads a pod or a node. Fields that it does not know are passed over.
func decodeObject(content json.RawMessage, into any) error {
	if len(content) > maxObjectBytes {
		return fmt.Errorf("it has %d bytes, more than the %d that can be stored of anything", len(content), maxObjectBytes)
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(content, into)
}

// decodeStrictly reads one JSON value and nothing after it. It refuses fields that it does not know, and keys that are
// there twice.
func decodeStrictly(content []byte, into any) error {
	unknown, err := kjson.UnmarshalStrict(content, into)
	if err == nil {
		err = utilerrors.NewAggregate(unknown)
	}
	if err != nil {
		return malformed{err}
	}
	return nil
}

func isNull(content json.RawMessage) bool { return len(content) == 0 || string(content) == "null" }

func checkCount(nodes int) error {
	if nodes > maxNodes {
		return malformedf("there are %d nodes; no more than %d are looked at in one request", nodes, maxNodes)
	}
	return nil
}

// checkNodeNames checks that each name could be a node's and is there once. What else a name may be made of is not for
// an extender to say.
func checkNodeNames(names []string) error {
	if err := checkCount(len(names)); err != nil {
		return err
	}
	seen := make(map[string]struct{}, len(names))
	for i, name := range names {
		if name == "" {
			return malformedf("node %d has no name", i)
		}
		if _, twice := seen[name]; twice {
			return malformedf("node %q is there twice", name)
		}
		seen[name] = struct{}{}
	}
	return nil
}

// filterResult is an ExtenderFilterResult whose nodes are just as they came.
type filterResult struct {
	Nodes                      *nodeList
	NodeNames                  *[]string
	FailedNodes                extenderv1.FailedNodesMap
	FailedAndUnresolvableNodes extenderv1.FailedNodesMap
	Error                      string
}

// nodeList is a NodeList.
type nodeList struct {
	Metadata struct{}          `json:"metadata"`
	Items    []json.RawMessage `json:"items"`
}
