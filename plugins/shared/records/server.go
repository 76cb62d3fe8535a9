// SPDX-License-Identifier: Apache-2.0

package records

import (
	_ "embed" // for the schema
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/answers"
)

const (
	// encodedAtOnce and sentAtOnce limit concurrent answers, so that many or slow readers cost little. ofUserAtOnce
	// limits the requests of one user, from their beginning, so that no user locks out others.
	encodedAtOnce = 4
	sentAtOnce    = 64
	ofUserAtOnce  = 8
	// timeOfReading is the time for which a slow reader is counted for sentAtOnce.
	timeOfReading = 5 * time.Second
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

	mutex  sync.Mutex
	ofUser map[string]int
}

// enter counts a request of a user, and reports whether the user may have one more. leave ends it.
func (s *server) enter(request *http.Request) (leave func(), ok bool) {
	name := ""
	if user, known := apirequest.UserFrom(request.Context()); known {
		name = user.GetName()
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.ofUser[name] == ofUserAtOnce {
		return nil, false
	}
	s.ofUser[name]++
	return func() {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		if s.ofUser[name]--; s.ofUser[name] == 0 {
			delete(s.ofUser, name)
		}
	}, true
}

// Serve returns a handler that serves the records, and passes all other requests to others. leads reports whether this
// scheduler is the leader.
func (r *Recorder) Serve(others http.Handler, leads func() bool) http.Handler {
	if r == nil {
		return others
	}
	s := &server{
		Recorder: r, leads: leads, encoding: make(chan struct{}, encodedAtOnce), sending: make(chan struct{}, sentAtOnce),
		ofUser: make(map[string]int),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		path := strings.TrimSuffix(request.URL.Path, "/")
		switch {
		case path == PodsPath, path == QueuePath, path == WhatIfPath, path == OpenAPIPath,
			strings.HasPrefix(path, PodsPath+"/"):
		default:
			others.ServeHTTP(w, request)
			return
		}
		leave, ok := s.enter(request)
		if !ok {
			refuse(w, request, tooManyOfUser)
			return
		}
		defer leave()
		pods, err := s.readRequest(w, request, path)
		if err != nil {
			refuse(w, request, err)
			return
		}
		if !take(s.sending) {
			answers.Send(w, request, nil, tooMany)
			return
		}
		var once sync.Once
		free := func() { once.Do(func() { <-s.sending }) }
		defer free()
		content, err := s.answer(request, path, pods)
		// A reader that is slower keeps only its user's place.
		defer time.AfterFunc(timeOfReading, free).Stop()
		answers.Send(w, request, content, err)
	})
}

// refuse sends an error to a request whose body may not have arrived.
func refuse(w http.ResponseWriter, request *http.Request, err error) {
	if request.Method == http.MethodPost && request.ProtoMajor == 1 {
		// Otherwise net/http waits for the rest of the body before it answers.
		w.Header().Set("Connection", "close")
	}
	answers.Send(w, request, nil, err)
}

var (
	tooMany       = answers.Refuse(http.StatusTooManyRequests, "too many requests for records at once", "ask again in a second")
	tooManyOfUser = answers.Refuse(http.StatusTooManyRequests, "too many requests of this user at once", "ask again in a second")
)

// take occupies a free place of a channel, and reports whether there was one.
func take(places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
		return false
	}
}

// readRequest checks a request, and reads all of it. For a dry run, it returns a function that finds the pods.
func (s *server) readRequest(w http.ResponseWriter, request *http.Request, path string) (func() (GangRequest, error), error) {
	if path != WhatIfPath {
		return nil, answers.CheckMethod(w, request, http.MethodGet, http.MethodHead)
	}
	if err := answers.CheckMethod(w, request, http.MethodGet, http.MethodHead, http.MethodPost); err != nil {
		return nil, err
	}
	if fromElsewhere(request) {
		return nil, answers.Refuse(http.StatusForbidden, "a page of another site has sent this request",
			"kubectl scheduling what-if, or curl")
	}
	if !s.leads() {
		return nil, s.standby()
	}
	return s.podsOf(request)
}

// answer returns the answer to a request as JSON.
func (s *server) answer(request *http.Request, path string, pods func() (GangRequest, error)) ([]byte, error) {
	if path == WhatIfPath {
		// Dry runs have their own limit.
		found, err := s.find(request.Context(), pods, request.URL.Query().Get("nodes") == "all")
		if err != nil {
			return nil, err
		}
		found.Answer = s.about("WhatIf")
		return json.Marshal(found)
	}
	if path == OpenAPIPath {
		return []byte(schema), nil
	}
	if !take(s.encoding) {
		return nil, tooMany
	}
	defer func() { <-s.encoding }()
	found, err := s.read(path, request.URL.Query())
	if err != nil {
		return nil, err
	}
	return json.Marshal(found)
}

// read returns the records at a path.
func (s *server) read(path string, query url.Values) (interface{}, error) {
	switch {
	case path == PodsPath:
		list := s.List()
		list.Answer = s.about("PodList")
		list.search(query.Get("search"))
		from, to, next, err := page(len(list.Items), query)
		list.Items, list.Continue = list.Items[from:to], next
		return list, err
	case path == QueuePath && !s.leads():
		return nil, s.standby()
	case path == QueuePath:
		queue, err := s.queue()
		if err != nil {
			return nil, err
		}
		queue.Answer = s.about("Queue")
		queue.search(query.Get("search"))
		from, to, next, err := page(len(queue.Items), query)
		queue.Items, queue.Continue = queue.Items[from:to], next
		return queue, err
	}
	name := path[len(PodsPath)+1:]
	parts := strings.Split(name, "/")
	if len(parts) != 2 {
		return nil, answers.Refuse(http.StatusNotFound, short(name)+" is not NAMESPACE/NAME", "GET "+PodsPath+"/NAMESPACE/NAME").
			About("pods", short(name))
	}
	record, known := s.Get(parts[0], parts[1])
	if !known {
		return nil, s.missing(parts[0], parts[1])
	}
	record.Answer = s.about("Pod")
	return record, nil
}

// page returns the range of a list for the parameters limit and continue, and the value of continue for the rest.
func page(length int, query url.Values) (from, to int, next string, err error) {
	numbers := map[string]int{"continue": 0, "limit": 0}
	for name := range numbers {
		text := query.Get(name)
		if text == "" {
			continue
		}
		if numbers[name], err = strconv.Atoi(text); err != nil || numbers[name] < 0 {
			return 0, 0, "", answers.Refuse(http.StatusBadRequest, fmt.Sprintf("%s=%s is not a number from 0 on", name, short(text)),
				"limit=500, then continue as in the answer")
		}
	}
	if from = numbers["continue"]; from > length {
		from = length
	}
	if to = length; numbers["limit"] > 0 && numbers["limit"] < length-from {
		to = from + numbers["limit"]
		next = strconv.Itoa(to)
	}
	return from, to, next, nil
}

// missing returns the error for a pod without records.
func (s *server) missing(namespace, name string) error {
	if !s.leads() {
		return s.standby()
	}
	named := short(namespace + "/" + name)
	because := func(message, next string, arguments ...interface{}) error {
		return answers.Refuse(http.StatusNotFound, fmt.Sprintf(message, arguments...), next).About("pods", named)
	}
	found, err := s.Sources.Pods.Pods(namespace).Get(name)
	switch {
	case err != nil:
		return because("there is no pod %s, or it has ended", "kubectl get pods --all-namespaces", named)
	case !sets.NewString(s.Sources.Profiles...).Has(found.Spec.SchedulerName):
		return because("pod %s has the schedulerName %s, and this scheduler has the profiles %s", "ask that scheduler",
			named, short(found.Spec.SchedulerName), strings.Join(s.Sources.Profiles, ", "))
	case found.Spec.NodeName != "":
		return because("pod %s is bound to node %s, and no attempt is recorded: it was bound before this scheduler led, "+
			"or its record gave way to later ones", "kubectl describe pod", named, found.Spec.NodeName)
	}
	return because("pod %s waits, and no attempt is recorded: it has not been tried yet, or its record gave way to later ones",
		"GET "+QueuePath+"?search="+name, named)
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
	s.Recorder.mutex.Lock()
	defer s.Recorder.mutex.Unlock()
	return Answer{
		APIVersion: APIVersion, Kind: kind, Leader: s.leads(), LeaderIdentity: s.leader,
		Version: s.Sources.Version, Configuration: s.Sources.Configuration,
	}
}
