// SPDX-License-Identifier: Apache-2.0

// Package scheduling implements the kubectl plugin that shows why pods are pending, or why they were placed on their
// nodes. It finds the leading scheduler, connects to it through the API server, and prints its answers.
package scheduling

import (
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
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"kube-scheduler-fork/build/nextstep"
)

const (
	// trustLease is how long a read of the lease is reused.
	trustLease = 5 * time.Second
	// slow is how long an operation takes before a progress line is printed.
	slow = 2 * time.Second
	// retries limits the attempts after the scheduler has returned 429.
	retries = 4
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
	client *rest.RESTClient
}

func newScheduler(config *rest.Config, lease lease, progress io.Writer) (*scheduler, error) {
	if as := config.Impersonate; as.UserName != "" || as.UID != "" || len(as.Groups) > 0 {
		return nil, nextstep.With(errors.New("the scheduler does not support impersonation, and would use your own permissions instead of those of --as"),
			"leave out --as (or as: of the kubeconfig's user), or use the other user's credentials: --kubeconfig FILE, --context or --user")
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
	s.session = &session{found, tunnel, through}
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
		s.session.client.Client.CloseIdleConnections()
		s.session.tunnel.close()
		s.session = nil
	}
}

// through returns a client that sends requests through a tunnel with the user's own credentials.
//
// The scheduler's certificate is not verified, because the scheduler signs itself a new one at each start. The API
// server is trusted instead; its certificate is verified. It and kubelet connect to the pod, and nothing else on this
// machine or the network is in between. So anyone who can create pods there, or is root on the node, could answer. They
// could also replace the scheduler itself. Another pod in the node's network could answer too, if it takes the port
// while no scheduler runs.
func (s *scheduler) through(tunnel *tunnel) (*rest.RESTClient, error) {
	config := rest.CopyConfig(s.config)
	// In the pod, the scheduler is on the loopback address.
	config.Host, config.APIPath = "https://localhost:"+strconv.Itoa(tunnel.leader.port), ""
	config.Dial = tunnel.dial
	config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	// These verify the API server, not the scheduler.
	config.CAFile, config.CAData, config.ServerName = "", nil, ""
	config.Insecure = true
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return newClient(config, client)
}

// newClient returns a client for a scheduler.
func newClient(config *rest.Config, client *http.Client) (*rest.RESTClient, error) {
	config.QPS = -1
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return rest.UnversionedRESTClientForConfigAndClient(config, client)
}

// request is a question to a scheduler.
type request struct {
	path  string
	query url.Values
	// body is posted as JSON. If it is nil, the request is a GET.
	body []byte
}

func (r request) verb() string {
	if r.body != nil {
		return http.MethodPost
	}
	return http.MethodGet
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

// askOne returns one scheduler's answer.
func (s *scheduler) askOne(ctx context.Context, session *session, request request) ([]byte, error) {
	defer s.waiting("the answer of the scheduler in pod %s", session.leader)()
	address := url.URL{Path: request.path, RawQuery: request.query.Encode()}
	asked := session.client.Verb(request.verb()).RequestURI(address.String()).MaxRetries(retries).SetHeader("Accept", "application/json")
	if request.body != nil {
		asked.Body(request.body).SetHeader("Content-Type", "application/json")
	}
	result := asked.Do(ctx)
	content, err := result.Raw()
	if err != nil {
		return nil, s.failure(ctx, session.leader, request, result.Error())
	}
	return content, s.check(session.leader, request, content)
}

func sleep(ctx context.Context, pause time.Duration) error {
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
