// SPDX-License-Identifier: Apache-2.0

package records

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"sort"
	"strings"
	"time"
)

const (
	// madeAtOnce and sentAtOnce limit the answers that are made or sent in parallel, so that many or slow readers cost
	// little.
	madeAtOnce = 4
	sentAtOnce = 64
)

// Serve adds the records' pages in front of a handler. leads reports whether this scheduler is the leader.
func (r *Recorder) Serve(handler http.Handler, leads func() bool) http.Handler {
	if r == nil {
		return handler
	}
	making, sending := make(chan struct{}, madeAtOnce), make(chan struct{}, sentAtOnce)
	tooMany := &RequestError{http.StatusTooManyRequests, "too many ask at once", "ask again in a second"}
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		path := strings.TrimSuffix(request.URL.Path, "/")
		if path != PodsPath && !strings.HasPrefix(path, PodsPath+"/") && path != QueuePath && path != WhatIfPath && path != OpenAPIPath && !strings.HasPrefix(path, NodesPath+"/") {
			handler.ServeHTTP(w, request)
			return
		}
		select {
		case sending <- struct{}{}:
			defer func() { <-sending }()
		default:
			refuse(w, request, tooMany)
			return
		}
		content, err := r.respond(w, request, path, leads(), func() (func(), error) {
			select {
			case making <- struct{}{}:
				return func() { <-making }, nil
			default:
				return nil, tooMany
			}
		})
		if err != nil {
			refuse(w, request, err)
			return
		}
		_, _ = w.Write(content)
	})
}

// refuse sends an error.
func refuse(w http.ResponseWriter, request *http.Request, err error) {
	code := http.StatusInternalServerError
	if refused, ok := err.(*RequestError); ok {
		code = refused.Code
	}
	if code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	sendError(w, request, code, err.Error())
}

// respond returns the answer to a request. It calls take before it makes the answer, and the function that take returns
// afterwards.
func (r *Recorder) respond(w http.ResponseWriter, request *http.Request, path string, leader bool, take func() (func(), error)) ([]byte, error) {
	reads := request.Method == http.MethodGet || request.Method == http.MethodHead
	if !reads && (path != WhatIfPath || request.Method != http.MethodPost) {
		w.Header().Set("Allow", "GET, HEAD")
		if path == WhatIfPath {
			w.Header().Set("Allow", "GET, HEAD, POST")
		}
		return nil, &RequestError{http.StatusMethodNotAllowed, "records are only read", "GET " + path}
	}
	if path == WhatIfPath && !wantsForm(request) {
		if fromElsewhere(request) {
			return nil, &RequestError{http.StatusForbidden, "another site has sent this", "ask at " + path}
		}
		if !leader {
			return nil, &RequestError{http.StatusServiceUnavailable, "this scheduler stands by, and knows no queue and no assumed pods" + r.whoLeads(), "ask the leader"}
		}
		ask, err := r.asked(w, request)
		if err != nil {
			return nil, err
		}
		found, err := r.find(request.Context(), ask, request.URL.Query().Get("nodes") == "all")
		if err != nil {
			return nil, err
		}
		// Dry runs have their own limits instead of take.
		found.Answer = r.answer("WhatIf", leader)
		return encode(w.Header(), request, *found)
	}
	release, err := take()
	if err != nil {
		return nil, err
	}
	defer release()
	var answer interface{}
	switch {
	case path == WhatIfPath:
		// The form without an answer.
		answer = WhatIf{Answer: r.answer("WhatIf", leader)}
	case path == PodsPath:
		list := r.List()
		list.Answer = r.answer("PodList", leader)
		answer = list
	case path == OpenAPIPath:
		answer = openAPI()
	case path == QueuePath:
		queue, err := r.queue()
		if err != nil {
			return nil, err
		}
		queue.Answer = r.answer("Queue", leader)
		answer = queue
	case strings.HasPrefix(path, NodesPath+"/"):
		node := r.Node(path[len(NodesPath)+1:])
		node.Answer = r.answer("Node", leader)
		answer = node
	default:
		parts := strings.Split(path[len(PodsPath)+1:], "/")
		record, known := PodRecord{}, false
		if len(parts) == 2 {
			record, known = r.Get(parts[0], parts[1])
		}
		if !known {
			return nil, &RequestError{http.StatusNotFound, "no attempt to schedule this pod is recorded here", "GET " + PodsPath + " lists those that are"}
		}
		record.Answer = r.answer("Pod", leader)
		answer = record
	}
	return encode(w.Header(), request, answer)
}

// answer returns the common first fields of an answer.
func (r *Recorder) answer(kind string, leader bool) Answer {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return Answer{
		APIVersion: APIVersion, Kind: kind, Leader: leader, LeaderIdentity: r.leader,
		Version: r.Sources.Version, Configuration: r.Sources.Configuration,
	}
}

// SetConfiguration records the hash of the scheduler's configuration.
func (r *Recorder) SetConfiguration(configuration interface{}) {
	if r == nil {
		return
	}
	// Left empty if it cannot be encoded.
	if content, err := json.Marshal(configuration); err == nil {
		r.Sources.Configuration = fmt.Sprintf("%x", sha256.Sum256(content))[:12]
	}
}

// SetLeader records the holder of the lease.
func (r *Recorder) SetLeader(identity string) {
	if r != nil {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.leader = identity
	}
}

func (r *Recorder) whoLeads() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.leader == "" {
		return ""
	}
	return ": " + r.leader + " leads"
}

// List returns the pods that have records.
func (r *Recorder) List() PodList {
	list := PodList{Items: []PodSummary{}}
	for _, kept := range r.copy(func(*pod) bool { return true }) {
		list.Items = append(list.Items, r.summary(kept))
	}
	waits := func(item PodSummary) bool { return item.Result != Bound && item.Result != Gone }
	sort.SliceStable(list.Items, func(i, j int) bool { return waits(list.Items[i]) && !waits(list.Items[j]) })
	return list
}

// Get returns the records of a pod.
func (r *Recorder) Get(namespace, name string) (PodRecord, bool) {
	found := r.copy(func(p *pod) bool { return p.namespace == namespace && p.name == name })
	if len(found) == 0 {
		return PodRecord{}, false
	}
	record := PodRecord{PodSummary: r.summary(found[0])}
	if record.Result == Binding {
		record.Permit = r.permit(found[0])
	}
	for i := len(found[0].attempts) - 1; i >= 0; i-- {
		record.Attempts = append(record.Attempts, found[0].attempts[i].record())
	}
	return record, true
}

// copy returns a snapshot of the wanted pods.
func (r *Recorder) copy(wanted func(*pod) bool) []pod {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var pods []pod
	for element := r.order.Front(); element != nil; element = element.Next() {
		if p := element.Value.(*pod); wanted(p) {
			copied := *p
			copied.attempts = append([]*Attempt(nil), p.attempts...)
			pods = append(pods, copied)
		}
	}
	return pods
}

// summary describes the last attempt and the pod's state in the cluster since.
func (r *Recorder) summary(p pod) PodSummary {
	last := p.attempts[len(p.attempts)-1]
	summary := PodSummary{
		Namespace: p.namespace, Name: p.name, UID: string(p.uid), Time: last.began, Attempt: last.number,
		Result: last.result(), Summary: last.summary(),
	}
	if summary.Result == Bound || summary.Result == Binding {
		summary.Node = last.node
	}
	if summary.Result == Bound {
		return summary
	}
	seen, err := r.Sources.Pods.Pods(p.namespace).Get(p.name)
	switch {
	case err != nil || seen.UID != p.uid:
		summary.Result, summary.Node = Gone, ""
		summary.Summary = "It does not exist any more. Of its last attempt: " + summary.Summary
	case seen.Spec.NodeName != "":
		summary.Result, summary.Node, summary.Summary = Bound, seen.Spec.NodeName, bound(seen.Spec.NodeName)
	case seen.Status.NominatedNodeName != "":
		summary.NominatedNode = seen.Status.NominatedNodeName
		summary.Summary += fmt.Sprintf(" Pods of lower priority are evicted from node %s for it.", summary.NominatedNode)
	}
	return summary
}

func bound(node string) string { return fmt.Sprintf("It is bound to node %s.", node) }

func (a *Attempt) result() Result {
	switch {
	case a.bound:
		return Bound
	case a.unschedulable:
		return Unschedulable
	case a.failed:
		return Failed
	}
	return Binding
}

// summary describes the result of the attempt in one sentence.
func (a *Attempt) summary() string {
	var text string
	switch a.result() {
	case Bound:
		text = bound(a.node)
	case Binding:
		text = fmt.Sprintf("Node %s is chosen, and the pod waits for Permit plugins, or is being bound.", a.node)
	case Failed:
		text = a.message
		if a.node != "" {
			text = fmt.Sprintf("Node %s was chosen, and then: %s", a.node, a.message)
		}
		text = strings.TrimSuffix(text, ".") + "."
	default:
		var reasons []string
		for _, r := range a.ordered() {
			reasons = append(reasons, fmt.Sprintf("%d: %s", r.nodes, strings.Join(r.reasons, ", ")))
		}
		text = noneFits(a.nodes, a.evaluated, reasons)
	}
	return text
}

// noneFits explains in one sentence why no node fits.
func noneFits(nodes, evaluated int, reasons []string) string {
	if nodes == 0 {
		return "The cluster has no nodes."
	}
	of := counted(nodes, "node")
	if evaluated < nodes {
		of = fmt.Sprintf("the %d nodes that were looked at", evaluated)
	}
	return fmt.Sprintf("None of %s fits; %s.", of, strings.TrimSuffix(strings.Join(reasons, "; "), "."))
}

// ordered returns the rejections, those of most nodes first.
func (a *Attempt) ordered() []rejection {
	ordered := append([]rejection(nil), a.rejections...)
	sort.SliceStable(ordered, func(i, j int) bool { return ordered[i].nodes > ordered[j].nodes })
	return ordered
}

// Decision returns how the attempt rejected and scored nodes.
func (a *Attempt) Decision() Decision {
	decision := Decision{Nodes: a.nodes, Evaluated: a.evaluated, Feasible: a.feasible, Node: a.node, Ties: a.scores.ties}
	for _, r := range a.ordered() {
		decision.Rejections = append(decision.Rejections, RejectionRecord{Plugin: r.plugin, Reasons: r.reasons, Nodes: r.nodes, Sample: r.sample})
	}
	width := 2 * len(a.scores.plugins)
	for i, node := range a.scores.nodes {
		scores := NodeScores{Node: node.name, Total: node.total, Extenders: node.total}
		for j, plugin := range a.scores.plugins {
			raw, weighted := a.scores.values[i*width+2*j], a.scores.values[i*width+2*j+1]
			scores.Extenders -= weighted
			scores.Plugins = append(scores.Plugins, PluginScore{
				Name: plugin.Name, Raw: raw, Normalized: weighted / plugin.Weight, Weight: plugin.Weight, Weighted: weighted,
			})
		}
		if width == 0 {
			scores.Extenders = 0
		}
		decision.Scores = append(decision.Scores, scores)
	}
	a.trail.decide(&decision)
	return decision
}

func (a *Attempt) record() AttemptRecord {
	seconds := func(from, to time.Time) float64 {
		if from.IsZero() || to.Before(from) {
			return 0
		}
		return to.Sub(from).Seconds()
	}
	record := AttemptRecord{
		Time: a.began, Attempt: a.number, Profile: a.profile,
		QueuedSeconds: seconds(a.queued, a.began), SinceFirstSeconds: seconds(a.first, a.began),
		CycleSeconds: a.took.Seconds(), ToEndSeconds: seconds(a.began, a.ended),
		Result: a.result(), Summary: a.summary(), Error: a.message,
		WokenBy: a.wokenBy, Steps: a.trail.records(), Decision: a.Decision(),
	}
	return record
}
