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
	// maxNodes limits the nodes of one request to several times what Kubernetes supports in a cluster. A node takes a
	// few bytes in a request and a thousand in memory, so without a limit a small request could exhaust the memory.
	maxNodes = 50_000
	// maxObjectBytes limits a pod or a node. Nothing larger can be stored, because etcd's limit is 1.5 MiB.
	maxObjectBytes = 3 << 20
)

// malformed is the error of an invalid request.
type malformed struct{ error }

func malformedf(format string, arguments ...any) error {
	return malformed{fmt.Errorf(format, arguments...)}
}

// question is a request to filter or to prioritize.
type question struct {
	pod *corev1.Pod
	// names are the distinct names of the nodes, in the order of the request.
	names []string
	// nodes are the same nodes if whole nodes were sent, and nil if names were.
	nodes []*corev1.Node
	// sent are the same nodes as raw JSON. They are returned unchanged, so that no field of a newer scheduler is lost.
	sent []json.RawMessage
}

// decodeQuestion reads an ExtenderArgs.
//
// It refuses unknown and duplicate fields, except in pods and nodes, which may have fields of a newer release of
// Kubernetes.
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

// preemption is a request to preempt: would the pod fit on each candidate without its victims?
type preemption struct {
	pod        *corev1.Pod
	candidates []candidate
}

// candidate is a node with at least one victim.
type candidate struct {
	node       string
	victims    []types.UID
	violations int64
}

// decodePreemption reads an ExtenderPreemptionArgs. The candidates are sorted by name. Of whole victims it reads only
// the UIDs, because the cache has the rest.
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

// decodeCandidate reads a Victims or a MetaVictims, which have the UID of a pod in different places.
func decodeCandidate(node string, victims json.RawMessage, uid func(json.RawMessage) (types.UID, error)) (candidate, error) {
	var decoded struct {
		Pods             []json.RawMessage
		NumPDBViolations int64
	}
	if err := decodeStrictly(victims, &decoded); err != nil {
		return candidate{}, malformedf("the victims on node %q: %w", node, err)
	}
	if len(decoded.Pods) == 0 {
		return candidate{}, malformedf("no victim is given for node %q", node)
	}
	c := candidate{node: node, violations: decoded.NumPDBViolations}
	seen := sets.NewString()
	for i, pod := range decoded.Pods {
		uid, err := uid(pod)
		if err == nil && uid == "" {
			err = errors.New("it has no UID")
		} else if err == nil && seen.Has(string(uid)) {
			err = fmt.Errorf("the UID %q occurs twice", uid)
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

// decodeBinding reads an ExtenderBindingArgs, in which every field is required.
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

// decodePod reads the pod to schedule. Its name, namespace and UID are required.
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

// decodeObject reads a pod or a node. It ignores unknown fields.
func decodeObject(content json.RawMessage, into any) error {
	if len(content) > maxObjectBytes {
		return fmt.Errorf("it has %d bytes, more than the %d that the API server can store", len(content), maxObjectBytes)
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(content, into)
}

// decodeStrictly reads one JSON value and nothing after it. It refuses unknown and duplicate fields.
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
		return malformedf("the request has %d nodes, more than the %d allowed", nodes, maxNodes)
	}
	return nil
}

// checkNodeNames checks that no name is empty or occurs twice. The API server has checked the rest.
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
			return malformedf("node %q occurs twice", name)
		}
		seen[name] = struct{}{}
	}
	return nil
}

// filterResult is an ExtenderFilterResult with the nodes as raw JSON.
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
