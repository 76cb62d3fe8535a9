// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestAskSendsOneRequestForEachQuery(t *testing.T) {
	s := serve(t, healthy("a"))
	c := client(t, prometheus(s.URL+"/prefix/"))
	before := time.Now()
	result, err := ask(c,
		Query{Name: "cpu", Value: "x", Timestamp: "y", Deviation: "z"}, Query{Name: "memory", Value: "m # note"})
	if err != nil {
		t.Fatal(err)
	}
	want := []Row{{0, Value, "a", 0.5}, {0, Timestamp, "a", 1699999990}, {0, Deviation, "a", 0.1}, {1, Value, "a", 0.5}}
	if diff := cmp.Diff(want, result.Rows); diff != "" {
		t.Error(diff)
	}
	var queries []string
	for _, saw := range s.requests() {
		queries = append(queries, saw.query)
		if saw.method != http.MethodPost || saw.path != "/prefix/api/v1/query" {
			t.Errorf("the server saw %+v", saw)
		}
		if _, given := saw.form["time"]; given || saw.form["timeout"][0] != "54000ms" {
			t.Errorf("the server decides what now is, and gives up a tenth before the client does: %v", saw.form)
		}
	}
	composed := []string{
		"label_replace((x\n), \"nodeload_term\", \"0v\", \"\", \"\")\nor\n" +
			"label_replace((y\n), \"nodeload_term\", \"0t\", \"\", \"\")\nor\n" +
			"label_replace((z\n), \"nodeload_term\", \"0d\", \"\", \"\")",
		"label_replace((m # note\n), \"nodeload_term\", \"1v\", \"\", \"\")",
	}
	sorted := cmpopts.SortSlices(func(a, b string) bool { return a > b })
	if diff := cmp.Diff(composed, queries, sorted); diff != "" {
		t.Error(diff)
	}
	if result.Requests != 2 || len(result.Rows) != 4 || result.Bytes < 100 || result.Evaluated != 1700000000.25 ||
		result.Failed != nil || result.Endpoint != s.URL+"/prefix/" {
		t.Errorf("got %+v", result)
	}
	if result.Asked.Before(before) || result.Received.Before(result.Asked) || time.Now().Before(result.Received) {
		t.Errorf("asked at %v, received at %v", result.Asked, result.Received)
	}
}

func TestAskReturnsValuesUnchanged(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for name, test := range map[string]struct {
		answer string
		want   []Row
	}{
		"no finite number": {
			vector(series("a", "0v", "NaN"), series("b", "0v", "+Inf"), series("c", "0v", "-Inf"),
				series("d", "0v", "-5035")),
			[]Row{{0, Value, "a", nan}, {0, Value, "b", inf}, {0, Value, "c", -inf}, {0, Value, "d", -5035}},
		},
		"duplicates": {
			vector(series("a", "0v", "1"), series("a", "0v", "2")), []Row{{0, Value, "a", 1}, {0, Value, "a", 2}},
		},
		"series without the label": {
			vector(`{"metric":{"nodeload_term":"0v"},"value":[1,"2"]}`), []Row{{0, Value, "", 2}},
		},
		"other labels, escapes and fields": {
			vector(`{"metric":{"__name__":"x","k8s.io/node":"b","instance":"\u00e9\"","nodeload_term":"0v"},` +
				`"more":[{}],"value":[1,"2"]}`),
			[]Row{{0, Value, "é\"", 2}},
		},
		"a histogram is not a load of 0": {
			vector(series("a", "0v", "1"),
				`{"metric":{"instance":"b","nodeload_term":"0v"},"histogram":[1700000000,{"count":"1"}]}`),
			[]Row{{0, Value, "a", 1}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, answers(200, test.answer))
			result, err := ask(client(t, prometheus(s.URL)), cpu)
			if diff := cmp.Diff(test.want, result.Rows, cmpopts.EquateNaNs()); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}

func TestAskUsesTheLabelOfEachQuery(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		slot := "0v"
		if strings.Contains(r.Form.Get("query"), "gpu") {
			slot = "1v"
		}
		fmt.Fprint(w, vector(`{"metric":{"instance":"pod","Hostname":"a","nodeload_term":"`+slot+`"},`+
			`"value":[1700000000,"0.5"]}`))
	})
	result, err := ask(client(t, prometheus(s.URL)),
		Query{Name: "cpu", Value: "x"}, Query{Name: "gpu", Label: "Hostname", Value: "gpu"})
	if diff := cmp.Diff([]Row{{0, Value, "pod", 0.5}, {1, Value, "a", 0.5}}, result.Rows); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func TestAskUsesThePodOfASeries(t *testing.T) {
	s := serve(t, answers(200, vector(
		`{"metric":{"namespace":"team","pod":"a","nodeload_term":"0v"},"value":[1700000000,"0.5"]}`)))
	result, err := ask(client(t, prometheus(s.URL)), Query{Name: "cpu of pods", Value: "x", Pods: true})
	if diff := cmp.Diff([]Row{{0, Value, "team/a", 0.5}}, result.Rows); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// Two endpoints whose clocks differ by an hour each answer for one of the resources.
func TestAskConvertsTimesToOneClock(t *testing.T) {
	first := serve(t, doesIf(answers(503, refused("timeout", "query timed out")), "mine"))
	second := serve(t, answers(200, vector(
		`{"metric":{"instance":"b","nodeload_term":"1v"},"value":[1700003600,"0.5"]}`,
		`{"metric":{"instance":"b","nodeload_term":"1t"},"value":[1700003600,"1700003590"]}`)))
	result, err := ask(client(t, prometheus(first.URL, second.URL)),
		cpu, Query{Name: "mine", Value: "mine", Timestamp: "mine"})
	if err != nil || len(result.Rows) != 4 || result.Failed != nil || result.Requests != 3 || result.Endpoint != first.URL {
		t.Fatalf("got %+v, %v", result, err)
	}
	// The sample was 10 s old when the second endpoint was asked, a moment after the first.
	if age := result.Evaluated - result.Rows[3].Value; age > 10 || age < 5 {
		t.Errorf("a sample that is 10 s old by the second's clock is %v s old", age)
	}
}

func TestAskBrokenServers(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	const late = "no answer within 300ms"
	for name, test := range map[string]struct {
		do   http.HandlerFunc
		says string
	}{
		"500":                      {answers(500, "<html>"+long), "HTTP status 500"},
		"500 in Prometheus' words": {answers(500, `{"status":"error","errorType":"internal","error":"disk\nfull"}`), "internal: disk full"},
		"JSON of something else":   {answers(503, `{"message":"no route"}`), "HTTP status 503"},
		"a matrix":                 {answers(200, `{"status":"success","data":{"resultType":"matrix","result":[]}}`), "a matrix"},
		"a question of its own":    {answers(200, vector(series("a", "", "1"))), "nodeload_term"},
		"400 of a TLS server":      {answers(400, "Client sent an HTTP request to an HTTPS server."), "https"},
		"404":                      {answers(404, "404 page not found"), "path prefix"},
		"a page to log in":         {answers(200, "<!doctype html>"), "not one of Prometheus"},
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
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, test.do)
			c := client(t, prometheus(s.URL))
			if test.says == late {
				c.prometheus.Timeout.Duration = 300 * time.Millisecond
			}
			if text := mustFail(t, c); !strings.Contains(text, test.says) || strings.Contains(text, "\n") {
				t.Errorf("got %q, want %q in it", text, test.says)
			}
			s.becomes(healthy("a"))
			c.prometheus.Timeout.Duration = time.Minute
			mustAnswer(t, c, "a")
		})
	}
}

func TestAskWithoutServer(t *testing.T) {
	s := serve(t, nil)
	s.Close()
	if text := mustFail(t, client(t, prometheus(s.URL))); !strings.Contains(text, "connection refused") {
		t.Error(text)
	}
}

// Each answer begins like a valid one and continues with fields that have to be read and are ignored.
func TestAskLargeAnswer(t *testing.T) {
	opening := []byte(`{"status":"success",`)
	fields := bytes.Repeat([]byte(`"x":"`+strings.Repeat(" ", 1017)+`",`), 1<<10)
	var compressed bytes.Buffer
	compressor := gzip.NewWriter(&compressed)
	_, _ = compressor.Write(opening)
	for i := 0; i <= largestAnswer>>20; i++ {
		_, _ = compressor.Write(fields)
	}
	_ = compressor.Close()
	for name, do := range map[string]http.HandlerFunc{
		"piece by piece": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(opening)
			for i := 0; i < 2*largestAnswer>>20; i++ {
				if _, err := w.Write(fields); err != nil {
					return
				}
			}
		},
		"compressed a thousandfold": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(compressed.Bytes())
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, doesIf(do, "large"))
			c := client(t, prometheus(s.URL))
			result, err := ask(c, Query{Name: "large", Value: "large"}, Query{Name: "memory", Value: "m"})
			if err != nil || !strings.Contains(fmt.Sprint(result.Failed[0]), "more than 33554432 bytes; next: ") {
				t.Fatalf("got %v, %v", result.Failed, err)
			}
			if result.Bytes > largestAnswer*11/10 {
				t.Errorf("%d bytes were read", result.Bytes)
			}
		})
	}
}

// Each answer is below the limit for one answer.
func TestAskLargeRefresh(t *testing.T) {
	field := bytes.Repeat([]byte(`"x":"`+strings.Repeat(" ", 1017)+`",`), 1<<10)
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"status":"success",`))
		for i := 0; i < largestAnswer>>20-1; i++ {
			if _, err := w.Write(field); err != nil {
				return
			}
		}
		_, _ = w.Write([]byte(`"data":{"resultType":"vector","result":[]}}`))
	})
	var queries []Query
	for i := 0; i <= largestRefresh/largestAnswer; i++ {
		queries = append(queries, Query{Name: fmt.Sprint(i), Value: "large"})
	}
	result, err := ask(client(t, prometheus(s.URL)), queries...)
	if !strings.Contains(fmt.Sprint(err, result.Failed), "the answers of a refresh have more than 134217728 bytes; next: ") {
		t.Errorf("got %v, %v", err, result.Failed)
	}
}

// A query that is refused or slow does not affect the others, and only that query is sent to the next endpoint.
func TestAskOneBadQuery(t *testing.T) {
	for name, test := range map[string]struct {
		do   http.HandlerFunc
		says string
	}{
		"a parse error":            {answers(400, refused("bad_data", "1:5: parse error")), "bad_data: 1:5: parse error"},
		"an error with status 200": {answers(200, refused("422", "bad")), "422: bad"},
		"the server gives up":      {answers(503, refused("timeout", "query timed out")), "query timed out"},
		"a proxy gives up":         {answers(504, "<html>"), "HTTP status 504"},
		"hanging":                  {hangs, "no answer within 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, doesIf(test.do, "bad"))
			c := client(t, prometheus(s.URL))
			if strings.Contains(test.says, "1s") {
				c.prometheus.Timeout.Duration = time.Second
			}
			queries := []Query{{Name: "cpu", Value: "x"}, {Name: "network", Value: "bad"}, {Name: "memory", Value: "y"}}
			result, err := ask(c, queries...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]Row{{0, Value, "a", 0.5}, {2, Value, "a", 0.5}}, result.Rows); diff != "" {
				t.Error(diff)
			}
			why := fmt.Sprint(result.Failed[1])
			if len(result.Failed) != 1 || !strings.Contains(why, test.says) || !strings.Contains(why, "next: ") {
				t.Errorf("failed: %v", result.Failed)
			}
			if result.Requests != 3 {
				t.Errorf("%d requests", result.Requests)
			}
			other := serve(t, healthy("other"))
			c = client(t, prometheus(s.URL, other.URL))
			c.prometheus.Timeout.Duration = time.Second
			result, err = ask(c, queries...)
			want := []Row{{0, Value, "a", 0.5}, {1, Value, "other", 0.5}, {2, Value, "a", 0.5}}
			if diff := cmp.Diff(want, result.Rows); err != nil || diff != "" {
				t.Error(err, diff)
			}
			if result.Failed != nil || len(other.requests()) != 1 || result.Endpoint != s.URL {
				t.Errorf("got %+v, and %d requests to the other", result, len(other.requests()))
			}
		})
	}
}

// Some proxies allow only GET; those that check roles return 403 for POST.
func TestAskPOSTRefused(t *testing.T) {
	for _, status := range []int{http.StatusMethodNotAllowed, http.StatusNotImplemented, http.StatusForbidden} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					w.WriteHeader(status)
					return
				}
				healthy("a")(w, r)
			})
			c := client(t, prometheus(s.URL))
			mustAnswer(t, c, "a")
			s.becomes(answers(status, ""))
			if text := mustFail(t, c); !strings.Contains(text, strconv.Itoa(status)) {
				t.Error(text)
			}
		})
	}
}

func TestAskEndpointsInOrder(t *testing.T) {
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
	// The endpoint that answered last comes first, then the others in order.
	servers[1].becomes(healthy("s1"))
	if result := mustAnswer(t, c, "s2"); result.Requests != 1 {
		t.Errorf("%d requests", result.Requests)
	}
	servers[2].becomes(broken)
	if result := mustAnswer(t, c, "s1"); result.Requests != 3 {
		t.Errorf("%d requests: the third, the first, the second", result.Requests)
	}
	// The first endpoint is tried again after some minutes, at the cost of one request each time while it is down.
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

func TestAskCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	first := serve(t, func(w http.ResponseWriter, r *http.Request) {
		cancel()
		hangs(w, r)
	})
	second := serve(t, healthy("second"))
	c := client(t, prometheus(first.URL, second.URL))
	if _, err := askWithin(ctx, c, cpu); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if len(second.requests()) != 0 {
		t.Error("the next endpoint was asked though no call waits")
	}
	first.becomes(healthy("first"))
	mustAnswer(t, c, "first")
}

func TestAskRedirects(t *testing.T) {
	other := serve(t, healthy("other"))
	for name, test := range map[string]struct {
		status   int
		to       string
		followed bool
	}{
		"to another server":                     {http.StatusTemporaryRedirect, other.URL + "/api/v1/query?secret=5f1e0c", false},
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

func TestAskWarnings(t *testing.T) {
	s := serve(t, answers(200, `{"status":"success","warnings":["one store failed\n","one store failed\n"],`+
		`"data":{"resultType":"vector","result":[]}}`))
	c := client(t, prometheus(s.URL))
	result, err := ask(c, cpu)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"one store failed "}, result.Warnings); diff != "" {
		t.Error(diff)
	}
	if !result.Partial || result.Evaluated != 0 || result.Received.IsZero() {
		t.Errorf("got %+v for an answer without series", result)
	}
	s.becomes(healthy("a"))
	if result := mustAnswer(t, c, "a"); result.Partial || result.Warnings != nil {
		t.Errorf("the next answer has them too: %+v", result)
	}
}

func TestAskReusesConnections(t *testing.T) {
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
	// The server closes the connection, which does not fail the next request.
	s.CloseClientConnections()
	mustAnswer(t, c, "a")
}

func TestAskAnswerWithoutSeries(t *testing.T) {
	s := serve(t, doesIf(answers(200, vector()), "none"))
	result, err := ask(client(t, prometheus(s.URL)),
		Query{Name: "gpu", Value: "none"}, Query{Name: "cpu", Value: "x"})
	if err != nil || len(result.Rows) != 1 || result.Failed != nil || result.Evaluated != 1700000000.25 {
		t.Errorf("got %+v, %v", result, err)
	}
}

func TestAskEmptyAnswers(t *testing.T) {
	empty, noRates := answers(200, vector()), answers(200, vector(series("a", "0t", "1699999990")))
	first, second := serve(t, empty), serve(t, healthy("second"))
	asked := func() *Client { return client(t, prometheus(first.URL, second.URL)) }
	if result := mustAnswer(t, asked(), "second"); result.Requests != 2 || result.Endpoint != second.URL {
		t.Errorf("got %+v", result)
	}
	// Until there are two scrapes for a rate, there are times but no loads.
	first.becomes(noRates)
	if result := mustAnswer(t, asked(), "second"); len(result.Rows) != 2 {
		t.Errorf("got %+v, want the times without loads of the first endpoint to count as nothing", result)
	}
	second.becomes(empty)
	result, err := ask(asked(), cpu)
	if err != nil || len(result.Rows) != 0 || result.Requests != 2 || result.Received.IsZero() {
		t.Errorf("got %+v, %v, want an answer without series", result, err)
	}
	for _, order := range [][]string{{first.URL, second.URL}, {second.URL, first.URL}} {
		second.becomes(answers(500, ""))
		text := mustFail(t, client(t, prometheus(order...)))
		if !strings.Contains(text, "no series") || !strings.Contains(text, "HTTP status 500") {
			t.Error(text)
		}
	}
}

func TestLabels(t *testing.T) {
	empty := serve(t, answers(200, vector()))
	full := serve(t, answers(200, vector(series("a", "0v", "1"))))
	gone := serve(t, answers(200, vector()))
	gone.Close()
	got, err := client(t, prometheus(empty.URL, gone.URL, full.URL)).Labels(context.Background(), "up")
	if err != nil || len(got) != 1 || got[0]["instance"] != "a" {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := client(t, prometheus(empty.URL)).Labels(context.Background(), "up"); err != nil || len(got) > 0 {
		t.Errorf("without series: got %v, %v", got, err)
	}
	if got, err := client(t, prometheus(gone.URL)).Labels(context.Background(), "up"); err == nil {
		t.Errorf("without a server: got %v", got)
	}
}
