// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
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

// podJSON is a pod that has what it must have.
const podJSON = `{"metadata":{"name":"p","namespace":"default","uid":"u"}}`

// malformedRequests are the requests to each verb that must be refused as a whole, with a part of the error.
func malformedRequests() map[string]map[string]string {
	with := func(fields string) string { return `{"Pod":` + podJSON + `,` + fields + `}` }
	binding := `{"PodName":"p","PodNamespace":"default","PodUID":"u","Node":"n"`
	questions := map[string]string{
		`{}`:                              "no Pod",
		`{"Pod":null,"NodeNames":["a"]}`:  "no Pod",
		`{"Pod":"p","NodeNames":["a"]}`:   "cannot unmarshal string",
		`{"pod":{},"NodeNames":["a"]}`:    `unknown field "pod"`,
		with(`"Nodes":null`):              "must be given",
		with(`"Nodes":{},"NodeNames":[]`): "not both",
		with(`"Nodes":[]`):                "cannot unmarshal array",
		with(`"Nodes":{"items":[1]}`):     "Nodes.items[0]: json",
		with(`"Nodes":{"items":[null]}`):  "a node has no name",
		with(`"NodeNames":[1]`):           "cannot unmarshal number",
		with(`"NodeNames":["a",""]`):      "a node has no name",
		with(`"NodeNames":["a","b","a"]`): `node "a" occurs twice`,
		with(`"Nodes":{"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"a"}}]}`): `node "a" occurs twice`,
		with(`"NodeNames":["a"],"Hint":1`):                                              `unknown field "Hint"`,
		with(`"NodeNames":["a"],"NodeNames":["b"]`):                                     `duplicate field "NodeNames"`,
		with(`"NodeNames":["a"` + strings.Repeat(`,"a"`, maxNodes) + `]`):               "has 50001 nodes",
		with(`"Nodes":{"items":[{}` + strings.Repeat(`,{}`, maxNodes) + `]}`):           "has 50001 nodes",
		`{"Pod":{"metadata":{"name":"p","namespace":"default"}},"NodeNames":["a"]}`:     "its UID",
	}
	return map[string]map[string]string{
		"filter": questions, "prioritize": questions,
		"preempt": {
			`{"NodeNameToMetaVictims":{}}`:                                         "no Pod",
			`{"Pod":` + podJSON + `}`:                                              "must be given",
			with(`"NodeNameToVictims":{},"NodeNameToMetaVictims":{}`):              "not both",
			with(`"NodeNameToMetaVictims":{},"Hint":1`):                            `unknown field "Hint"`,
			with(`"NodeNameToMetaVictims":{"":{"Pods":[{"UID":"a"}]}}`):            "a node has no name",
			with(`"NodeNameToMetaVictims":{"n":null}`):                             `no victim is given for node "n"`,
			with(`"NodeNameToVictims":{"n":null}`):                                 `no victim is given for node "n"`,
			with(`"NodeNameToMetaVictims":{"n":{"Pods":[]}}`):                      `no victim is given for node "n"`,
			with(`"NodeNameToMetaVictims":{"n":{"Pods":[null]}}`):                  "it has no UID",
			with(`"NodeNameToVictims":{"n":{"Pods":[null]}}`):                      "it has no UID",
			with(`"NodeNameToVictims":{"n":{"Pods":[{"metadata":{"name":"a"}}]}}`): "it has no UID",
			with(`"NodeNameToMetaVictims":{"n":{"Pods":[` + podJSON + `]}}`):       `unknown field "metadata"`,
			with(`"NodeNameToMetaVictims":{"n":{"Pods":[{"UID":"a"}]},"n":{}}`):    "duplicate",
			with(`"NodeNameToMetaVictims":{"n":{"Pods":[{"UID":"a"}],"Hint":1}}`):  `unknown field "Hint"`,
		},
		"bind": {
			binding + `,"Hint":1}`:                               `unknown field "Hint"`,
			strings.Replace(binding, `"n"`, `""`, 1) + `}`:       "is missing",
			strings.Replace(binding, `"u"`, `""`, 1) + `}`:       "is missing",
			strings.Replace(binding, `"p"`, `""`, 1) + `}`:       "is missing",
			strings.Replace(binding, `"default"`, `""`, 1) + `}`: "is missing",
		},
	}
}

func TestMalformedRequestsGetAnErrorAlone(t *testing.T) {
	f := newFixture(t, byDiskType, generous, diskNode("a", "ssd"), onNode("on-a", "a"))
	for verb, requests := range malformedRequests() {
		maps.Copy(requests, map[string]string{
			"": "unexpected end", "pod": "invalid character", "[]": "cannot unmarshal array", "{}{}": "after top-level value",
			strings.Repeat("[", 100_000): "exceeded max depth",
		})
		for body, want := range requests {
			if text := checkFailure(t, f, verb, body, http.StatusBadRequest); !strings.Contains(text, want) {
				t.Errorf("%s %.200s: %s, want %s", verb, body, text, want)
			}
		}
	}
}

// TestPluginThatFails also checks that a panic fails its request alone, and that its stack is logged.
func TestPluginThatFails(t *testing.T) {
	scored := func(score string) *corev1.Node { return st.MakeNode().Name("node-"+score).Label("score", score).Obj() }
	nodes := []*corev1.Node{scored("7"), scored("-1"), scored("101"), scored("-2"), scored("?")}
	for _, mode := range modes {
		f := newFixture(t, enabling("name: Broken", "name: Labelled"), generous, objects(nodes)...)
		panicking := newFixture(t, enabling("name: Panicking"), generous, objects(nodes)...)
		log := plugintest.CaptureLog(t)
		// Upstream's client takes the error for a format.
		_, _, _, err := upstreamsClient(t, extenderConfig(f.url, in(mode))).Filter(newPod(), nodes)
		if err == nil || err.Error() != `running "Broken" filter plugin: 100% broken` {
			t.Errorf("filter: %v, want the plugin's reason", err)
		}
		if text := checkFailure(t, panicking, "filter", args(mode, nodes...), http.StatusOK); !strings.Contains(text, "panicked: out of order") {
			t.Errorf("filter: %q", text)
		}
		for i, want := range []string{1: "panicked: a score", 2: "panicked: all scores", 3: "the score -2", 4: "Labelled"} {
			if want == "" {
				continue
			}
			text := checkFailure(t, f, "prioritize", args(mode, nodes[i], nodes[0]), http.StatusInternalServerError)
			if !strings.Contains(text, want) {
				t.Errorf("prioritize: %q, want %q", text, want)
			}
		}
		klog.Flush()
		for _, function := range []string{"filter.Filter", "labelled).Score", "labelled).NormalizeScore"} {
			if !log.Contains(function) {
				t.Errorf("no stack with %s in the log", function)
			}
		}
		if status := f.post(t, "prioritize", args(mode, nodes[0]), &extenderv1.HostPriorityList{}); status != http.StatusOK {
			t.Errorf("the next request: %d", status)
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

// TestRequestsAreRefused before the caches have synced, and without --bind.
func TestRequestsAreRefused(t *testing.T) {
	f := newFixture(t, byDiskType, generous, diskNode("a", "ssd"))
	f.serve(t, generous, NewHandler(f.decider, nil, generous))
	f.decider.cluster.podsSynced = func() bool { return false }
	for verb, want := range map[string]string{
		"filter": "not synced yet", "prioritize": "not synced yet", "preempt": "not synced yet", "bind": "start it with --bind",
	} {
		if text := checkFailure(t, f, verb, "{}", http.StatusServiceUnavailable); !strings.Contains(text, want) {
			t.Errorf("%s: %s, want %s", verb, text, want)
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
	plugintest.WaitFor(t, "new connections to be refused", func() bool {
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
	flags := flag.NewFlagSet("", flag.PanicOnError)
	klog.InitFlags(flags)
	if err := flags.Set("v", fmt.Sprint(verdictLevel)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flags.Set("v", "0") })
	log := plugintest.CaptureLog(t)
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
		if !log.Contains(want) {
			t.Errorf("no %s in the log", want)
		}
	}
}
