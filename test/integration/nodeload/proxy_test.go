// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"bytes"
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"kube-scheduler-fork/build/localcluster"
)

// behaviour answers a request to the proxy. pass forwards it to
// Prometheus; changed is closed when the behaviour changes.
type behaviour func(w http.ResponseWriter, r *http.Request, pass http.Handler, changed <-chan struct{})

// proxy is in front of Prometheus, with TLS, a bearer token, and the faults of the test. Without Prometheus it closes
// the connection, as if there were no server.
type proxy struct {
	server *httptest.Server
	pass   *httputil.ReverseProxy

	mutex       sync.Mutex
	certificate tls.Certificate
	token       string
	behaviour   behaviour
	changed     chan struct{}
}

// newProxy starts a proxy, and returns it with the certificate to trust, in PEM form.
func newProxy(t *testing.T, target, token string) (*proxy, []byte) {
	t.Helper()
	address, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{pass: httputil.NewSingleHostReverseProxy(address), token: token, behaviour: passes, changed: make(chan struct{})}
	p.pass.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	trusted := p.rotateCertificate(t)
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(p.serve))
	// Distrustful clients and closed connections are expected.
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.server.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		return &tls.Config{Certificates: []tls.Certificate{p.certificate}}, nil
	}}
	p.server.StartTLS()
	t.Cleanup(func() {
		p.behave(passes) // releases hanging requests
		p.server.CloseClientConnections()
		p.server.Close()
	})
	return p, trusted
}

func (p *proxy) url() string { return p.server.URL }

// behave changes the proxy's behaviour, also for pending requests.
func (p *proxy) behave(behaviour behaviour) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	close(p.changed)
	p.behaviour, p.changed = behaviour, make(chan struct{})
}

// rotateToken changes the required token.
func (p *proxy) rotateToken(token string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.token = token
}

// rotateCertificate changes the certificate to one of a new CA, and
// returns the CA in PEM form. It takes effect for new connections only.
func (p *proxy) rotateCertificate(t *testing.T) []byte {
	t.Helper()
	authority, err := localcluster.NewAuthority("prometheus-ca")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Server("prometheus")
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.certificate = certificate
	return authority.PEM()
}

func (p *proxy) serve(w http.ResponseWriter, r *http.Request) {
	p.mutex.Lock()
	token, behaviour, changed := p.token, p.behaviour, p.changed
	p.mutex.Unlock()
	if r.Header.Get("Authorization") != "Bearer "+token {
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	// The body is read now because only then does the server notice that a client has disconnected.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	// The behaviours read the response, so it must not be compressed.
	r.Header.Del("Accept-Encoding")
	behaviour(w, r, p.pass, changed)
}

// passes forwards the request unchanged.
func passes(w http.ResponseWriter, r *http.Request, pass http.Handler, _ <-chan struct{}) {
	pass.ServeHTTP(w, r)
}

// hangs never answers.
func hangs(_ http.ResponseWriter, r *http.Request, _ http.Handler, changed <-chan struct{}) {
	select {
	case <-r.Context().Done():
	case <-changed:
	}
	panic(http.ErrAbortHandler)
}
