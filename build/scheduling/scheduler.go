// SPDX-License-Identifier: Apache-2.0

// Package scheduling implements the kubectl plugin that asks the scheduler why pods are pending, or why they are where
// they are. It finds the leading scheduler, reaches it through the API server, and prints its answers.
package scheduling

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"kube-scheduler-fork/build/nextstep"
)

const (
	// trustLease is how long a read of the lease is reused.
	trustLease = 5 * time.Second
	// slow is how long an operation takes before a progress line is printed.
	slow = 2 * time.Second
	// tries limits the attempts while the scheduler returns 429; longestPause limits each wait between them.
	tries        = 5
	longestPause = 10 * time.Second
)

// scheduler is the leading scheduler.
type scheduler struct {
	config *rest.Config
	client kubernetes.Interface
	lease  lease
	// progress receives messages about slow operations.
	progress io.Writer
	// pause is how long to wait for the lease to move.
	pause time.Duration

	mutex sync.Mutex
	// session is with the leader as of the last read of the lease.
	session *session
	read    time.Time
}

// session is a connection to one scheduler.
type session struct {
	leader leader
	tunnel *tunnel
	client *http.Client
}

func newScheduler(config *rest.Config, lease lease, progress io.Writer) (*scheduler, error) {
	if as := config.Impersonate; as.UserName != "" || as.UID != "" || len(as.Groups) > 0 {
		return nil, nextstep.With(errors.New("the scheduler takes everyone for who they are, and would answer --as with your own rights"),
			"leave --as out (or as: of the kubeconfig's user), or ask with that user's own credentials: --kubeconfig FILE, --token or --user")
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &scheduler{config: config, client: client, lease: lease, progress: progress, pause: slow}, nil
}

// waiting prints a progress line if done is not called in time.
func (s *scheduler) waiting(format string, arguments ...any) (done func()) {
	timer := time.AfterFunc(slow, func() { fmt.Fprintf(s.progress, "waiting: "+format+"\n", arguments...) })
	return func() { timer.Stop() }
}

// reach returns a connection to the leader.
func (s *scheduler) reach(ctx context.Context) (*session, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	old := s.session
	if old != nil && old.tunnel.alive() && time.Since(s.read) < trustLease {
		return old, nil
	}
	done := s.waiting("the API server has to say who holds the lease %s", s.lease)
	found, err := find(ctx, s.client, s.lease)
	done()
	if err != nil {
		return nil, err
	}
	s.read = time.Now()
	if old != nil && old.tunnel.alive() && old.leader == found {
		return old, nil
	}
	s.drop()
	defer s.waiting("the API server has to connect to the scheduler's pod %s", found)()
	if s.config.Timeout > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, s.config.Timeout)
		defer cancel()
	}
	tunnel, err := openTunnel(ctx, s.client, s.config, found)
	if err != nil {
		return nil, err
	}
	through, err := s.through(tunnel)
	if err != nil {
		tunnel.close()
		return nil, err
	}
	s.session = &session{found, tunnel, &http.Client{Transport: through, Timeout: s.config.Timeout}}
	return s.session, nil
}

// readAgain makes the next request read the lease.
func (s *scheduler) readAgain() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.read = time.Time{}
}

func (s *scheduler) close() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.drop()
}

func (s *scheduler) drop() {
	if s.session != nil {
		s.session.client.CloseIdleConnections()
		s.session.tunnel.close()
		s.session = nil
	}
}

// through returns a transport that sends requests through a tunnel with the user's own credentials.
//
// The scheduler's certificate is not verified, because the scheduler signs itself a new one at each start. The API
// server is trusted instead; its certificate is verified. It and kubelet connect to the pod, and nothing else on this
// machine or the network is in between. So anyone who can create pods there, or is root on the node, could answer; they
// could equally replace the scheduler itself. So could another pod in the node's network that takes the port while no
// scheduler runs.
func (s *scheduler) through(tunnel *tunnel) (http.RoundTripper, error) {
	config := rest.CopyConfig(s.config)
	config.Dial = tunnel.dial
	config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	settings, err := config.TransportConfig()
	if err != nil {
		return nil, err
	}
	// These verify the API server, not the scheduler.
	settings.TLS.CAFile, settings.TLS.CAData, settings.TLS.ServerName = "", nil, ""
	settings.TLS.Insecure = true
	return transport.New(settings)
}

// address returns the URL of a path as seen from inside the scheduler's pod.
func (l leader) address(path string, query url.Values) *url.URL {
	return &url.URL{Scheme: "https", Host: "localhost:" + strconv.Itoa(l.port), Path: path, RawQuery: query.Encode()}
}

// request is a request to the scheduler.
type request struct {
	path  string
	query url.Values
	// body is JSON to POST; nil for a GET.
	body []byte
}

func (r request) verb() string {
	if r.body != nil {
		return "post"
	}
	return "get"
}

// moved is an error that another leader might not return.
type moved struct{ error }

func (m moved) Unwrap() error { return m.error }

// ask returns the leader's answer. If the lease has moved meanwhile, it asks the next leader, once.
func (s *scheduler) ask(ctx context.Context, request request) ([]byte, error) {
	session, err := s.reach(ctx)
	if err != nil {
		return nil, err
	}
	content, err := s.askOne(ctx, session, request)
	var wrong moved
	if !errors.As(err, &wrong) || ctx.Err() != nil {
		return content, err
	}
	first, asked := err, session
	if errors.Is(err, errStandby) {
		fmt.Fprintf(s.progress, "the scheduler in pod %s leads no more: reading the lease %s again\n", session.leader, s.lease)
		if err := sleep(ctx, s.pause); err != nil {
			return nil, err
		}
	}
	s.readAgain()
	session, err = s.reach(ctx)
	if err != nil {
		return nil, err
	}
	if session == asked && !errors.Is(first, errStandby) {
		return nil, first
	}
	return s.askOne(ctx, session, request)
}

var errStandby = errors.New("it does not lead")

// askOne returns one scheduler's answer, and retries on 429.
func (s *scheduler) askOne(ctx context.Context, session *session, request request) ([]byte, error) {
	defer s.waiting("the scheduler in pod %s has to answer", session.leader)()
	for try := 1; ; try++ {
		response, content, err := session.send(ctx, request)
		if err != nil {
			return nil, err
		}
		if response.StatusCode != http.StatusTooManyRequests || try == tries {
			return s.judge(session, request, response, content)
		}
		pause := time.Second
		if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds >= 0 {
			pause = min(time.Duration(seconds)*time.Second, longestPause)
		}
		fmt.Fprintf(s.progress, "the scheduler is asked too much at once: asking again in %s\n", pause)
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

func sleep(ctx context.Context, pause time.Duration) error {
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *session) send(ctx context.Context, request request) (*http.Response, []byte, error) {
	var body io.Reader
	method := http.MethodGet
	if request.body != nil {
		method, body = http.MethodPost, bytes.NewReader(request.body)
	}
	sent, err := http.NewRequestWithContext(ctx, method, s.leader.address(request.path, request.query).String(), body)
	if err != nil {
		return nil, nil, err
	}
	sent.Header.Set("Accept", "application/json")
	if request.body != nil {
		sent.Header.Set("Content-Type", "application/json")
	}
	response, err := s.client.Do(sent)
	if err != nil {
		return nil, nil, s.lost(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, largestAnswer))
	if err != nil {
		return nil, nil, s.lost(err)
	}
	return response, content, nil
}

// largestAnswer, in bytes, is far more than a cluster of 15,000 nodes needs.
const largestAnswer = 256 << 20

// lost wraps an error of the connection.
func (s *session) lost(err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		// url.Error adds an address that means nothing outside of the pod.
		err = outer.Err
	}
	return moved{nextstep.With(fmt.Errorf("the scheduler in pod %s does not answer: %w", s.leader, err),
		"kubectl --namespace %s get pod %s; or take more time, with a longer --request-timeout", s.leader.namespace, s.leader.pod)}
}

// judge returns the content of a valid answer, or explains the error.
func (s *scheduler) judge(session *session, request request, response *http.Response, content []byte) ([]byte, error) {
	leader := session.leader
	what, next := said(content)
	switch response.StatusCode {
	case http.StatusOK:
		if request.path == loadPath {
			return content, nil // a plugin's answer, which does not report the leader
		}
		var answer struct {
			Leader         bool
			LeaderIdentity string
		}
		if err := json.Unmarshal(content, &answer); err != nil {
			return nil, nextstep.With(fmt.Errorf("the scheduler in pod %s answers what is not JSON: %w", leader, err),
				"kubectl --namespace %s get pod %s --output yaml, and see which image it runs", leader.namespace, leader.pod)
		}
		if !answer.Leader {
			return nil, moved{nextstep.With(fmt.Errorf("the scheduler in pod %s holds the lease %s: %w", leader, s.lease, errStandby),
				"kubectl --namespace %s get lease %s, and when its holder stays the same, ask again", s.lease.Namespace, s.lease.Name)}
		}
		if answer.LeaderIdentity != "" && answer.LeaderIdentity != leader.identity {
			return nil, moved{nextstep.With(fmt.Errorf("the scheduler in pod %s leads by another lease than %s, whose holder is %s", leader, s.lease, escape(leader.identity)),
				"name its lease with --lease; or kubectl --namespace %s get lease %s, and when its holder stays the same, see where that runs", s.lease.Namespace, s.lease.Name)}
		}
		return content, nil
	case http.StatusServiceUnavailable:
		if strings.HasPrefix(what, "this scheduler stands by") {
			return nil, moved{nextstep.With(fmt.Errorf("the scheduler in pod %s holds the lease %s: %w", leader, s.lease, errStandby),
				"kubectl --namespace %s get lease %s, and when its holder stays the same, ask again", s.lease.Namespace, s.lease.Name)}
		}
	case http.StatusUnauthorized:
		return nil, nextstep.With(fmt.Errorf("the scheduler in pod %s does not know who you are (401 Unauthorized): %s", leader, what),
			"kubectl auth can-i %s %s, and see that your credentials are a client certificate or a token", request.verb(), request.path)
	case http.StatusForbidden:
		return nil, nextstep.With(fmt.Errorf("you lack the right to %s the path %s of the scheduler (nonResourceURLs): %s", request.verb(), request.path, what),
			"kubectl auth can-i %s %s; the ClusterRole %s of manifests/examples/records/read-scheduling-records.yaml has that right", request.verb(), request.path, roleFor(request.path))
	case http.StatusNotFound:
		if strings.HasPrefix(what, "404 page not found") {
			return nil, nextstep.With(fmt.Errorf("the scheduler in pod %s has no %s: it keeps no records (--record-pods=0), or is another version or the stock one", leader, request.path),
				"kubectl --namespace %s get pod %s --output yaml, and see its image and command", leader.namespace, leader.pod)
		}
		return nil, moved{nextstep.With(errors.New(what), "%s", elsewhere(request))}
	case http.StatusConflict:
		namespace, name, _ := strings.Cut(request.query.Get("pod"), "/")
		return nil, nextstep.With(errors.New(what), "kubectl scheduling --namespace %s why %s", namespace, name)
	}
	if next == "" {
		next = "kubectl --namespace " + leader.namespace + " logs " + leader.pod
	}
	return nil, nextstep.With(fmt.Errorf("the scheduler in pod %s answers %s: %s", leader, escape(response.Status), what), "%s", next)
}

// roleFor returns the ClusterRole that grants access to a path.
func roleFor(path string) string {
	if path == whatIfPath {
		return "ask-scheduling-what-if"
	}
	return "read-scheduling-records"
}

// elsewhere returns the command that shows more about the pod in the request.
func elsewhere(request request) string {
	if namespace, name, found := strings.Cut(request.query.Get("pod"), "/"); found {
		return fmt.Sprintf("kubectl --namespace %s get pod %s", namespace, name)
	}
	namespace, name, _ := strings.Cut(strings.TrimPrefix(request.path, podsPath+"/"), "/")
	return fmt.Sprintf("kubectl --namespace %s get pod %s --output yaml, and see its schedulerName; kubectl scheduling queue lists the pods that wait", namespace, name)
}

// said splits the text of an error from the scheduler, or a Status, into the message and the next step.
func said(content []byte) (what, next string) {
	text := string(content)
	var status metav1.Status
	if json.Unmarshal(content, &status) == nil && status.Message != "" {
		text = status.Message
	}
	const longest = 2000
	if len(text) > longest {
		text = text[:longest]
	}
	what, next, _ = strings.Cut(escape(strings.TrimSpace(text)), "; next: ")
	return what, next
}
