// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestBadAnswers is about answers that no Prometheus gives when a test wants them.
func TestBadAnswers(t *testing.T) {
	asJSON := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	success := `{"status":"success","data":{"resultType":"vector","result":[]}}`
	other := httptest.NewServer(asJSON(200, success))
	defer other.Close()
	defer func(most int) { mostPods = most }(mostPods)
	mostPods = 2
	for _, test := range []struct {
		name    string
		handler http.HandlerFunc
		says    string
		// waits is how often it waits before it sends the query again, and first how long at first.
		waits int
		first time.Duration
	}{
		{"HTML", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "<html><title>Log in</title>") }, "it is not a Prometheus, or there is a login page", 0, 0},
		{"an unknown path", http.NotFound, "status 404", 0, 0},
		{"429", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "7")
			http.Error(w, "\x1b[2Jslowly", http.StatusTooManyRequests)
		}, "status 429, 6 times", 5, 7 * time.Second},
		{"503 with HTML", func(w http.ResponseWriter, r *http.Request) { http.Error(w, "<html>", http.StatusServiceUnavailable) }, "status 503, 6 times", 5, time.Second},
		{"a wait that is too long", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "99999999")
			w.WriteHeader(http.StatusTooManyRequests)
		}, "6 times", 5, time.Minute},
		{"a cut answer", asJSON(200, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"a":"b"}`), "is cut, or not what Prometheus answers", 5, time.Second},
		{"another JSON", asJSON(200, `[]`), "not what Prometheus answers", 5, time.Second},
		{"no status", asJSON(200, `{}`), "not what Prometheus answers", 5, time.Second},
		{"matchers that are not valid", asJSON(400, `{"status":"error","errorType":"bad_data","error":"parse \u001b error"}`), `"parse \x1b error"; next: correct --matchers`, 0, 0},
		{"always too many samples", asJSON(422, `{"status":"error","errorType":"execution","error":"query processing would load too many samples into memory in query execution"}`),
			"--query.max-samples", 0, 0},
		{"too much for other databases", asJSON(422, `{"status":"error","errorType":"422","error":"the number of matching timeseries exceeds 300000"}`), "--query.max-samples", 0, 0},
		{"429 in JSON", asJSON(429, `{"status":"error","errorType":"too_many_requests","error":"the tenant exceeded the request rate limit"}`), "rate limit\", 6 times", 5, time.Second},
		{"the API server's proxy refuses", asJSON(403, `{"kind":"Status","status":"Failure","message":"services is forbidden"}`), `status 403: "services is forbidden"`, 0, 0},
		{"a login in JSON", asJSON(401, `{"message":"Unauthorized"}`), `status 401: "Unauthorized"`, 0, 0},
		{"another server, which would get the credentials", http.RedirectHandler(other.URL, http.StatusFound).ServeHTTP, "status 302", 0, 0},
		{"too many pods", func(w http.ResponseWriter, r *http.Request) {
			asJSON(200, fmt.Sprintf(`{"status":"success","data":{"result":[{"metric":{"namespace":"a","pod":"b","uid":"%d"},"value":[1,"1"]}]}}`, time.Now().UnixNano()))(w, r)
		}, "more than 2 pods", 0, 0},
		{"slow", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "does not answer", 5, time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewServer(test.handler)
			defer server.Close()
			out := filepath.Join(t.TempDir(), "history.jsonl")
			options := PrometheusOptions{URL: strings.Replace(server.URL, "//", "//user:secret@", 1), Since: time.Hour, Out: out, Progress: &bytes.Buffer{}}
			var waits []time.Duration
			options.wait = func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil }
			if test.name == "slow" {
				options.Transport = &http.Transport{ResponseHeaderTimeout: time.Millisecond}
			}
			err := FromPrometheusSeries(t.Context(), options)
			if text := fmt.Sprint(err); !strings.Contains(text, test.says) || !strings.Contains(text, "next: ") || strings.ContainsAny(text, "\n\x1b") || strings.Contains(text, "secret") {
				t.Errorf("the error is %q", text)
			}
			if len(waits) != test.waits || test.waits > 0 && waits[0] != test.first {
				t.Errorf("waits: %v", waits)
			}
			for _, name := range []string{out, out + ".partial"} {
				if _, err := os.Stat(name); err == nil {
					t.Errorf("%s is there", name)
				}
			}
		})
	}
}

// TestFilesThatStay checks what is not replaced, and what an error says of a URL.
func TestFilesThatStay(t *testing.T) {
	for content, says := range map[string]string{"": "is not the URL", header: "is there, and is not a history that --prometheus made", "my notes": "is there",
		strings.Replace(header, "watch", "prometheus", 1): "is not the URL"} {
		out := filepath.Join(t.TempDir(), "now.jsonl")
		if err := os.WriteFile(out, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		err := fmt.Sprint(FromPrometheusSeries(t.Context(), PrometheusOptions{URL: "user:secret@host:9090", Since: time.Hour, Out: out, Progress: &bytes.Buffer{}}))
		if !strings.Contains(err, says) || strings.Contains(err, "secret") {
			t.Errorf("the file %q: the error is %s", content, err)
		}
	}
	out := filepath.Join(t.TempDir(), "now.jsonl")
	if err := os.WriteFile(out+".journal", []byte("my diary"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := FromPrometheusSeries(t.Context(), PrometheusOptions{URL: "http://127.0.0.1:1", Since: time.Hour, Out: out, Progress: &bytes.Buffer{}})
	if text, _ := os.ReadFile(out + ".journal"); string(text) != "my diary" || !strings.Contains(fmt.Sprint(err), "is not a journal") {
		t.Errorf("the journal has %q, and the error is %v", text, err)
	}
}
