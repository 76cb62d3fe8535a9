// SPDX-License-Identifier: Apache-2.0

// Package scheduling implements the kubectl plugin that shows why pods are pending, or why they were placed on their
// nodes. It finds the leading scheduler, connects to it through the API server, and prints its answers.
package scheduling

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

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
	// base is the beginning of all URLs.
	base string
}

func newScheduler(config *rest.Config, lease lease, progress io.Writer) (*scheduler, error) {
	if as := config.Impersonate; as.UserName != "" || as.UID != "" || len(as.Groups) > 0 {
		return nil, nextstep.With(errors.New("the scheduler does not support impersonation, and would use your own permissions instead of those of --as"),
			"leave out --as (or as: of the kubeconfig's user), or use the other user's credentials: --kubeconfig FILE, --token or --user")
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &scheduler{config: config, client: client, lease: lease, progress: progress, pause: slow}, nil
}

// waiting prints a progress line if done is not called in time.
func (s *scheduler) waiting(format string, arguments ...any) (done func()) {
	timer := time.AfterFunc(slow, func() { fmt.Fprintf(s.progress, "waiting for "+format+"\n", arguments...) })
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
	done := s.waiting("the API server's answer with the holder of the lease %s", s.lease)
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
	defer s.waiting("the API server's connection to the scheduler's pod %s", found)()
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
	// In the pod, the scheduler is on the loopback address.
	base := "https://localhost:" + strconv.Itoa(found.port)
	s.session = &session{found, tunnel, &http.Client{Transport: through, Timeout: s.config.Timeout}, base}
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
// machine or the network is in between. So anyone who can create pods there, or is root on the node, could answer. They
// could also replace the scheduler itself. Another pod in the node's network could answer too, if it takes the port
// while no scheduler runs.
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

// request is a question to a scheduler.
type request struct {
	path  string
	query url.Values
	// body is posted with contentType. If it is nil, the request is a GET.
	body        []byte
	contentType string
}

func (r request) verb() string {
	if r.body != nil {
		return "post"
	}
	return "get"
}

// ask returns the leader's answer. If the lease has moved meanwhile, it asks the new leader once.
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
		fmt.Fprintf(s.progress, "the scheduler in pod %s no longer leads: reading the lease %s again\n", session.leader, s.lease)
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

// askOne returns one scheduler's answer, and retries if that returns 429.
func (s *scheduler) askOne(ctx context.Context, session *session, request request) ([]byte, error) {
	defer s.waiting("the answer of the scheduler in pod %s", session.leader)()
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
		fmt.Fprintf(s.progress, "the scheduler returned 429 (too many requests): retrying in %s\n", pause)
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
	address := url.URL{Path: request.path, RawQuery: request.query.Encode()}
	sent, err := http.NewRequestWithContext(ctx, method, s.base+address.String(), body)
	if err != nil {
		return nil, nil, err
	}
	sent.Header.Set("Accept", "application/json")
	if request.body != nil {
		sent.Header.Set("Content-Type", request.contentType)
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

// largestAnswer, in bytes, is much larger than the answers of a cluster with 15,000 nodes.
const largestAnswer = 256 << 20

// lost returns the error for a failed connection.
func (s *session) lost(err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		// Its URL is only valid in the pod.
		err = outer.Err
	}
	return moved{nextstep.With(fmt.Errorf("the scheduler in pod %s does not answer: %w", s.leader, err),
		"kubectl --namespace %s get pod %s; or the same command with a longer --request-timeout", s.leader.namespace, s.leader.pod)}
}
