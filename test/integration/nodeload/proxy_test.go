// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"kube-scheduler-fork/build/localcluster"
)

// behaviour is how the proxy answers a request. pass asks Prometheus; changed is closed when the behaviour changes.
type behaviour func(w http.ResponseWriter, r *http.Request, pass http.Handler, changed <-chan struct{})

// proxy stands before Prometheus: with TLS, a bearer token, and whatever the test has go wrong. Without Prometheus it
// closes the connection, as if no server were there.
type proxy struct {
	server *httptest.Server
	pass   *httputil.ReverseProxy

	mutex       sync.Mutex
	certificate tls.Certificate
	token       string
	behaviour   behaviour
	changed     chan struct{}
}

// newProxy starts a proxy, and returns it with its certificate in PEM form, which is to be trusted.
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
	// Clients that do not trust it, and connections that are cut, are what it is for.
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.server.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		return &tls.Config{Certificates: []tls.Certificate{p.certificate}}, nil
	}}
	p.server.StartTLS()
	t.Cleanup(func() {
		p.behave(passes) // nothing hangs any more
		p.server.CloseClientConnections()
		p.server.Close()
	})
	return p, trusted
}

func (p *proxy) url() string { return p.server.URL }

// behave changes how the proxy answers, from now on and where it has not answered yet.
func (p *proxy) behave(behaviour behaviour) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	close(p.changed)
	p.behaviour, p.changed = behaviour, make(chan struct{})
}

// rotateToken changes the token that is asked for.
func (p *proxy) rotateToken(token string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.token = token
}

// rotateCertificate changes the certificate to one of a new authority, and returns that in PEM form. Connections that
// there are must be closed for it to be seen.
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
	// Read now: only then the server notices that a client has gone.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	// What is wrapped is to be read here.
	r.Header.Del("Accept-Encoding")
	behaviour(w, r, p.pass, changed)
}

// passes is the behaviour of a proxy that does nothing.
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

// answers500 is a server with a fault of its own.
func answers500(w http.ResponseWriter, _ *http.Request, _ http.Handler, _ <-chan struct{}) {
	http.Error(w, "out of order", http.StatusInternalServerError)
}

// answersGarbage says that all is well, and what it sends is no answer.
func answersGarbage(w http.ResponseWriter, _ *http.Request, _ http.Handler, _ <-chan struct{}) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"instance":"10.0`))
}

// answers100MB sends a correct answer of 100 MB, or as much of it as is taken.
func answers100MB(w http.ResponseWriter, _ *http.Request, _ http.Handler, _ <-chan struct{}) {
	const size, row = 100_000_000, `{"metric":{"instance":"10.0.0.1:9100","nodeload_term":"0v"},"value":[1700000000.000,"0.5"]},`
	rows := bytes.Repeat([]byte(row), 1<<13)
	w.Header().Set("Content-Type", "application/json")
	_, err := w.Write([]byte(`{"status":"success","data":{"resultType":"vector","result":[`))
	for sent := 0; sent < size && err == nil; sent += len(rows) {
		_, err = w.Write(rows)
	}
	if err == nil {
		_, _ = w.Write([]byte(row[:len(row)-1] + `]}}`))
	}
}

// shifts changes the times in Prometheus' answers: those at which it was evaluated, and those of the raw samples, which
// are the values that are times of these years.
func shifts(evaluated, samples time.Duration) behaviour {
	return func(w http.ResponseWriter, r *http.Request, pass http.Handler, _ <-chan struct{}) {
		recorder := httptest.NewRecorder()
		pass.ServeHTTP(recorder, r)
		content := recorder.Body.Bytes()
		if recorder.Code == http.StatusOK {
			var err error
			if content, err = shift(content, evaluated.Seconds(), samples.Seconds()); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(recorder.Code)
		_, _ = w.Write(content)
	}
}

func shift(answer []byte, evaluated, samples float64) ([]byte, error) {
	const earliest, latest = 1.5e9, 4e9
	var content struct {
		Status string `json:"status"`
		Data   struct {
			Type   string `json:"resultType"`
			Result []struct {
				Metric map[string]string `json:"metric"`
				Value  [2]any            `json:"value"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := json.Unmarshal(answer, &content); err != nil {
		return nil, fmt.Errorf("not an answer of Prometheus: %w", err)
	}
	for i := range content.Data.Result {
		value := &content.Data.Result[i].Value
		at, isNumber := value[0].(float64)
		text, isText := value[1].(string)
		number, err := strconv.ParseFloat(text, 64)
		if !isNumber || !isText || err != nil {
			return nil, fmt.Errorf("not a sample: %v", value)
		}
		value[0] = at + evaluated
		if number > earliest && number < latest {
			value[1] = strconv.FormatFloat(number+samples, 'f', -1, 64)
		}
	}
	return json.Marshal(content)
}
