// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"io/ioutil"
	"log"
	"net/http"
	"net/http/httptest"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

// quiet discards the servers' log of broken connections.
var quiet = log.New(ioutil.Discard, "", 0)

// asked is a request as received by a server.
type asked struct {
	method, path, query string
	header              http.Header
	form                map[string][]string
}

// server is a fake Prometheus that records its requests.
type server struct {
	*httptest.Server
	mu  sync.Mutex
	saw []asked
	do  http.HandlerFunc
}

func serve(t testing.TB, do http.HandlerFunc) *server {
	s := unstarted(t, do)
	s.Start()
	return s
}

func unstarted(t testing.TB, do http.HandlerFunc) *server {
	s := &server{do: do}
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ErrorLog = quiet
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Reading the body to its end lets the server notice when the client goes.
	_ = r.ParseForm()
	s.mu.Lock()
	s.saw = append(s.saw, asked{r.Method, r.URL.Path, r.Form.Get("query"), r.Header.Clone(), r.Form})
	do := s.do
	s.mu.Unlock()
	do(w, r)
}

func (s *server) becomes(do http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.do, s.saw = do, nil
}

func (s *server) requests() []asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]asked{}, s.saw...)
}

// answers returns a handler with a fixed answer.
func answers(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

func vector(series ...string) string {
	return `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(series, ",") + `]}}`
}

func series(instance, term, value string) string {
	return fmt.Sprintf(`{"metric":{"instance":%q,"nodeload_term":%q},"value":[1700000000.25,%q]}`,
		instance, term, value)
}

// refused returns Prometheus' error for a query that it does not evaluate.
func refused(kind, why string) string {
	return fmt.Sprintf(`{"status":"error","errorType":%q,"error":%q}`, kind, why)
}

// healthy answers each term of a query with a row for the given node.
func healthy(node string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var rows []string
		for slot := 0; slot < 20; slot++ {
			for kind, value := range []string{"0.5", "1699999990", "0.1"} {
				if term := term(slot, Kind(kind)); strings.Contains(r.Form.Get("query"), `"`+term+`"`) {
					rows = append(rows, series(node, term, value))
				}
			}
		}
		fmt.Fprint(w, vector(rows...))
	}
}

// doesIf calls a handler if the query contains a word, and answers other queries.
func doesIf(do http.HandlerFunc, word string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Form.Get("query"), word) {
			do(w, r)
			return
		}
		healthy("a")(w, r)
	}
}

// hangs does not answer until the client disconnects.
func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func prometheus(endpoints ...string) config.NodeLoadPrometheus {
	return config.NodeLoadPrometheus{Endpoints: endpoints, Timeout: &metav1.Duration{Duration: time.Minute}}
}

func client(t testing.TB, prometheus config.NodeLoadPrometheus) *Client {
	t.Helper()
	c, err := New(prometheus)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// ask sends queries, and returns the result with its rows in order.
func ask(c *Client, queries ...Query) (Result, error) {
	return askWithin(context.Background(), c, queries...)
}

func askWithin(ctx context.Context, c *Client, queries ...Query) (Result, error) {
	for i := range queries {
		if queries[i].Label == "" {
			queries[i].Label = "instance"
		}
	}
	result, err := c.Ask(ctx, queries)
	sort.Slice(result.Rows, func(i, j int) bool {
		a, b := result.Rows[i], result.Rows[j]
		return a.Query < b.Query || a.Query == b.Query && a.Kind < b.Kind
	})
	return result, err
}

var cpu = Query{Name: "cpu", Value: "load", Timestamp: "timestamp(load)"}

// mustAnswer queries one resource, and checks that the rows are those of a node.
func mustAnswer(t *testing.T, c *Client, node string) Result {
	t.Helper()
	result, err := ask(c, cpu)
	if err != nil {
		t.Fatal(err)
	}
	if all := result.Rows; len(all) != 2 || all[0] != (Row{0, Value, node, 0.5}) || all[1] != (Row{0, Timestamp, node, 1699999990}) {
		t.Fatalf("got %v, want the rows of %s", all, node)
	}
	return result
}

// mustFail queries one resource, and returns the text of the error, which must have the next step.
func mustFail(t *testing.T, c *Client) string {
	t.Helper()
	result, err := ask(c, cpu)
	if err == nil {
		t.Fatal("no error")
	}
	if len(result.Rows) > 0 {
		t.Errorf("there are rows despite the error: %v", result.Rows)
	}
	if text := err.Error(); !strings.Contains(text, "next: ") || len(text) > 1200 {
		t.Errorf("the message has no next step, or is too long: %s", text)
	}
	return err.Error()
}
