// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"encoding/json"
	"hash/fnv"
	"net/http"
	"net/http/httptest"
	"testing"

	v1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// extenderAddress is the placeholder, in scenarios and traces, for the address of the extenders' server. The next
// part of the URL is the extender's name.
const extenderAddress = "http://extenders.test"

// startExtenders starts a server whose answers only depend on the names of extender, pod and node. An extender named
// "unsteady" fails for some pods.
func startExtenders(tb testing.TB) *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{extender}/filter", func(w http.ResponseWriter, r *http.Request) {
		var args extenderv1.ExtenderArgs
		if !read(tb, w, r, &args, func() string { return args.Pod.Name }) {
			return
		}
		result := extenderv1.ExtenderFilterResult{
			FailedNodes: extenderv1.FailedNodesMap{}, FailedAndUnresolvableNodes: extenderv1.FailedNodesMap{},
		}
		passes := func(node string) bool {
			switch number(r.PathValue("extender"), args.Pod.Name, node) % 9 {
			case 0:
				result.FailedNodes[node] = "the extender does not want it"
			case 1:
				result.FailedAndUnresolvableNodes[node] = "the extender never wants it"
			default:
				return true
			}
			return false
		}
		if args.NodeNames != nil {
			names := []string{}
			for _, name := range *args.NodeNames {
				if passes(name) {
					names = append(names, name)
				}
			}
			result.NodeNames = &names
		} else {
			result.Nodes = &v1.NodeList{Items: []v1.Node{}}
			for _, node := range args.Nodes.Items {
				if passes(node.Name) {
					result.Nodes.Items = append(result.Nodes.Items, node)
				}
			}
		}
		answer(tb, w, result)
	})
	mux.HandleFunc("POST /{extender}/prioritize", func(w http.ResponseWriter, r *http.Request) {
		var args extenderv1.ExtenderArgs
		if !read(tb, w, r, &args, func() string { return args.Pod.Name }) {
			return
		}
		scores := extenderv1.HostPriorityList{}
		give := func(node string) {
			score := int64(number(r.PathValue("extender"), args.Pod.Name, node)) % (extenderv1.MaxExtenderPriority + 1)
			scores = append(scores, extenderv1.HostPriority{Host: node, Score: score})
		}
		if args.NodeNames != nil {
			for _, name := range *args.NodeNames {
				give(name)
			}
		} else {
			for _, node := range args.Nodes.Items {
				give(node.Name)
			}
		}
		answer(tb, w, scores)
	})
	mux.HandleFunc("POST /{extender}/preempt", func(w http.ResponseWriter, r *http.Request) {
		var args extenderv1.ExtenderPreemptionArgs
		if !read(tb, w, r, &args, func() string { return args.Pod.Name }) {
			return
		}
		result := extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{}}
		for node, victims := range args.NodeNameToMetaVictims {
			result.NodeNameToMetaVictims[node] = victims
		}
		for node, victims := range args.NodeNameToVictims {
			meta := &extenderv1.MetaVictims{NumPDBViolations: victims.NumPDBViolations}
			for _, pod := range victims.Pods {
				meta.Pods = append(meta.Pods, &extenderv1.MetaPod{UID: string(pod.UID)})
			}
			result.NodeNameToMetaVictims[node] = meta
		}
		for node := range result.NodeNameToMetaVictims {
			if number(r.PathValue("extender"), args.Pod.Name, node)%4 == 0 {
				delete(result.NodeNameToMetaVictims, node)
			}
		}
		answer(tb, w, result)
	})
	return httptest.NewServer(mux)
}

// read decodes a request, and reports whether the extender answers it.
func read(tb testing.TB, w http.ResponseWriter, r *http.Request, args interface{}, pod func() string) bool {
	if err := json.NewDecoder(r.Body).Decode(args); err != nil {
		tb.Errorf("the extender reads a request: %v", err)
		w.WriteHeader(http.StatusBadRequest)
		return false
	}
	if r.PathValue("extender") == "unsteady" && number(r.URL.Path, pod())%5 == 0 {
		w.WriteHeader(http.StatusInternalServerError)
		return false
	}
	return true
}

func answer(tb testing.TB, w http.ResponseWriter, result interface{}) {
	if err := json.NewEncoder(w).Encode(result); err != nil {
		tb.Errorf("the extender answers: %v", err)
	}
}

// number returns a hash of names.
func number(names ...string) uint32 {
	hash := fnv.New32a()
	for _, name := range names {
		hash.Write([]byte(name))
		hash.Write([]byte{0})
	}
	return hash.Sum32() >> 3
}
