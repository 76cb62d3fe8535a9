// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	kjson "sigs.k8s.io/json"
)

// maxNodes limits the nodes of one request to several times what Kubernetes supports in a cluster. A node takes a few
// bytes in a request and a thousand in memory, so without a limit a small request could exhaust the memory.
const maxNodes = 50_000

// refused is the error of a request that is not answered, with an HTTP status.
type refused struct {
	error
	status int
}

func malformedf(format string, arguments ...any) error {
	return refused{fmt.Errorf(format, arguments...), http.StatusBadRequest}
}

// decodeStrictly reads one JSON value and nothing after it. It refuses unknown and duplicate fields, except in pods and
// nodes, which may have fields of a newer release of Kubernetes.
func decodeStrictly(content []byte, into any) error {
	unknown, err := kjson.UnmarshalStrict(content, into)
	if err == nil {
		err = utilerrors.NewAggregate(unknown)
	}
	if err != nil {
		return refused{err, http.StatusBadRequest}
	}
	return nil
}

// lenientPod is a pod that may have unknown fields.
type lenientPod struct{ *corev1.Pod }

// UnmarshalJSON implements json.Unmarshaler.
func (p *lenientPod) UnmarshalJSON(content []byte) error {
	return kjson.UnmarshalCaseSensitivePreserveInts(content, &p.Pod)
}

// check checks that the pod to schedule can be identified.
func (p *lenientPod) check() error {
	if p.Pod == nil || p.Name == "" || p.Namespace == "" || p.UID == "" {
		return malformedf("no Pod is given, or its name, its namespace or its UID is missing")
	}
	return nil
}

// nodeList is a NodeList with the nodes as raw JSON.
type nodeList struct {
	metav1.TypeMeta
	metav1.ListMeta `json:"metadata"`
	Items           []json.RawMessage `json:"items"`
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
func decodeQuestion(body []byte) (*question, error) {
	type ExtenderArgs struct { // as errors name it
		Pod       lenientPod
		Nodes     *nodeList
		NodeNames *[]string
	}
	var args ExtenderArgs
	if err := decodeStrictly(body, &args); err != nil {
		return nil, err
	}
	if err := args.Pod.check(); err != nil {
		return nil, err
	}
	if (args.Nodes == nil) == (args.NodeNames == nil) {
		return nil, malformedf("one of Nodes and NodeNames must be given, and not both")
	}
	q := &question{pod: args.Pod.Pod}
	if args.NodeNames != nil {
		q.names = *args.NodeNames
		return q, checkNodeNames(q.names)
	}
	q.sent, q.nodes, q.names = args.Nodes.Items, []*corev1.Node{}, make([]string, 0, len(args.Nodes.Items))
	if err := checkCount(len(q.sent)); err != nil {
		return nil, err
	}
	for i, item := range q.sent {
		node := &corev1.Node{}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(item, node); err != nil {
			return nil, malformedf("Nodes.items[%d]: %w", i, err)
		}
		q.nodes, q.names = append(q.nodes, node), append(q.names, node.Name)
	}
	return q, checkNodeNames(q.names)
}

// preemption is a request to preempt: would the pod fit on each node without its victims?
type preemption struct {
	pod     *corev1.Pod
	names   []string
	victims map[string]*extenderv1.MetaVictims
}

// decodePreemption reads an ExtenderPreemptionArgs. It only uses the UIDs of whole victims, because the cache has the
// rest.
func decodePreemption(body []byte) (*preemption, error) {
	type ExtenderPreemptionArgs struct {
		Pod               lenientPod
		NodeNameToVictims map[string]*struct {
			Pods             []lenientPod
			NumPDBViolations int64
		}
		NodeNameToMetaVictims map[string]*extenderv1.MetaVictims
	}
	var args ExtenderPreemptionArgs
	if err := decodeStrictly(body, &args); err != nil {
		return nil, err
	}
	if err := args.Pod.check(); err != nil {
		return nil, err
	}
	p := &preemption{pod: args.Pod.Pod, victims: args.NodeNameToMetaVictims}
	if (args.NodeNameToVictims == nil) == (p.victims == nil) {
		return nil, malformedf("one of NodeNameToVictims and NodeNameToMetaVictims must be given, and not both")
	}
	if p.victims == nil {
		p.victims = map[string]*extenderv1.MetaVictims{}
	}
	for node, whole := range args.NodeNameToVictims {
		p.victims[node] = &extenderv1.MetaVictims{}
		if whole == nil {
			continue
		}
		p.victims[node].NumPDBViolations = whole.NumPDBViolations
		for _, pod := range whole.Pods {
			meta := &extenderv1.MetaPod{}
			if pod.Pod != nil {
				meta.UID = string(pod.UID)
			}
			p.victims[node].Pods = append(p.victims[node].Pods, meta)
		}
	}
	for node, victims := range p.victims {
		if victims == nil || len(victims.Pods) == 0 || slices.ContainsFunc(victims.Pods, hasNoUID) {
			return nil, malformedf("no victim is given for node %q, or it has no UID", node)
		}
	}
	p.names = slices.Sorted(maps.Keys(p.victims))
	return p, checkNodeNames(p.names)
}

func hasNoUID(pod *extenderv1.MetaPod) bool { return pod == nil || pod.UID == "" }

// decodeBinding reads an ExtenderBindingArgs, in which every field is required.
func decodeBinding(body []byte) (*extenderv1.ExtenderBindingArgs, error) {
	args := &extenderv1.ExtenderBindingArgs{}
	if err := decodeStrictly(body, args); err != nil {
		return nil, err
	}
	if args.PodName == "" || args.PodNamespace == "" || args.PodUID == "" || args.Node == "" {
		return nil, malformedf("PodName, PodNamespace, PodUID or Node is missing")
	}
	return args, nil
}

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
	sorted := slices.Sorted(slices.Values(names))
	for i, name := range sorted {
		if name == "" {
			return malformedf("a node has no name")
		}
		if i > 0 && sorted[i-1] == name {
			return malformedf("node %q occurs twice", name)
		}
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

// answer sorts the nodes of a request into those that pass, fail, and fail for good.
func (q *question) answer(verdicts map[string]*framework.Status) *filterResult {
	result := &filterResult{FailedNodes: extenderv1.FailedNodesMap{}, FailedAndUnresolvableNodes: extenderv1.FailedNodesMap{}}
	names, sent := []string{}, []json.RawMessage{}
	for i, name := range q.names {
		switch status := verdicts[name]; {
		case status.IsSuccess() && q.nodes != nil:
			sent = append(sent, q.sent[i])
		case status.IsSuccess():
			names = append(names, name)
		case status.Code() == framework.UnschedulableAndUnresolvable:
			result.FailedAndUnresolvableNodes[name] = status.Message()
		default:
			result.FailedNodes[name] = status.Message()
		}
	}
	if q.nodes != nil {
		result.Nodes = &nodeList{Items: sent}
	} else {
		result.NodeNames = &names
	}
	return result
}
