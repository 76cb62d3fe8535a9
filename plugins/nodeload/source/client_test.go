// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/ioutil"
	"log"
	"net/http"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var quiet = log.New(ioutil.Discard, "", 0)

func TestOneRequestForEverything(t *testing.T) {
	s := serve(t, healthy("a"))
	c := client(t, prometheus(s.URL+"/prefix/"))
	before := time.Now()
	all, result, err := ask(c,
		Query{Name: "cpu", Value: "x", Timestamp: "y", Deviation: "z"}, Query{Name: "unused"}, Query{Name: "memory", Value: "m # note"})
	if err != nil {
		t.Fatal(err)
	}
	want := []got{{0, Value, "a", 0.5}, {0, Timestamp, "a", 1699999990}, {0, Deviation, "a", 0.1}, {2, Value, "a", 0.5}}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Error(diff)
	}
	saw := s.requests()
	if len(saw) != 1 || saw[0].method != http.MethodPost || saw[0].path != "/prefix/api/v1/query" {
		t.Fatalf("the server saw %+v", saw)
	}
	const composed = "label_replace((x\n), \"nodeload_term\", \"0v\", \"\", \"\")\nor\nlabel_replace((y\n), \"nodeload_term\", \"0t\", \"\", \"\")\nor\n" +
		"label_replace((z\n), \"nodeload_term\", \"0d\", \"\", \"\")\nor\nlabel_replace((m # note\n), \"nodeload_term\", \"2v\", \"\", \"\")"
	if diff := cmp.Diff(composed, saw[0].query); diff != "" {
		t.Error(diff)
	}
	if _, given := saw[0].form["time"]; given || saw[0].form["timeout"][0] != "54000ms" {
		t.Errorf("the server decides what now is, and gives up a tenth before the client does: %v", saw[0].form)
	}
	if result.Requests != 1 || result.Series != 4 || result.Bytes < 100 || result.Evaluated != 1700000000.25 || result.Failed != nil ||
		result.Endpoint != s.URL+"/prefix/" {
		t.Errorf("got %+v", result)
	}
	if result.Asked.Before(before) || result.Received.Before(result.Asked) || time.Now().Before(result.Received) {
		t.Errorf("asked at %v, received at %v", result.Asked, result.Received)
	}
}

func TestNothingToAskIsNotAsked(t *testing.T) {
	s := serve(t, healthy("a"))
	_, result, err := ask(client(t, prometheus(s.URL)), Query{Name: "cpu"})
	if err != nil || result.Requests != 0 || len(s.requests()) != 0 {
		t.Errorf("got %+v, %v", result, err)
	}
}

func TestBrokenServersAreErrorsAndRecoveryNeedsNothing(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	const late = "no answer within 300ms"
	for name, test := range map[string]struct {
		do   http.HandlerFunc
		says string
	}{
		"500":                      {answers(500, "<html>"+long), "HTTP status 500"},
		"500 in Prometheus' words": {answers(500, `{"status":"error","errorType":"internal","error":"disk\nfull"}`), "internal: disk full"},
		"503 of a proxy":           {answers(503, "no backend"), "HTTP status 503"},
		"400 of a TLS server":      {answers(400, "Client sent an HTTP request to an HTTPS server."), "https"},
		"404":                      {answers(404, "404 page not found"), "path prefix"},
		"429":                      {answers(429, ""), "HTTP status 429"},
		"garbage":                  {answers(200, "\x1f\x8b\xff\x00"+long), "not one of Prometheus"},
		"a page to log in":         {answers(200, "<!doctype html>"), "not one of Prometheus"},
		"no content":               {answers(204, ""), "not one of Prometheus"},
		"truncated JSON":           {answers(200, vector(series("a", "0v", "1"))[:90]), "not one of Prometheus"},
		"a body that breaks off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, vector(series("a", "0v", "1"))[:90])
		}, "unexpected EOF"},
		"a connection that breaks": {func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
		"half an answer in time": {func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, vector(series("a", "0v", "1"))[:90])
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, late},
		"hanging": {hangs, late},
		"compressed without end": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			fmt.Fprint(w, "\x1f\x8b\x08\x00")
		}, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, test.do)
			c := client(t, prometheus(s.URL))
			if test.says == late {
				c.timeout = 300 * time.Millisecond
			}
			if text := mustFail(t, c); !strings.Contains(text, test.says) || strings.Contains(text, "\n") {
				t.Errorf("got %q, want %q in it", text, test.says)
			}
			s.becomes(healthy("a"))
			c.timeout = time.Minute
			mustAnswer(t, c, "a")
		})
	}
}

func TestAServerThatIsNotThere(t *testing.T) {
	s := serve(t, nil)
	s.Close()
	text := mustFail(t, client(t, prometheus(s.URL+"?key=abc")))
	if !strings.Contains(text, "connection refused") || strings.Contains(text, "abc") {
		t.Error(text)
	}
}

// allocated is how many bytes something allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestAnswersThatAreTooLarge(t *testing.T) {
	const size = 100 << 20
	fields := bytes.Repeat([]byte(`"x":"`+strings.Repeat(" ", 1017)+`",`), 1<<10)
	compressed := func(text []byte) []byte {
		var member bytes.Buffer
		compressor := gzip.NewWriter(&member)
		_, _ = compressor.Write(text)
		_ = compressor.Close()
		return member.Bytes()
	}
	opening, member := compressed([]byte(`{"status":"success",`)), compressed(fields)
	// Both begin like a good answer and go on with what must be read and means nothing.
	for name, test := range map[string]struct {
		do    http.HandlerFunc
		bytes int64
	}{
		"said beforehand": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(size))
			for i := 0; i < size>>20; i++ {
				if _, err := w.Write(fields); err != nil {
					return
				}
			}
		}, 0},
		"piece by piece": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"status":"success",`)
			for i := 0; i < size>>20; i++ {
				if _, err := w.Write(fields); err != nil {
					return
				}
			}
		}, largestAnswer + 1},
		"compressed a thousandfold": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(opening)
			for i := 0; i < size>>20; i++ {
				if _, err := w.Write(member); err != nil {
					return
				}
			}
		}, largestAnswer + 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, test.do)
			c := client(t, prometheus(s.URL))
			// To decode so much may take minutes when data races are looked for.
			c.timeout = time.Hour
			var result Result
			var err error
			used := allocated(func() { _, result, err = ask(c, cpu) })
			if err == nil || !errors.Is(result.Failed[0], errTooLarge) || !strings.Contains(err.Error(), "next: ") {
				t.Fatalf("got %v", err)
			}
			if result.Bytes != test.bytes {
				t.Errorf("%d bytes were read, want %d", result.Bytes, test.bytes)
			}
			if used > 16<<20 {
				t.Errorf("%d bytes were allocated on the way", used)
			}
			s.becomes(healthy("a"))
			mustAnswer(t, c, "a")
		})
	}
}

func TestTooManySeriesOfOneResourceDoNotBlindTheRest(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var rows []string
		if strings.Contains(r.Form.Get("query"), `"0v"`) {
			for i := 0; i < 200; i++ {
				rows = append(rows, series(fmt.Sprint("pod", i), "0v", "1"))
			}
		}
		if strings.Contains(r.Form.Get("query"), `"1v"`) {
			rows = append(rows, series("a", "1v", "1"))
		}
		fmt.Fprint(w, vector(rows...))
	})
	c := client(t, prometheus(s.URL))
	c.rows.most = 100
	all, result, err := ask(c, Query{Name: "cpu", Value: "x"}, Query{Name: "memory", Value: "y"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]got{{1, Value, "a", 1}}, all); diff != "" {
		t.Error(diff)
	}
	if len(result.Failed) != 1 || !errors.Is(result.Failed[0], errTooLarge) || result.Requests != 3 || result.Series != 1 {
		t.Errorf("got %+v", result)
	}
}

func TestOneBadExpressionDoesNotBlindTheRest(t *testing.T) {
	for name, refuse := range map[string]http.HandlerFunc{
		"a parse error":            answers(400, `{"status":"error","errorType":"bad_data","error":"1:5: parse error"}`),
		"an execution error":       answers(422, `{"status":"error","errorType":"execution","error":"many-to-many matching"}`),
		"an error with status 200": answers(200, `{"status":"error","errorType":"422","error":"bad"}`),
		"a proxy's limit":          answers(413, "too large"),
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.Form.Get("query"), "bad") {
					refuse(w, r)
					return
				}
				healthy("a")(w, r)
			})
			other := serve(t, healthy("other"))
			c := client(t, prometheus(s.URL, other.URL))
			all, result, err := ask(c, Query{Name: "cpu", Value: "x"}, Query{Name: "network", Value: "bad"}, Query{Name: "memory", Value: "y"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]got{{0, Value, "a", 0.5}, {2, Value, "a", 0.5}}, all); diff != "" {
				t.Error(diff)
			}
			if len(result.Failed) != 1 || result.Failed[1] == nil || !strings.Contains(result.Failed[1].Error(), "resource network: ") ||
				!strings.Contains(result.Failed[1].Error(), "next: ") {
				t.Errorf("failed: %v", result.Failed)
			}
			if result.Requests != 4 || len(s.requests()) != 4 || len(other.requests()) != 0 {
				t.Errorf("%d requests: one for all and one for each resource are 4, all to the same server", result.Requests)
			}
		})
	}
}

func TestAServerThatGoesAwayBetweenResourcesLeavesNoHalfOfARefresh(t *testing.T) {
	first := serve(t, nil)
	first.becomes(func(w http.ResponseWriter, r *http.Request) {
		switch query := r.Form.Get("query"); {
		case strings.Contains(query, "bad") && strings.Contains(query, "good"):
			answers(422, `{"status":"error","errorType":"execution","error":"x"}`)(w, r)
		case strings.Contains(query, "good"):
			healthy("first")(w, r)
		default:
			answers(502, "")(w, r)
		}
	})
	second := serve(t, healthy("second"))
	all, result, err := ask(client(t, prometheus(first.URL, second.URL)), Query{Name: "cpu", Value: "good"}, Query{Name: "memory", Value: "bad"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]got{{0, Value, "second", 0.5}, {1, Value, "second", 0.5}}, all); diff != "" {
		t.Error(diff)
	}
	if result.Endpoint != second.URL || result.Failed != nil || result.Requests != 4 {
		t.Errorf("got %+v", result)
	}
}

func TestPOSTRefused(t *testing.T) {
	for _, status := range []int{http.StatusMethodNotAllowed, http.StatusNotImplemented, http.StatusForbidden} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					w.WriteHeader(status)
					return
				}
				healthy("a")(w, r)
			})
			c := client(t, prometheus(s.URL+"?tenant=5"))
			mustAnswer(t, c, "a")
			mustAnswer(t, c, "a")
			saw := s.requests()
			if len(saw) != 3 || saw[1].method != http.MethodGet || saw[2].method != http.MethodGet {
				t.Fatalf("the server saw %+v: POST is tried once", saw)
			}
			if saw[2].form["tenant"][0] != "5" || !strings.Contains(saw[2].query, "timestamp(load)") {
				t.Errorf("the question was %v", saw[2].form)
			}
			// A server that takes neither, and one that takes POST again.
			s.becomes(answers(status, ""))
			mustFail(t, c)
			s.becomes(healthy("a"))
			mustAnswer(t, c, "a")
			if saw := s.requests(); saw[0].method != http.MethodPost {
				t.Errorf("the server saw %+v", saw)
			}
		})
	}
}

func TestEndpointsInOrder(t *testing.T) {
	var servers []*server
	var addresses []string
	for i := 0; i < 3; i++ {
		servers = append(servers, serve(t, healthy(fmt.Sprint("s", i))))
		addresses = append(addresses, servers[i].URL)
	}
	c := client(t, prometheus(addresses...))
	now := time.Unix(1000, 0)
	c.now = func() time.Time { return now }
	broken := answers(500, "")

	mustAnswer(t, c, "s0")
	servers[0].becomes(broken)
	servers[1].becomes(broken)
	if result := mustAnswer(t, c, "s2"); result.Requests != 3 || result.Endpoint != addresses[2] {
		t.Errorf("got %+v, want all three to be tried", result)
	}
	// Who answered last comes first, and the others in their order.
	servers[1].becomes(healthy("s1"))
	if result := mustAnswer(t, c, "s2"); result.Requests != 1 {
		t.Errorf("%d requests", result.Requests)
	}
	servers[2].becomes(broken)
	if result := mustAnswer(t, c, "s1"); result.Requests != 3 {
		t.Errorf("%d requests: the third, the first, the second", result.Requests)
	}
	// Back to the first after some minutes: as long as it does not answer, that costs one request each time.
	now = now.Add(backToFirst)
	if result := mustAnswer(t, c, "s1"); result.Requests != 2 {
		t.Errorf("%d requests: the first, the second", result.Requests)
	}
	servers[0].becomes(healthy("s0"))
	now = now.Add(backToFirst - time.Second)
	if result := mustAnswer(t, c, "s1"); result.Requests != 1 {
		t.Errorf("%d requests", result.Requests)
	}
	now = now.Add(time.Second)
	if result := mustAnswer(t, c, "s0"); result.Requests != 1 {
		t.Errorf("%d requests", result.Requests)
	}

	for _, s := range servers {
		s.becomes(broken)
	}
	text := mustFail(t, c)
	for _, address := range addresses {
		if !strings.Contains(text, address) {
			t.Errorf("%s is not in %q", address, text)
		}
	}
}

func TestGivingUpIsNotTheServersFault(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	first := serve(t, func(w http.ResponseWriter, r *http.Request) {
		cancel()
		hangs(w, r)
	})
	second := serve(t, healthy("second"))
	c := client(t, prometheus(first.URL, second.URL))
	if _, _, err := askWithin(ctx, c, cpu); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if len(second.requests()) != 0 {
		t.Error("the next endpoint was asked though no call waits")
	}
	first.becomes(healthy("first"))
	mustAnswer(t, c, "first")
}

func TestRedirects(t *testing.T) {
	other := serve(t, healthy("other"))
	for name, test := range map[string]struct {
		status   int
		to       string
		followed bool
	}{
		"to another server":                     {http.StatusTemporaryRedirect, other.URL + "/api/v1/query?secret=5f1e0c", false},
		"to another server for good":            {http.StatusPermanentRedirect, other.URL + "/api/v1/query", false},
		"to the same server, question and all":  {http.StatusTemporaryRedirect, "/moved/api/v1/query", true},
		"to the same server, without the query": {http.StatusFound, "/login?secret=5f1e0c", false},
		"to nowhere":                            {http.StatusFound, "", false},
		"round and round":                       {http.StatusTemporaryRedirect, "/api/v1/query", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/api/v1/query" {
					healthy("moved")(w, r)
					return
				}
				if test.to != "" {
					w.Header().Set("Location", test.to)
				}
				w.WriteHeader(test.status)
			})
			given := prometheus(s.URL)
			given.BearerTokenFile = written(t, "token", "the-secret-token")
			c := client(t, given)
			if test.followed {
				mustAnswer(t, c, "moved")
				return
			}
			if text := mustFail(t, c); strings.Contains(text, "5f1e0c") {
				t.Errorf("a secret is in %q", text)
			}
			if saw := other.requests(); len(saw) != 0 {
				t.Errorf("another server was sent %+v", saw)
			}
		})
	}
}

func TestWarningsAreHandedOn(t *testing.T) {
	s := serve(t, answers(200, `{"status":"success","isPartial":true,"warnings":["one store failed\n","hunter2-password"],"data":{"resultType":"vector","result":[]}}`))
	address, _ := url.Parse(s.URL)
	address.User = url.UserPassword("me", "hunter2-password")
	_, result, err := ask(client(t, prometheus(address.String())), cpu)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"one store failed ", "[hidden]", "the server says that its answer is partial"}
	if diff := cmp.Diff(want, result.Warnings); diff != "" {
		t.Error(diff)
	}
	if !result.Partial || result.Evaluated != 0 || result.Received.IsZero() {
		t.Errorf("got %+v for an answer without series", result)
	}
}

// TestAServersWarningsMakeAnAnswerPartial, but not what is wrong here: see the credentials' own tests.
func TestAServersWarningsMakeAnAnswerPartial(t *testing.T) {
	for extra, want := range map[string]bool{`"warnings":["x"]`: true, `"isPartial":true`: true, `"isPartial":false,"warnings":[]`: false} {
		s := serve(t, answers(200, `{"status":"success",`+extra+`,"data":{"resultType":"vector","result":[]}}`))
		c := client(t, prometheus(s.URL))
		if _, result, err := ask(c, cpu); err != nil || result.Partial != want {
			t.Errorf("%s: got %+v, %v, want Partial %v", extra, result, err, want)
		}
		s.becomes(healthy("a"))
		if result := mustAnswer(t, c, "a"); result.Partial {
			t.Errorf("the next answer is partial too")
		}
	}
}

func TestAConnectionIsUsedAgain(t *testing.T) {
	addresses := map[string]bool{}
	s := serve(t, nil)
	s.becomes(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		addresses[r.RemoteAddr] = true
		s.mu.Unlock()
		healthy("a")(w, r)
	})
	c := client(t, prometheus(s.URL))
	for i := 0; i < 5; i++ {
		mustAnswer(t, c, "a")
	}
	if len(addresses) != 1 {
		t.Errorf("5 requests came over %d connections", len(addresses))
	}
	// The server closes it, and the next request does not notice.
	s.CloseClientConnections()
	mustAnswer(t, c, "a")
}

func TestNewRefusesWhatIsNoEndpointWithoutRepeatingIt(t *testing.T) {
	for _, address := range []string{"", "://hunter2", "prometheus:9090", "ftp://hunter2@a", "http://", "http://hunter2:%zz@a", "/hunter2"} {
		_, err := New(prometheus("http://a", address))
		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "endpoints[1]") {
			t.Errorf("%q: got %v", address, err)
		}
	}
	if _, err := New(prometheus()); err == nil {
		t.Error("no endpoint is no error")
	}
}

func TestAClosedClientAsksNothing(t *testing.T) {
	s := serve(t, healthy("a"))
	c := client(t, prometheus(s.URL))
	mustAnswer(t, c, "a")
	c.Close()
	mustFail(t, c)
	if len(s.requests()) != 1 {
		t.Error("the server was asked")
	}
}

func TestAnAnswerWithoutSeriesHasNoTime(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch query := r.Form.Get("query"); {
		case strings.Contains(query, "bad"):
			answers(422, `{"status":"error","errorType":"execution","error":"x"}`)(w, r)
		case strings.Contains(query, "timestamp(load)"):
			healthy("a")(w, r)
		default:
			fmt.Fprint(w, vector())
		}
	})
	all, result, err := ask(client(t, prometheus(s.URL)), cpu, Query{Name: "gpu", Value: "none"}, Query{Name: "memory", Value: "bad"})
	if err != nil || len(all) != 2 || len(result.Failed) != 1 {
		t.Fatalf("got %v, %+v, %v", all, result, err)
	}
	if result.Evaluated != 1700000000.25 {
		t.Errorf("evaluated at %v: the empty answer came last, and its time is none", result.Evaluated)
	}
}

func TestAnEmptyAnswerCountsOnlyIfAllAreEmpty(t *testing.T) {
	first, second := serve(t, answers(200, vector())), serve(t, healthy("second"))
	c := client(t, prometheus(first.URL, second.URL))
	if result := mustAnswer(t, c, "second"); result.Requests != 2 || result.Endpoint != second.URL {
		t.Errorf("got %+v", result)
	}
	second.becomes(answers(200, vector()))
	all, result, err := ask(c, cpu)
	if err != nil || len(all) != 0 || result.Endpoint != second.URL || result.Requests != 2 || result.Received.IsZero() {
		t.Errorf("got %+v, %v, want the empty answer of the endpoint that answered before", result, err)
	}
	// Before there are two scrapes to make a rate of, there are times and no loads.
	first.becomes(answers(200, vector(series("first", "0t", "1699999990"))))
	second.becomes(healthy("second"))
	if result := mustAnswer(t, c, "second"); result.Series != 2 {
		t.Errorf("got %+v", result)
	}
	c.current = 0
	if result := mustAnswer(t, c, "second"); result.Requests != 2 || result.Series != 2 {
		t.Errorf("got %+v, want the times without loads of the first endpoint to count as nothing", result)
	}
	c.current = 0
	second.becomes(answers(200, vector()))
	all, result, err = ask(c, cpu)
	if err != nil || len(all) != 0 || result.Series != 0 || result.Endpoint != first.URL {
		t.Errorf("got %v, %+v, %v, want an answer without series", all, result, err)
	}
	second.becomes(answers(500, ""))
	if text := mustFail(t, c); !strings.Contains(text, "no series") || !strings.Contains(text, "HTTP status 500") {
		t.Error(text)
	}
}

func TestAMethodIsKeptOnlyIfItIsOfUse(t *testing.T) {
	methods := func(s *server) (methods []string) {
		for _, saw := range s.requests() {
			methods = append(methods, saw.method)
		}
		return methods
	}
	// by answers each method in its own way.
	by := func(post, get http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				post(w, r)
				return
			}
			get(w, r)
		}
	}
	s := serve(t, by(answers(403, ""), answers(502, "")))
	c := client(t, prometheus(s.URL))
	mustFail(t, c)
	s.becomes(by(healthy("a"), answers(502, "")))
	mustAnswer(t, c, "a")

	// A question can be too long for an address, and for nothing else.
	s.becomes(by(answers(405, ""), healthy("a")))
	mustAnswer(t, c, "a")
	for _, status := range []int{413, 414, 431} {
		c.endpoints[0].get = true
		s.becomes(by(healthy("a"), answers(status, "")))
		mustAnswer(t, c, "a")
		mustAnswer(t, c, "a")
		if diff := cmp.Diff([]string{"GET", "POST", "POST"}, methods(s)); diff != "" {
			t.Error(diff)
		}
	}

	// If nothing else is taken, shorter questions may do.
	s.becomes(by(answers(405, ""), func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Form.Get("query"), "\nor\n") {
			w.WriteHeader(414)
			return
		}
		healthy("a")(w, r)
	}))
	for i := 0; i < 2; i++ {
		all, result, err := ask(c, Query{Name: "cpu", Value: "x"}, Query{Name: "memory", Value: "y"})
		if err != nil || len(all) != 2 || result.Failed != nil {
			t.Errorf("got %v, %+v, %v", all, result, err)
		}
	}
	if diff := cmp.Diff([]string{"POST", "GET", "GET", "GET", "GET", "POST", "GET", "GET"}, methods(s)); diff != "" {
		t.Error(diff)
	}
}

var timedOut = answers(503, `{"status":"error","errorType":"timeout","error":"query timed out in expression evaluation"}`)

func TestAServerThatIsTooSlowIsNotAskedMore(t *testing.T) {
	for name, do := range map[string]http.HandlerFunc{
		"with status 503": timedOut,
		"with status 200": answers(200, `{"status":"error","errorType":"timeout","error":"query timed out in expression evaluation"}`),
	} {
		first, second := serve(t, do), serve(t, do)
		c := client(t, prometheus(first.URL, second.URL))
		for i := 1; i <= 10; i++ {
			_, result, err := ask(c, cpu, Query{Name: "memory", Value: "y"}, Query{Name: "gpu", Value: "z"})
			if err == nil || !strings.Contains(err.Error(), "timed out") || !strings.Contains(err.Error(), "next: ") || result.Requests != 2 {
				t.Errorf("%s: refresh %d: got %+v, %v, want one request to each endpoint", name, i, result, err)
			}
		}
	}
}

func TestAskingOneByOneEnds(t *testing.T) {
	// Each query takes nearly all the time that it may, and the server refuses it just before the client would give up.
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Form.Get("query"), "\nor\n") {
			select {
			case <-time.After(80 * time.Millisecond):
			case <-r.Context().Done():
			}
		}
		answers(422, "")(w, r)
	})
	given := prometheus(s.URL)
	given.Timeout.Duration = 100 * time.Millisecond
	queries := make([]Query, 30)
	for i := range queries {
		queries[i] = Query{Name: fmt.Sprint("r", i), Value: fmt.Sprint("x", i)}
	}
	if _, result, err := ask(client(t, given), queries...); err == nil || result.Requests > 10 {
		t.Errorf("%d requests, each of which took nearly the time in which two could be asked: %v", result.Requests, err)
	}
}

func TestWhatWasRefusedIsAskedByItself(t *testing.T) {
	refusing := doesIf(answers(422, `{"status":"error","errorType":"execution","error":"x"}`), "bad")
	s := serve(t, refusing)
	c := client(t, prometheus(s.URL))
	for i, step := range []struct {
		do               http.HandlerFunc
		requests, failed int
	}{{refusing, 5, 1}, {refusing, 2, 1}, {timedOutIf("bad"), 2, 1}, {healthy("a"), 2, 0}, {healthy("a"), 1, 0}} {
		s.becomes(step.do)
		all, result, err := ask(c, Query{Name: "a", Value: "x"}, Query{Name: "b", Value: "bad"}, Query{Name: "c", Value: "y"}, Query{Name: "d", Value: "z"})
		if err != nil || len(all) != 4-step.failed || len(result.Failed) != step.failed || result.Requests != step.requests {
			t.Errorf("step %d: got %v, %+v, %v, want %d requests", i+1, all, result, err, step.requests)
		}
	}
}

// doesIf does something if a query has a word in it, and else answers it.
func doesIf(do http.HandlerFunc, word string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Form.Get("query"), word) {
			do(w, r)
			return
		}
		healthy("a")(w, r)
	}
}

// timedOutIf answers that a query took too long if it has a word in it.
func timedOutIf(word string) http.HandlerFunc {
	return doesIf(timedOut, word)
}
