// SPDX-License-Identifier: Apache-2.0

package records

import (
	_ "embed" // for the schema
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/answers"
)

const (
	// encodedAtOnce and sentAtOnce limit concurrent answers, so that many or slow readers cost little.
	encodedAtOnce = 4
	sentAtOnce    = 64
)

// schema describes all answers, in OpenAPI 2. TestOpenAPI generates it from api.go.
//
//go:embed openapi.json
var schema string

// server answers requests for the records.
type server struct {
	*Recorder
	leads             func() bool
	encoding, sending chan struct{}
}

// Serve returns a handler that serves the records, and passes all other requests to others. leads reports whether this
// scheduler is the leader.
func (r *Recorder) Serve(others http.Handler, leads func() bool) http.Handler {
	if r == nil {
		return others
	}
	s := &server{r, leads, make(chan struct{}, encodedAtOnce), make(chan struct{}, sentAtOnce)}
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		path := strings.TrimSuffix(request.URL.Path, "/")
		switch {
		case path == PodsPath, path == QueuePath, path == WhatIfPath, path == OpenAPIPath,
			strings.HasPrefix(path, PodsPath+"/"), strings.HasPrefix(path, NodesPath+"/"):
		default:
			others.ServeHTTP(w, request)
			return
		}
		if !take(s.sending) {
			answers.Send(w, nil, tooMany)
			return
		}
		defer func() { <-s.sending }()
		content, err := s.answer(w, request, path)
		answers.Send(w, content, err)
	})
}

var tooMany = answers.Refuse(http.StatusTooManyRequests, "too many requests for records at once", "ask again in a second")

// take takes a free place of a channel, and reports whether there was one.
func take(places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
		return false
	}
}

// answer returns the answer to a request as JSON.
func (s *server) answer(w http.ResponseWriter, request *http.Request, path string) ([]byte, error) {
	if path == WhatIfPath {
		if err := answers.CheckMethod(w, request, http.MethodGet, http.MethodHead, http.MethodPost); err != nil {
			return nil, err
		}
		// Dry runs have their own limit.
		found, err := s.whatIf(w, request)
		if err != nil {
			return nil, err
		}
		return json.Marshal(found)
	}
	if err := answers.CheckMethod(w, request, http.MethodGet, http.MethodHead); err != nil {
		return nil, err
	}
	if path == OpenAPIPath {
		return []byte(schema), nil
	}
	if !take(s.encoding) {
		return nil, tooMany
	}
	defer func() { <-s.encoding }()
	found, err := s.read(path, request.URL.Query().Get("search"))
	if err != nil {
		return nil, err
	}
	return json.Marshal(found)
}

// read returns the records at a path.
func (s *server) read(path, search string) (interface{}, error) {
	switch {
	case path == PodsPath:
		list := s.List()
		list.Answer = s.about("PodList")
		list.search(search)
		return list, nil
	case path == QueuePath:
		queue, err := s.queue()
		queue.Answer = s.about("Queue")
		queue.search(search)
		return queue, err
	case strings.HasPrefix(path, NodesPath+"/"):
		node := s.Node(path[len(NodesPath)+1:])
		node.Answer = s.about("Node")
		return node, nil
	}
	name := path[len(PodsPath)+1:]
	parts := strings.Split(name, "/")
	record, known := PodRecord{}, false
	if len(parts) == 2 {
		record, known = s.Get(parts[0], parts[1])
	}
	if !known {
		return nil, answers.Refuse(http.StatusNotFound, "no attempt to schedule this pod is recorded here",
			"GET "+PodsPath+" lists the pods with records").About("pods", name)
	}
	record.Answer = s.about("Pod")
	return record, nil
}

// whatIf returns the result of a dry run.
func (s *server) whatIf(w http.ResponseWriter, request *http.Request) (*WhatIf, error) {
	if fromElsewhere(request) {
		return nil, answers.Refuse(http.StatusForbidden, "a page of another site has sent this request",
			"kubectl scheduling what-if, or curl")
	}
	if !s.leads() {
		return nil, s.standby()
	}
	pod, err := s.podOf(w, request)
	if err != nil {
		return nil, err
	}
	found, err := s.find(request.Context(), pod, request.URL.Query().Get("nodes") == "all")
	if err != nil {
		return nil, err
	}
	found.Answer = s.about("WhatIf")
	return found, nil
}

// standby returns the error of a scheduler that does not schedule.
func (s *server) standby() error {
	message, leader := "this scheduler is a standby, and has no queue", s.about("").LeaderIdentity
	if leader != "" {
		message += ": " + leader + " leads"
	}
	refusal := answers.Refuse(http.StatusServiceUnavailable, message, "ask the leader").About("leases", leader)
	refusal.ErrStatus.Reason = ReasonStandby
	return refusal
}

// fromElsewhere reports whether a page of another site made the browser send a request. Such a page cannot read
// answers, so requests for records are harmless, but a dry run would pause scheduling.
func fromElsewhere(request *http.Request) bool {
	site := request.Header.Get("Sec-Fetch-Site")
	origin, err := url.Parse(request.Header.Get("Origin"))
	return site != "" && site != "same-origin" && site != "none" || err != nil || origin.String() != "" && origin.Host != request.Host
}

// about returns the fields that all answers have.
func (s *server) about(kind string) Answer {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return Answer{
		APIVersion: APIVersion, Kind: kind, Leader: s.leads(), LeaderIdentity: s.leader,
		Version: s.Sources.Version, Configuration: s.Sources.Configuration,
	}
}
