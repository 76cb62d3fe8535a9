// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// verbs are all that a scheduler asks; of these, the first two have a field for an error in the type of the answer.
var verbs = []string{"filter", "bind", "prioritize", "preempt"}

// wholeAnswer is every field that any answer has.
type wholeAnswer struct {
	extenderv1.ExtenderFilterResult
	extenderv1.ExtenderPreemptionResult
}

// checkFailure sees that an answer is an error, in the way that its verb has, and nothing else. It gives the text.
func checkFailure(t *testing.T, f *fixture, verb string, body any, status int) string {
	t.Helper()
	var answer wholeAnswer
	got := f.post(t, verb, body, &answer)
	if slices.Contains(verbs[:2], verb) {
		status = http.StatusOK
	}
	if got != status || answer.Error == "" || answer.Nodes != nil || answer.NodeNames != nil || answer.FailedNodes != nil ||
		answer.FailedAndUnresolvableNodes != nil || answer.NodeNameToMetaVictims != nil {
		t.Errorf("%s: status %d, want %d; %+v, want an error alone", verb, got, status, answer)
	}
	return answer.Error
}

func TestMalformedRequestsGetAnErrorAlone(t *testing.T) {
	f := newFixture(t, byDiskType, generous, diskNode("a", "ssd"), onNode("on-a", "a"))
	for _, verb := range verbs {
		for _, body := range []string{"", "pod", "{", "[]", "{}", "null", `{"Hint":1}`, "{}{}", "\x00\xff", strings.Repeat("[", 100_000)} {
			checkFailure(t, f, verb, body, http.StatusBadRequest)
		}
	}
}

func TestFailureOfAPlugin(t *testing.T) {
	nodes := []*corev1.Node{diskNode("whole", "ssd"), diskNode("broken", "ssd")}
	for mode, args := range modes {
		t.Run(mode, func(t *testing.T) {
			f := newFixture(t, enabling("name: Broken", "name: Labelled"), generous, objects(nodes)...)
			if text := checkFailure(t, f, "filter", args(nodes...), 0); !strings.Contains(text, "broken") {
				t.Errorf("filter: %q, want the plugin's reason", text)
			}
			// No node has the label that Labelled reads.
			text := checkFailure(t, f, "prioritize", args(nodes...), http.StatusInternalServerError)
			if !strings.Contains(text, "Labelled") {
				t.Errorf("prioritize: %q, want the name of the plugin", text)
			}
		})
	}
}

// TestErrorsAreWrittenForTheScheduler reads an error as upstream's client does, which takes it for a format.
func TestErrorsAreWrittenForTheScheduler(t *testing.T) {
	f := newFixture(t, enabling("name: Broken"), generous, diskNode("broken", "ssd"))
	text := checkFailure(t, f, "filter", modes["names"](diskNode("broken", "ssd")), 0)
	var nothing []any
	if got := fmt.Errorf(text, nothing...).Error(); got != `running "Broken" filter plugin: 100% broken` {
		t.Errorf("the scheduler prints %q", got)
	}
}

func TestWhatNoSchedulerSends(t *testing.T) {
	f := newFixture(t, byDiskType, generous, diskNode("a", "ssd"))
	body := string(encode(t, modes["names"](diskNode("a", "ssd"))))
	for name, test := range map[string]struct {
		method, path string
		header       fields
		status       int
		text         string
	}{
		"right":             {"POST", "/filter", fields{"Content-Type": "application/json"}, 200, `"NodeNames":["a"]`},
		"with a charset":    {"POST", "/filter", fields{"Content-Type": "application/json; charset=UTF-8"}, 200, `"NodeNames":["a"]`},
		"GET":               {"GET", "/filter", fields{"Content-Type": "application/json"}, 405, "GET is not POST"},
		"PUT":               {"PUT", "/bind", fields{"Content-Type": "application/json"}, 405, "PUT is not POST"},
		"no type":           {"POST", "/filter", nil, 415, "is not application/json"},
		"a form":            {"POST", "/bind", fields{"Content-Type": "application/x-www-form-urlencoded"}, 415, "is not application/json"},
		"plain text":        {"POST", "/bind", fields{"Content-Type": "text/plain"}, 415, "is not application/json"},
		"another charset":   {"POST", "/filter", fields{"Content-Type": "application/json; charset=utf-16"}, 415, "is not application/json"},
		"compressed":        {"POST", "/filter", fields{"Content-Type": "application/json", "Content-Encoding": "gzip"}, 415, "gzip"},
		"no such verb":      {"POST", "/permit", fields{"Content-Type": "application/json"}, 404, "filter, prioritize, preempt and bind"},
		"below a verb":      {"POST", "/filter/x", fields{"Content-Type": "application/json"}, 404, "nothing is served at /filter/x"},
		"root":              {"GET", "/", nil, 404, "nothing is served at /"},
		"health":            {"GET", "/healthz", nil, 200, "ok"},
		"health, by POST":   {"POST", "/healthz", fields{"Content-Type": "application/json"}, 405, "POST is not GET"},
		"health, by a slip": {"GET", "/healthy", nil, 404, "nothing is served at"},
	} {
		t.Run(name, func(t *testing.T) {
			response, content := f.send(t, test.method, test.path, []byte(body), test.header)
			if response.StatusCode != test.status || !strings.Contains(string(content), test.text) {
				t.Errorf("%s %s, want %d and %q", response.Status, content, test.status, test.text)
			}
			if allow := response.Header.Get("Allow"); (test.status == 405) != (allow != "") {
				t.Errorf("Allow: %q", allow)
			}
		})
	}
}

func TestBodyThatIsTooLong(t *testing.T) {
	f := newFixture(t, byDiskType, Limits{RequestTimeout: long, MaxBodyBytes: 1000}, diskNode("a", "ssd"))
	fits := `{"Pod":` + podJSON + `,"NodeNames":["a"]}`
	fits += strings.Repeat(" ", 1000-len(fits))
	var result extenderv1.ExtenderFilterResult
	f.post(t, "filter", fits, &result)
	if got := passed(t, "names", result); len(got) != 1 {
		t.Errorf("1000 bytes: passed %v", got)
	}
	for _, verb := range verbs {
		if text := checkFailure(t, f, verb, fits+" ", http.StatusRequestEntityTooLarge); !strings.Contains(text, "--max-body-bytes") {
			t.Errorf("%s: %s", verb, text)
		}
	}
	// A body whose length is not said beforehand.
	response, err := http.Post(f.url+"/filter", "application/json", io.MultiReader(strings.NewReader(fits), strings.NewReader(" ")))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	result = extenderv1.ExtenderFilterResult{}
	if err := json.NewDecoder(response.Body).Decode(&result); err != nil || !strings.Contains(result.Error, "1000 bytes") {
		t.Errorf("chunked: %v, %+v", err, result)
	}
}

// soon is the deadline of requests that are meant to miss it.
const soon = 50 * time.Millisecond

func TestClientThatIsSlow(t *testing.T) {
	f := newFixture(t, byDiskType, Limits{RequestTimeout: soon, MaxBodyBytes: 1 << 20}, diskNode("a", "ssd"))
	connection, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(long)); err != nil {
		t.Fatal(err)
	}
	// The rest of the body never comes.
	const half = "POST /filter HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
	if _, err := io.WriteString(connection, half); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var result extenderv1.ExtenderFilterResult
	if err := json.NewDecoder(response.Body).Decode(&result); err != nil || !strings.Contains(result.Error, "not received in time") {
		t.Errorf("%v, %+v", err, result)
	}
}

// TestDeadline asks plugins that stop at the deadline as if all was well, and one that does not even stop. Neither's
// nodes may pass, nor score.
func TestDeadline(t *testing.T) {
	nodes := []*corev1.Node{diskNode("a", "ssd"), diskNode("b", "ssd")}
	for name, test := range map[string]struct {
		plugin string
		verbs  []string
	}{
		"stops":         {"name: Patient", []string{"filter", "prioritize", "preempt"}},
		"does not stop": {"name: Deaf", []string{"filter", "preempt"}},
	} {
		for _, verb := range test.verbs {
			t.Run(name+" "+verb, func(t *testing.T) {
				f := newFixture(t, enabling(test.plugin), Limits{RequestTimeout: soon, MaxBodyBytes: 1 << 20},
					objects(nodes, onNode("on-a", "a"), onNode("on-b", "b"))...)
				var body any = modes["names"](nodes...)
				if verb == "preempt" {
					body = &extenderv1.ExtenderPreemptionArgs{Pod: newPod(), NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{
						"a": {Pods: []*extenderv1.MetaPod{{UID: "on-a"}}}, "b": {Pods: []*extenderv1.MetaPod{{UID: "on-b"}}},
					}}
				}
				// The second one waits for the first one's turn to end.
				for range 2 {
					if text := checkFailure(t, f, verb, body, http.StatusServiceUnavailable); !strings.Contains(text, "no answer within 50ms") {
						t.Errorf("%s: %s", verb, text)
					}
				}
				if response, err := http.Get(f.url + "/healthz"); err != nil || response.Body.Close() != nil || response.StatusCode != 200 {
					t.Errorf("health: %v, %v", response, err)
				}
			})
		}
	}
}

func TestBindDoesNotWaitForPlugins(t *testing.T) {
	pod := newPod()
	f := newFixture(t, enabling("name: Deaf"), generous, diskNode("a", "ssd"), pod)
	ctx, cancel := context.WithCancel(t.Context())
	question := bytes.NewReader(encode(t, modes["names"](diskNode("a", "ssd"))))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url+"/filter", question)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	asked := make(chan error, 1)
	go func() {
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			err = response.Body.Close()
		}
		asked <- err
	}()
	for len(f.decider.turn) == 0 { // until the filter has begun
		select {
		case err := <-asked:
			t.Fatalf("the filter ended before it had begun: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	var result extenderv1.ExtenderBindingResult
	f.post(t, "bind", extenderv1.ExtenderBindingArgs{PodName: pod.Name, PodNamespace: pod.Namespace, PodUID: pod.UID, Node: "a"}, &result)
	if result.Error != "" {
		t.Error(result.Error)
	}
	cancel()
	if err := <-asked; !errors.Is(err, context.Canceled) {
		t.Errorf("the filter did not go on until the pod was bound: %v", err)
	}
}

func TestNothingIsAnsweredBeforeTheClusterIsKnown(t *testing.T) {
	profile, err := LoadProfile(writeFile(t, "config.yaml", byDiskType), "", testPlugins(t))
	if err != nil {
		t.Fatal(err)
	}
	// A factory that is never started.
	client := fake.NewSimpleClientset(diskNode("a", "ssd"))
	decider, err := newDecider(profile, connections{client: client, factory: newInformerFactory(client), events: &events.FakeRecorder{}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(NewHandler(decider, &Binder{client: client}, generous))
	t.Cleanup(server.Close)
	f := &fixture{url: server.URL}
	for _, verb := range []string{"filter", "prioritize", "preempt"} {
		text := checkFailure(t, f, verb, modes["names"](diskNode("a", "ssd")), http.StatusServiceUnavailable)
		if !strings.Contains(text, "not synced yet") {
			t.Errorf("%s: %s", verb, text)
		}
	}
	response, err := http.Get(server.URL + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("health: %s", response.Status)
	}
}

// TestEndAnswersWhatHasBegun ends a server in the middle of a request.
func TestEndAnswersWhatHasBegun(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	begun, goOn := make(chan struct{}), make(chan struct{})
	options := Options{Limits: generous}
	server := options.server(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-goOn
		write(w, http.StatusOK, errorBody{})
	}))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, server, listener, long) }()
	answered := make(chan error, 1)
	go func() {
		response, err := http.Get("http://" + listener.Addr().String())
		if err == nil {
			err = response.Body.Close()
		}
		answered <- err
	}()
	<-begun
	cancel()
	// New ones are refused at once; only then may the old one go on.
	for {
		connection, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			break
		}
		connection.Close()
		time.Sleep(time.Millisecond)
	}
	close(goOn)
	if err := <-answered; err != nil {
		t.Errorf("what had begun: %v", err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestMetricsAndVerdicts sends one request that succeeds and one that fails, and reads the metrics and the log.
func TestMetricsAndVerdicts(t *testing.T) {
	var log strings.Builder
	flags := flag.NewFlagSet("", flag.PanicOnError)
	klog.InitFlags(flags)
	if err := flags.Set("v", "2"); err != nil {
		t.Fatal(err)
	}
	klog.LogToStderr(false)
	klog.SetOutput(&log)
	t.Cleanup(func() {
		klog.LogToStderr(true)
		_ = flags.Set("v", "0")
	})
	f := newFixture(t, byDiskType, generous, diskNode("fits", "ssd"))
	var answer wholeAnswer
	f.post(t, "filter", modes["names"](diskNode("fits", "ssd"), diskNode("unknown", "hdd")), &answer)
	var scores extenderv1.HostPriorityList
	f.post(t, "prioritize", modes["names"](diskNode("fits", "ssd")), &scores)
	checkFailure(t, f, "filter", "{", http.StatusBadRequest)
	_, content := f.send(t, http.MethodGet, "/metrics", nil, nil)
	for _, want := range []string{
		`scheduler_extender_request_duration_seconds_count{result="success",verb="filter"} 1`,
		`scheduler_extender_request_duration_seconds_count{result="error",verb="filter"} 1`,
		`scheduler_extender_request_duration_seconds_count{result="success",verb="prioritize"} 1`,
		`scheduler_extender_request_duration_seconds_count{result="error",verb="bind"} 0`,
	} {
		if !strings.Contains(string(content), want+"\n") {
			t.Errorf("no %s in\n%s", want, content)
		}
	}
	klog.Flush()
	for _, want := range []string{
		`"Filtered node" pod="`, `node="fits" fits=true reasons=""`, `node="unknown" fits=false reasons="node(s) not known`, `"Scored node" pod="`, `node="fits" score=`,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in the log:\n%s", want, log.String())
		}
	}
}
