// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// served returns a recorder with three pods, and a function that sends requests to its handler.
func served(leads bool) (*Recorder, func(request *http.Request) *httptest.ResponseRecorder) {
	r := newRecorder(DefaultOptions)
	r.SetLeader("other_1")
	p := podNamed("bound")
	a := r.Begin(framework.NewCycleState(), p, "", 1)
	r.End(a, p, "x", 1, 1, nil)
	r.Bound(p)
	unschedulable(r, podNamed("waits"), []int{3}, rejectedBy("Fit", "<b>Insufficient</b> cpu"))
	unschedulable(r, podNamed("waits-longer"), []int{1}, rejectedBy("Fit", "no"))
	others := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "another page") })
	handler := r.Serve(others, func() bool { return leads })
	return r, func(request *http.Request) *httptest.ResponseRecorder {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		return answer
	}
}

func TestServe(t *testing.T) {
	r, send := served(true)
	r.Sources.WhatIf = func(context.Context, *v1.Pod, bool) (*WhatIf, time.Duration, error) { return &WhatIf{}, 0, nil }
	for _, tt := range []struct {
		method, path string
		want         string
	}{
		{"GET", "/healthz", "another page"},
		{"GET", "/scheduling/podsy", "another page"},
		{"GET", "/scheduling/pods", `"leader":true`},
		{"HEAD", "/scheduling/pods", ""},
		{"GET", "/scheduling/pods/", `"kind":"PodList"`},
		{"GET", "/scheduling/pods?search=Default/WAITS+insufficient", `"name":"waits"`},
		{"GET", "/scheduling/pods?search=waits+memory", `"items":[]`},
		{"GET", "/scheduling/pods?limit=2", `"continue":"2"`},
		{"GET", "/scheduling/pods?limit=2&continue=2", `"items":[{"namespace":"default","name":"bound"`},
		{"GET", "/scheduling/pods?continue=9", `"items":[]`},
		{"GET", "/scheduling/pods/default/waits", `\u003cb\u003eInsufficient`},
		{"GET", "/scheduling/pods/default/waits/", `"kind":"Pod"`},
		{"GET", "/scheduling/openapi", `"swagger": "2.0"`},
	} {
		answer := send(httptest.NewRequest(tt.method, tt.path, nil))
		header := answer.Header()
		if answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), tt.want) || tt.want != "another page" &&
			(header.Get("Content-Type") != "application/json" || header.Get("X-Content-Type-Options") != "nosniff" ||
				header.Get("Cache-Control") != "no-store") {
			t.Errorf("%s %s: %d, %v, want %q in %s", tt.method, tt.path, answer.Code, header, tt.want, answer.Body)
		}
	}
	var list PodList
	if err := json.Unmarshal(send(httptest.NewRequest("GET", PodsPath, nil)).Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	if got := strings.Join(names, " "); got != "waits-longer waits bound" {
		t.Errorf("the order is %s", got)
	}
}

// status returns the Status of an error.
func status(t *testing.T, answer *httptest.ResponseRecorder) metav1.Status {
	t.Helper()
	var status metav1.Status
	if err := json.Unmarshal(answer.Body.Bytes(), &status); err != nil || status.Kind != "Status" || status.Details == nil ||
		len(status.Details.Causes) != 1 || status.Details.Causes[0].Type != "NextCommand" || int(status.Code) != answer.Code {
		t.Fatalf("%d (%v): %s", answer.Code, err, answer.Body)
	}
	return status
}

func TestServeErrors(t *testing.T) {
	r, send := served(true)
	theirs, fresh, old := podNamed("theirs"), podNamed("new"), podNamed("old")
	theirs.Spec.SchedulerName, fresh.Spec.SchedulerName, old.Spec.SchedulerName = "theirs", "default-scheduler", "default-scheduler"
	old.Spec.NodeName = "x"
	r.Sources.Pods, r.Sources.Profiles = existing(podNamed("waits"), theirs, fresh, old), []string{"default-scheduler"}
	r.Sources.WhatIf = func(context.Context, *v1.Pod, bool) (*WhatIf, time.Duration, error) { return &WhatIf{}, 0, nil }
	for _, tt := range []struct {
		method, path, contentType string
		code                      int
		reason                    metav1.StatusReason
		name, message, next       string
	}{
		{"GET", "/scheduling/pods/default/none", "", 404, "NotFound", "default/none", "there is no pod default/none, or it has ended", "kubectl get pods"},
		{"GET", "/scheduling/pods/other/waits", "", 404, "NotFound", "other/waits", "there is no pod other/waits, or it has ended", "kubectl get pods"},
		{"GET", "/scheduling/pods/default/theirs", "", 404, "NotFound", "default/theirs", "has the schedulerName theirs, and this scheduler has the profiles default-scheduler", ""},
		{"GET", "/scheduling/pods/default/new", "", 404, "NotFound", "default/new", "has not been tried yet", "GET /scheduling/queue?search=new"},
		{"GET", "/scheduling/pods/default/old", "", 404, "NotFound", "default/old", "is bound to node x", ""},
		{"GET", "/scheduling/pods/default", "", 404, "NotFound", "default", "is not NAMESPACE/NAME", ""},
		{"GET", "/scheduling/pods/default/waits/more", "", 404, "NotFound", "default/waits/more", "is not NAMESPACE/NAME", ""},
		{"GET", "/scheduling/pods?limit=-1", "", 400, "BadRequest", "", "limit=-1 is not a number", "limit=500"},
		{"POST", "/scheduling/pods", "", 405, "MethodNotAllowed", "", "POST is not allowed", "GET /scheduling/pods"},
		{"DELETE", "/scheduling/what-if", "", 405, "MethodNotAllowed", "", "DELETE is not allowed", ""},
		{"GET", "/scheduling/queue", "", 501, "InternalError", "", "cannot list its queue", ""},
		{"GET", "/scheduling/what-if", "", 400, "BadRequest", "", "pod= is not NAMESPACE/NAME", ""},
		{"GET", "/scheduling/what-if?pod=default/none", "", 404, "NotFound", "default/none", "there is no pod default/none", ""},
		{"POST", "/scheduling/what-if", "application/json", 400, "BadRequest", "", "cannot be decoded", ""},
		{"POST", "/scheduling/what-if", "application/json; charset=utf-8", 400, "BadRequest", "", "cannot be decoded", ""},
		{"POST", "/scheduling/what-if", "application/x-www-form-urlencoded", 415, "UnsupportedMediaType", "", `"application/x-www-form-urlencoded"`, "Content-Type: application/json"},
		{"POST", "/scheduling/what-if", "", 415, "UnsupportedMediaType", "", `""`, ""},
	} {
		request := httptest.NewRequest(tt.method, tt.path, strings.NewReader("\x00"))
		request.Header.Set("Content-Type", tt.contentType)
		answer := send(request)
		got := status(t, answer)
		if answer.Code != tt.code || got.Reason != tt.reason || got.Details.Name != tt.name ||
			!strings.Contains(got.Message, tt.message) || !strings.Contains(got.Details.Causes[0].Message, tt.next) ||
			(answer.Header().Get("Allow") != "") != (tt.code == 405) {
			t.Errorf("%s %s: %d, %+v", tt.method, tt.path, answer.Code, got)
		}
	}
}

// TestServeWhatIf asks a standby and a leader, neither of which has dry runs.
func TestServeWhatIf(t *testing.T) {
	for leads, want := range map[bool]int{false: http.StatusServiceUnavailable, true: http.StatusNotImplemented} {
		_, send := served(leads)
		answer := send(httptest.NewRequest("GET", WhatIfPath+"?pod=default/pod", nil))
		got := status(t, answer)
		isStandby := got.Reason == ReasonStandby && got.Details.Name == "other_1" && strings.Contains(got.Message, "other_1 leads")
		if answer.Code != want || isStandby == leads {
			t.Errorf("leads %v: %+v", leads, got)
		}
	}
}

func TestRequestsOfOtherSites(t *testing.T) {
	_, send := served(true)
	for _, tt := range []struct {
		site, origin string
		want         int
	}{
		{"", "", 501}, {"none", "", 501}, {"same-origin", "https://example.com", 501}, {"", "http://example.com", 501},
		{"same-site", "", 403}, {"cross-site", "", 403}, {"", "https://other.example.com", 403}, {"", "null", 403}, {"", "%", 403},
	} {
		request := httptest.NewRequest(http.MethodPost, WhatIfPath, nil)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Sec-Fetch-Site", tt.site)
		request.Header.Set("Origin", tt.origin)
		if answer := send(request); answer.Code != tt.want {
			t.Errorf("%+v: %d, %s", tt, answer.Code, answer.Body)
		}
	}
}

func TestSearchOfTheQueue(t *testing.T) {
	for text, want := range map[string]int{"": 2, "shop": 2, "shop/web": 1, "nodeaffinity": 1, "web db": 0} {
		queue := Queue{Items: []QueuedPod{{Namespace: "shop", Name: "web", WaitsFor: []string{"NodeAffinity"}}, {Namespace: "shop", Name: "db"}}}
		if queue.search(text); len(queue.Items) != want {
			t.Errorf("%q finds %v, want %d", text, queue.Items, want)
		}
	}
}

// slow is a reader that blocks.
type slow struct {
	*httptest.ResponseRecorder
	writes chan struct{}
	goOn   chan struct{}
}

func (s slow) Write(content []byte) (int, error) {
	s.writes <- struct{}{}
	<-s.goOn
	return s.ResponseRecorder.Write(content)
}

// TestSlowReaders has as many readers that block as are allowed, and one more.
func TestSlowReaders(t *testing.T) {
	handler := newRecorder(DefaultOptions).Serve(http.NotFoundHandler(), func() bool { return true })
	request := httptest.NewRequest("GET", PodsPath, nil)
	writes, goOn := make(chan struct{}), make(chan struct{})
	var readers sync.WaitGroup
	for i := 0; i < sentAtOnce; i++ {
		readers.Add(1)
		go func(request *http.Request) {
			defer readers.Done()
			handler.ServeHTTP(slow{httptest.NewRecorder(), writes, goOn}, request)
		}(of(fmt.Sprint("user-", i/ofUserAtOnce), request))
		<-writes
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	if answer.Code != http.StatusTooManyRequests || answer.Header().Get("Retry-After") != "1" || status(t, answer).Details.RetryAfterSeconds != 1 {
		t.Errorf("one more reader gets %d", answer.Code)
	}
	// Readers that are slow for long keep only their users' places.
	err := wait.PollImmediate(100*time.Millisecond, time.Minute, func() (bool, error) {
		answer = httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		return answer.Code == http.StatusOK, nil
	})
	if err != nil {
		t.Errorf("while they are slow, a reader gets %d", answer.Code)
	}
	close(goOn)
	readers.Wait()
	answer = httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	if answer.Code != http.StatusOK {
		t.Errorf("after they have read, a reader gets %d", answer.Code)
	}
}

// of returns a request of a user.
func of(name string, request *http.Request) *http.Request {
	return request.WithContext(apirequest.WithUser(request.Context(), &user.DefaultInfo{Name: name}))
}

// TestSilentSenders sends requests of one user whose manifests never arrive, one more than are allowed at once: each is
// answered, and so are other users.
func TestSilentSenders(t *testing.T) {
	handler := newRecorder(DefaultOptions).Serve(http.NotFoundHandler(), func() bool { return true })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		handler.ServeHTTP(w, of(request.Header.Get("User"), request))
	}))
	defer server.Close()
	send := func(request string) (code int) {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			return 0
		}
		defer conn.Close()
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		fmt.Fprint(conn, request)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return 0
		}
		return answer.StatusCode
	}
	get := func(user string) int {
		return send("GET " + PodsPath + " HTTP/1.1\r\nHost: x\r\nUser: " + user + "\r\n\r\n")
	}
	codes := make(chan int)
	for i := 0; i <= ofUserAtOnce; i++ {
		go func() {
			codes <- send("POST " + WhatIfPath + " HTTP/1.1\r\nHost: x\r\nUser: silent\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
		}()
	}
	// The one that is too many is answered at once, the others after timeOfManifest.
	first, same, other := <-codes, get("silent"), get("other")
	if first != http.StatusTooManyRequests || same != http.StatusTooManyRequests || other != http.StatusOK {
		t.Errorf("one request too many gets %d, one more of the user %d, and another user %d", first, same, other)
	}
	for i := 0; i < ofUserAtOnce; i++ {
		if code := <-codes; code != http.StatusRequestTimeout {
			t.Errorf("a manifest that does not arrive gets %d", code)
		}
	}
	if code := get("silent"); code != http.StatusOK {
		t.Errorf("afterwards the user gets %d", code)
	}
}

// TestLongDryRunCountsInFull has a dry run with a plugin that ignored the limit, and paused scheduling for 3 s.
func TestLongDryRunCountsInFull(t *testing.T) {
	r, send := served(true)
	r.Sources.WhatIf = func(context.Context, *v1.Pod, bool) (*WhatIf, time.Duration, error) {
		return &WhatIf{}, 3 * time.Second, nil
	}
	request := httptest.NewRequest("POST", WhatIfPath, strings.NewReader(
		`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "new"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}`))
	request.Header.Set("Content-Type", "application/json")
	before := time.Now()
	if answer := send(request); answer.Code != http.StatusOK {
		t.Fatalf("%d: %s", answer.Code, answer.Body)
	}
	if pause := r.whatIfs.next.Sub(before); pause < 57*time.Second {
		t.Errorf("the next dry run waits for %v, want 19 times 3 s", pause)
	}
}

// TestReadersAtOnce reads while attempts are made; the race detector watches.
func TestReadersAtOnce(t *testing.T) {
	r := New(Options{Pods: 10, Bytes: 1 << 20})
	r.Sources.Pods = existing()
	r.Sources.Permit = func(func(string, framework.WaitingPod)) {}
	handler := r.Serve(http.NotFoundHandler(), func() bool { return true })
	done := make(chan struct{})
	var readers sync.WaitGroup
	codes := make([]map[int]int, 8)
	for i := range codes {
		codes[i] = map[int]int{}
		readers.Add(1)
		go func(seen map[int]int) {
			defer readers.Done()
			for {
				select {
				case <-done:
					return
				default:
				}
				for _, path := range []string{PodsPath, PodsPath + "/default/pod-1"} {
					answer := httptest.NewRecorder()
					handler.ServeHTTP(answer, httptest.NewRequest("GET", path, nil))
					seen[answer.Code]++
				}
			}
		}(codes[i])
	}
	var binding sync.WaitGroup
	for i := 0; i < 2000; i++ {
		p := podNamed(fmt.Sprint("pod-", i%20))
		if i%2 == 0 {
			unschedulable(r, p, []int{2}, rejectedBy("Fit", "no"))
			continue
		}
		a := r.Begin(framework.NewCycleState(), p, "", 1)
		a.Hold(func() []Plugin { return []Plugin{{"Plain", 1}} }, func(int, int) (int64, int64) { return 1, 1 }, func() {})
		a.Rank(framework.NodeScoreList{{Name: "x", Score: 1}}, "x")
		r.End(a, p, "x", 1, 1, nil)
		binding.Add(1)
		go func() {
			defer binding.Done()
			r.Bound(p)
		}()
	}
	binding.Wait()
	close(done)
	readers.Wait()
	for _, seen := range codes {
		for code := range seen {
			if code != http.StatusOK && code != http.StatusNotFound && code != http.StatusTooManyRequests {
				t.Errorf("answered %d", code)
			}
		}
	}
}
