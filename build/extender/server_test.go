// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// verbs are all verbs. The responses to the first two have a field for an error.
var verbs = []string{"filter", "bind", "prioritize", "preempt"}

// wholeAnswer has every field of any response.
type wholeAnswer struct {
	extenderv1.ExtenderFilterResult
	extenderv1.ExtenderPreemptionResult
}

// checkFailure checks that a response is an error in the form of its verb, and nothing else. It returns the text.
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
	nodes := []*corev1.Node{diskNode("a", "ssd"), diskNode("b", "ssd")}
	for _, mode := range modes {
		f := newFixture(t, enabling("name: Broken", "name: Labelled"), generous, objects(nodes)...)
		// Upstream's client takes the error for a format.
		_, _, _, err := upstreamsClient(t, extenderConfig(f.url, in(mode))).Filter(newPod(), nodes)
		if err == nil || err.Error() != `running "Broken" filter plugin: 100% broken` {
			t.Errorf("filter: %v, want the plugin's reason", err)
		}
		// No node has the label that Labelled reads.
		text := checkFailure(t, f, "prioritize", args(mode, nodes...), http.StatusInternalServerError)
		if !strings.Contains(text, "Labelled") {
			t.Errorf("prioritize: %q, want the name of the plugin", text)
		}
	}
}

// TestRequestsThatNoSchedulerSends includes those that a web page can make a browser send to loopback.
func TestRequestsThatNoSchedulerSends(t *testing.T) {
	f := newFixture(t, byDiskType, generous, diskNode("a", "ssd"))
	body := encode(t, args("names", diskNode("a", "ssd")))
	for name, test := range map[string]struct {
		method, path, contentType string
		status                    int
		text                      string
	}{
		"valid":          {"POST", "/filter", "application/json; charset=UTF-8", 200, `"NodeNames":["a"]`},
		"GET":            {"GET", "/filter", "application/json", 404, "nothing is served at GET /filter"},
		"no type":        {"POST", "/filter", "", 415, "is not application/json"},
		"a form":         {"POST", "/bind", "application/x-www-form-urlencoded", 415, "is not application/json"},
		"plain text":     {"POST", "/bind", "text/plain", 415, "is not application/json"},
		"no such verb":   {"POST", "/permit", "application/json", 404, "filter, prioritize, preempt and bind"},
		"below a verb":   {"POST", "/filter/x", "application/json", 404, "nothing is served at POST /filter/x"},
		"health":         {"GET", "/healthz", "", 200, "ok"},
		"health by POST": {"POST", "/healthz", "application/json", 404, "nothing is served at POST /healthz"},
	} {
		t.Run(name, func(t *testing.T) {
			response, content := f.send(t, test.method, test.path, test.contentType, body)
			if response.StatusCode != test.status || !strings.Contains(string(content), test.text) {
				t.Errorf("%s %s, want %d and %q", response.Status, content, test.status, test.text)
			}
		})
	}
}

func TestBodyThatIsTooLong(t *testing.T) {
	f := newFixture(t, byDiskType, Limits{RequestTimeout: long, MaxBodyBytes: 1000}, diskNode("a", "ssd"))
	fits := `{"Pod":` + podJSON + `,"NodeNames":["a"]}`
	fits += strings.Repeat(" ", 1000-len(fits))
	var result extenderv1.ExtenderFilterResult
	if f.post(t, "filter", fits, &result); result.Error != "" {
		t.Errorf("1000 bytes: %s", result.Error)
	}
	for _, verb := range verbs {
		if text := checkFailure(t, f, verb, fits+" ", http.StatusRequestEntityTooLarge); !strings.Contains(text, "--max-body-bytes") {
			t.Errorf("%s: %s", verb, text)
		}
	}
}

// soon is the deadline of requests that are meant to miss it.
const soon = 50 * time.Millisecond

// TestBodyThatNeverArrives sends headers alone. A valid request gets an error, and no connection stays open.
func TestBodyThatNeverArrives(t *testing.T) {
	f := newFixture(t, byDiskType, generous, diskNode("a", "ssd"))
	f.serve(t, Limits{RequestTimeout: time.Second}, NewHandler(f.decider, nil, generous))
	for request, want := range map[string]string{
		"POST /filter": "not received in time", "GET /healthz": "", "GET /filter": "", "POST /nothing": "",
	} {
		connection, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		if err := connection.SetDeadline(time.Now().Add(long)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(connection, request+" HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(bufio.NewReader(connection))
		if err != nil || !strings.Contains(string(content), want) {
			t.Errorf("%s: %v, %s", request, err, content)
		}
	}
}

// TestDeadline covers plugins that stop at the deadline without an error, and one that does not stop. No node may pass.
func TestDeadline(t *testing.T) {
	nodes := []*corev1.Node{diskNode("a", "ssd"), diskNode("b", "ssd")}
	preempt := &extenderv1.ExtenderPreemptionArgs{Pod: newPod(), NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{
		"a": {Pods: []*extenderv1.MetaPod{{UID: "on-a"}}},
	}}
	for _, plugin := range []string{"Patient", "Deaf"} {
		for verb, body := range map[string]any{"filter": args("names", nodes...), "preempt": preempt} {
			t.Run(plugin+" "+verb, func(t *testing.T) {
				f := newFixture(t, enabling("name: "+plugin), Limits{RequestTimeout: soon, MaxBodyBytes: 1 << 20}, objects(nodes, onNode("on-a", "a"))...)
				// The second one waits for its turn.
				for range 2 {
					if text := checkFailure(t, f, verb, body, http.StatusServiceUnavailable); !strings.Contains(text, "no answer within 50ms") {
						t.Errorf("%s: %s", verb, text)
					}
				}
				if response, _ := f.send(t, "GET", "/healthz", "", nil); response.StatusCode != http.StatusOK {
					t.Errorf("health: %s", response.Status)
				}
			})
		}
	}
}

func TestRequestsAreRefusedBeforeTheCachesHaveSynced(t *testing.T) {
	f := newFixture(t, byDiskType, generous, diskNode("a", "ssd"))
	f.decider.cluster.podsSynced = func() bool { return false }
	for _, verb := range []string{"filter", "prioritize", "preempt"} {
		text := checkFailure(t, f, verb, args("names", diskNode("a", "ssd")), http.StatusServiceUnavailable)
		if !strings.Contains(text, "not synced yet") {
			t.Errorf("%s: %s", verb, text)
		}
	}
	if response, _ := f.send(t, "GET", "/healthz", "", nil); response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("health: %s", response.Status)
	}
}

// TestShutdownFinishesRequests stops a server during a request.
func TestShutdownFinishesRequests(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	begun, finish := make(chan struct{}), make(chan struct{})
	options := Options{Limits: generous}
	server := options.server(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-finish
		write(w, http.StatusOK, errorBody{})
	}))
	ctx, cancel := context.WithCancel(t.Context())
	ended, answered := make(chan error, 1), make(chan error, 1)
	go func() { ended <- serve(ctx, server, listener, long) }()
	go func() {
		response, err := http.Get("http://" + listener.Addr().String())
		if err == nil {
			err = response.Body.Close()
		}
		answered <- err
	}()
	<-begun
	cancel()
	await(t, "new connections to be refused", func() bool {
		connection, err := net.Dial("tcp", listener.Addr().String())
		return err != nil || connection.Close() != nil
	})
	close(finish)
	if err := <-answered; err != nil {
		t.Errorf("the request in progress: %v", err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestMetricsAndVerdicts sends requests that succeed and one that fails, and reads the metrics and the log.
func TestMetricsAndVerdicts(t *testing.T) {
	var log logBuffer
	flags := flag.NewFlagSet("", flag.PanicOnError)
	klog.InitFlags(flags)
	if err := flags.Set("v", fmt.Sprint(verdictLevel)); err != nil {
		t.Fatal(err)
	}
	klog.LogToStderr(false)
	klog.SetOutput(&log)
	t.Cleanup(func() {
		klog.LogToStderr(true)
		_ = flags.Set("v", "0")
	})
	f := newFixture(t, byDiskType, generous, diskNode("fits", "ssd"))
	f.post(t, "filter", args("names", diskNode("fits", "ssd"), diskNode("unknown", "hdd")), &wholeAnswer{})
	f.post(t, "prioritize", args("names", diskNode("fits", "ssd")), &json.RawMessage{})
	checkFailure(t, f, "filter", "{", http.StatusBadRequest)
	_, content := f.send(t, "GET", "/metrics", "", nil)
	for _, want := range []string{
		`{result="success",verb="filter"} 1`, `{result="error",verb="filter"} 1`, `{result="success",verb="prioritize"} 1`,
		`{result="error",verb="bind"} 0`,
	} {
		if !strings.Contains(string(content), "scheduler_extender_request_duration_seconds_count"+want+"\n") {
			t.Errorf("no %s in\n%s", want, content)
		}
	}
	klog.Flush()
	for _, want := range []string{
		`"Filtered node" pod="`, `node="fits" fits=true reasons=""`, `node="unknown" fits=false reasons="node(s) not known`, `"Scored node" pod="`, `node="fits" score=`,
	} {
		if !log.contains(want) {
			t.Errorf("no %s in the log", want)
		}
	}
}
