// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"
)

var start = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// testFollower returns a follower whose file has a content.
func testFollower(t *testing.T, content string) (f *follower, messages *strings.Builder) {
	t.Helper()
	messages = &strings.Builder{}
	f = newFollower(FollowOptions{File: filepath.Join(t.TempDir(), "now.jsonl"), Prune: func(string, map[string]any) {}, Messages: messages}, "here")
	if err := os.WriteFile(f.File, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return f, messages
}

const header = `{"history":1,"start":"2026-01-02T03:00:00Z","source":"watch","by":"","cluster":"here"}` + "\n"

func TestResume(t *testing.T) {
	waits := `{"time":"1s","pod":{"metadata":{"namespace":"a","name":"b"},"spec":{}}}` + "\n"
	for _, test := range []struct{ name, content, want, error string }{
		{name: "a cut line", content: header + waits + `{"time":"2s","bou`, want: header + waits},
		{name: "the last line", content: header + waits + `{"time":"2s","last":true}` + "\n", want: header + waits},
		{name: "nothing"},
		{name: "another cluster", content: strings.Replace(header, "here", "there", 1), error: ":1: the line cannot be continued: the history is of another cluster"},
		{name: "a newer version", content: strings.Replace(header, ":1,", ":2,", 1), error: ":1: the line cannot be continued: the history has version 2, and this release writes version 1"},
		{name: "another source", content: strings.Replace(header, "watch", "prometheus", 1), error: "the history is not one that --follow made"},
		{name: "another file", content: "my notes", error: ":1: the line cannot be continued: EOF"},
		{name: "another file in JSON", content: "{}\n", error: "it is not the header of a history"},
		{name: "a line in the middle", content: header + "my notes\n" + waits, error: ":2: the line cannot be continued: invalid"},
		{name: "a line after the last", content: header + `{"time":"2s","last":true}` + "\n" + waits, error: ":3: the line cannot be continued: it follows the last one"},
		{name: "like no pod", content: header + `{"time":"1s","namespace":"a","name":"b","like":"c/d"}` + "\n", error: `:2: the line cannot be continued: there is no pod "c/d" before`},
		{name: "a long line", content: header + strings.Repeat("x", longestLine) + "\n", error: ":2: the line cannot be continued: bufio: buffer full"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, _ := testFollower(t, test.content)
			err := f.open()
			if got := fmt.Sprint(err); (err != nil) != (test.error != "") || !strings.Contains(got, test.error) {
				t.Errorf("the error is %s, want %s", got, test.error)
			}
			if test.error != "" {
				test.want = test.content
			}
			if text, _ := os.ReadFile(f.File); string(text) != test.want {
				t.Errorf("the file has %q, want %q", text, test.want)
			}
		})
	}
}

// listed returns objects as a client does, with whole numbers.
func listed(t *testing.T, format string, arguments ...any) (found []map[string]any) {
	t.Helper()
	text, err := yaml.YAMLToJSON(fmt.Appendf(nil, format, arguments...))
	var items []any
	if err == nil {
		err = utiljson.Unmarshal(text, &items)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range items {
		found = append(found, item.(map[string]any))
	}
	return found
}

// TestWritten checks what is written as pods come and go, when the clock goes back, and after a gap from 10 s to 20 s.
func TestWritten(t *testing.T) {
	f, messages := testFollower(t, "")
	f.replace(start, listed(t, `[{metadata: {namespace: x, name: done}, status: {phase: Failed}}]`))
	for i, step := range []struct {
		seconds         int
		name, uid, size string
		gone            bool
	}{{1, "a", "1", "s", false}, {2, "b", "2", "s", false}, {3, "a", "1", "s", true}, {4, "a", "3", "large", false}, {2, "c", "4", "s", false}, {9, "d", "5", "large", false}} {
		if f.at = start.Add(time.Duration(step.seconds) * time.Second); step.gone {
			f.gone("x/" + step.name)
			continue
		}
		f.see(listed(t, `[{metadata: {namespace: x, name: %s, uid: %q}, spec: {size: %s, volumes: [{name: token-%d}]}}]`, step.name, step.uid, step.size, i)[0])
	}
	f.alive = start.Add(10 * time.Second)
	f.replace(start.Add(20*time.Second), listed(t, `[{metadata: {namespace: x, name: a, uid: "3"}, spec: {nodeName: node-1}},
		{metadata: {namespace: x, name: c, uid: "4", deletionTimestamp: "2026-01-02T03:00:11Z"}}, {metadata: {namespace: x, name: d, uid: "6"}, spec: {size: s, volumes: []}},
		{metadata: {namespace: x, name: before, creationTimestamp: "2026-01-02T03:00:01Z"}, status: {phase: Failed}},
		{metadata: {namespace: x, name: short, uid: "7", labels: {pod-template-hash: 5d}, creationTimestamp: "2026-01-02T03:00:15Z",
			ownerReferences: [{controller: true, kind: Job, name: etl-29455380}]}, spec: {size: s, volumes: [], nodeName: node-1}, status: {phase: Failed}}]`))
	if f.flush(); f.err != nil {
		t.Fatal(f.err)
	}
	text, _ := os.ReadFile(f.File)
	first := func(time, name, size, uid string) string {
		return fmt.Sprintf(`{"time":%q,"pod":{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":"x"},"spec":{"size":%q,"volumes":[]}},"uid":%q}`, time, name, size, uid) + "\n"
	}
	want := header + first("1s", "a", "s", "1") + `{"time":"2s","namespace":"x","name":"b","like":"x/a","uid":"2"}` + "\n" +
		`{"time":"3s","delete":"x/a"}` + "\n" + `{"time":"3s","ended":"x/a"}` + "\n" + first("4s", "a", "large", "3") +
		first("4s", "c", "s", "4") + `{"time":"9s","namespace":"x","name":"d","like":"x/a","uid":"5"}` + "\n" +
		`{"time":"10s","gap":"10s","reason":"the cluster was not watched"}
{"time":"20s","on":"node-1","bound":"x/a"}
{"time":"20s","delete":"x/c"}
{"time":"20s","delete":"x/d"}
{"time":"20s","ended":"x/d"}
{"time":"20s","namespace":"x","name":"d","like":"x/c","uid":"6"}
{"time":"20s","pod":{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"pod-template-hash":"5d"},"name":"short","namespace":"x"},"spec":{"size":"s","volumes":[]}},"uid":"7","owner":"Job/etl-29455380","workload":"CronJob/etl"}
{"time":"20s","on":"node-1","bound":"x/short"}
{"time":"20s","ended":"x/short"}
{"time":"20s","delete":"x/b"}
{"time":"20s","ended":"x/b"}
`
	if string(text) != want {
		t.Errorf("the file has\n%s\nwant\n%s", text, want)
	}
	if !strings.Contains(messages.String(), "the clock went back by 2s") {
		t.Errorf("%q was printed", messages)
	}
}

// TestGone checks that a session ends when the API server no longer has the changes.
func TestGone(t *testing.T) {
	f, _ := testFollower(t, "")
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		{Version: "v1", Resource: "nodes"}: "NodeList", {Version: "v1", Resource: "pods"}: "PodList"})
	client.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) {
		watched := watch.NewFakeWithChanSize(1, false)
		watched.Error(&metav1.Status{Reason: metav1.StatusReasonExpired, Code: 410, Message: "too old"})
		return true, watched, nil
	})
	f.Client = client
	if err := f.session(t.Context()); fmt.Sprint(err) != "too old" || f.sessions != 1 {
		t.Errorf("the session ends with %v in session %d", err, f.sessions)
	}
	client.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) { return true, nil, errors.New("forbidden") })
	client.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &unstructured.Unstructured{}, nil
	})
	err := Follow(t.Context(), FollowOptions{File: f.File + "2", Client: client, Prune: f.Prune, Messages: f.Messages})
	if text := fmt.Sprint(err); !strings.Contains(text, "nodes cannot be watched: forbidden; next: kubectl auth can-i watch") {
		t.Errorf("without the right to watch: %s", text)
	}
}

// TestNotWritten checks a full disk, and a directory that cannot be written.
func TestNotWritten(t *testing.T) {
	full, _ := testFollower(t, "")
	full.replace(start, nil)
	var err error
	if full.file, err = os.OpenFile("/dev/full", os.O_WRONLY, 0); err != nil {
		t.Fatal(err)
	}
	full.see(listed(t, `[{metadata: {namespace: x, name: a}}]`)[0])
	missing, _ := testFollower(t, "")
	missing.File = filepath.Join(missing.File, "now.jsonl")
	missing.replace(start, listed(t, `[{metadata: {namespace: x, name: a}}]`))
	directory, _ := testFollower(t, "")
	directory.File = t.TempDir()
	if err := fmt.Sprint(directory.open()); !strings.Contains(err, "is not a file; next: the same command with another file") {
		t.Errorf("the error is %s", err)
	}
	for f, want := range map[*follower]string{full: "no space left on device", missing: "not a directory"} {
		err := fmt.Sprint(f.close())
		if !strings.Contains(err, want+"; next: free space") || strings.Contains(err, "\n") {
			t.Errorf("the error is %s, want a line with %s", err, want)
		}
	}
}

func TestHidden(t *testing.T) {
	hider := &Hider{Name: strings.ToUpper, Kind: func(kind string) string { return kind + "!" },
		Object: func(object map[string]any) {
			if object != nil {
				object["hidden"] = true
			}
		}}
	var text bytes.Buffer
	w, err := NewWriter(&text, Header{Cluster: "uid"}, hider)
	for _, event := range []Event{{Node: "n", Change: "remove"}, {Pod: struct{ A int }{1}, UID: "u", Owner: "Job/j", Workload: "CronJob/c"}, {Bound: "a/b", On: "n"},
		{Delete: "a/b"}, {Ended: "a/b"}, {Of: "a/b", Use: map[string]string{"cpu": "1"}}, {Namespace: "a", Name: "b", Like: "a/c"}, {Reason: "why"}} {
		if err == nil {
			err = w.Write(event)
		}
	}
	if err != nil || w.Flush() != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(text.String(), "\n")
	want := `{"change":"remove","node":"N"} {"owner":"Job!/J","pod":{"A":1,"hidden":true},"workload":"CronJob!/C"} {"bound":"A/B","on":"N"} {"delete":"A/B"} ` +
		`{"ended":"A/B"} {"of":"A/B","use":{"cpu":"1"}} {"like":"A/C","name":"B","namespace":"A"} {"reason":"why"} `
	if got = strings.NewReplacer(`,"time":"0s"`, "", "\n", " ").Replace(got); got != want || !strings.Contains(text.String(), `"cluster":"UID"`) {
		t.Errorf("the lines are\n%s\nwant\n%s", got, want)
	}
}
