// SPDX-License-Identifier: Apache-2.0

package input

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
)

const (
	watched    = `{"history":1,"start":"2026-11-20T10:00:00.5Z","source":"watch","by":"v1.23.17+x","cluster":"u"}` + "\n"
	prometheus = `{"history":1,"start":"2026-11-20T10:00:00Z","source":"prometheus","by":"v1.23.17+x"}` + "\n"
	nodeOne    = `{"time":"0s","change":"add","node":{"metadata":{"name":"n1"},"status":{"allocatable":{"cpu":"4"}}}}` + "\n"
	podSpec    = `"spec":{"priority":7,"priorityClassName":"high","containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]}`
	podOne     = `{"time":"0s","pod":{"metadata":{"namespace":"x","name":"a","labels":{"app":"a"}},` + podSpec + `},"owner":"ReplicaSet/r","workload":"Deployment/d","on":"n1","age":"3h"}` + "\n"
	last       = `{"time":"1h","last":true}` + "\n"
)

// like is a line that creates a pod like the first one.
func like(at, name, more string) string {
	return fmt.Sprintf(`{"time":%q,"namespace":"x","name":%q,"like":"x/a"%s}`, at, name, more) + "\n"
}

func TestReadHistory(t *testing.T) {
	text := watched + nodeOne + podOne +
		`{"time":"0s","use":{"cpu":"100m","memory":"1Mi"},"of":"x/a"}` + "\n" +
		like("0s", "waits", `,"age":"1h","owner":"StatefulSet/s"`) +
		like("1m", "job", `,"owner":"Job/j","uid":"1-2"`) +
		`{"time":"1m1s","bound":"x/waits","on":"n2"}` + "\n" +
		`{"time":"1m2s","bound":"x/job","on":"n1"}` + "\n" +
		`{"time":"90s","change":"add","node":{"metadata":{"name":"n2"}}}` + "\n" +
		`{"time":"91s","use":{"cpu":"2"},"of":"x/a"}` + "\n" +
		`{"time":"92s","use":{"cpu":"2"},"of":"x/job"}` + "\n" +
		like("2m", "quick", "") +
		`{"time":"2m","bound":"x/quick","on":"n1"}` + "\n" +
		`{"time":"2m","ended":"x/quick"}` + "\n" +
		like("2m", "never", "") +
		`{"time":"3m","delete":"x/waits"}` + "\n" +
		`{"time":"3m7s","ended":"x/waits"}` + "\n" +
		`{"time":"4m","ended":"x/never"}` + "\n" +
		`{"time":"5m2s","ended":"x/job"}` + "\n" +
		`{"time":"6m","delete":"x/job"}` + "\n" + // Its object stayed until now.
		`{"time":"6m","delete":"x/earlier"}` + "\n" + // It was gone before.
		`{"time":"7m","ended":"x/a"}` + "\n" +
		`{"time":"7m","gap":"5m","reason":"restart"}` + "\n" +
		like("8m", "a", "") + // Like the one before of its name.
		like("9m", "a", "") +
		`{"time":"9m","bound":"x/a","on":"n9"}` + "\n" + // No node ever had this name.
		`{"time":"10m","change":"remove","node":"n1"}` + "\n" + `{"time":"11m","last":tr`
	for _, file := range []struct{ name, text string }{{"h.jsonl", text}, {"h.gz", compressed(text)}} {
		trace, err := ReadTrace(write(t, t.TempDir(), file.name, file.text))
		if err != nil {
			t.Fatal(err)
		}
		var events []string
		for _, of := range trace.Events {
			line := fmt.Sprint(of.At, " ", of.Change, of.Node, of.Delete)
			if w := of.Pods; w != nil {
				line += fmt.Sprint(w.Name, " ", w.Class, " ", *w.Real, " ", w.Duration, " ", *w.Pod.Spec.Priority)
			}
			if of.Grace != nil {
				line += fmt.Sprint(" ", *of.Grace)
			}
			events = append(events, line)
		}
		want := []string{"0s waits StatefulSet/s {n2 1m1s} 0s 7", "1m0s job Job/j {n1 2s} 4m0s 7", "1m30s addn2", "2m0s quick  {n1 0s} 1ms 7",
			"2m0s never  { 2m0s} 0s 7", "3m0s x/waits 7s", "4m0s x/never 0s", "7m0s x/a 0s", "8m0s a  { 1m0s} 0s 7", "9m0s x/a 0s", "9m0s a  {n9 0s} 0s 7", "10m0s removen1"}
		if got, want := strings.Join(events, "\n"), strings.Join(want, "\n"); got != want {
			t.Errorf("got events\n%s\nwant\n%s", got, want)
		}
		first, running := trace.Pods[0], trace.Running["x/a"]
		if len(trace.Pods) != 1 || first.Spec.NodeName != "n1" || first.Status.Phase != v1.PodRunning || first.OwnerReferences[0].Kind != "ReplicaSet" ||
			trace.Start.Sub(first.CreationTimestamp.Time) != 3*time.Hour || trace.Start.Nanosecond() != 5e8 {
			t.Errorf("got pods at the start %+v", trace.Pods)
		}
		if len(running.Use) != 2 || running.Use[1].After != 91*time.Second || running.Use[1].Resources.Cpu().Value() != 2 ||
			running.Use[1].Resources.Memory().Value() != 1<<20 || running.Class != "Deployment/d" {
			t.Errorf("got %+v, want that memory stays", running)
		}
		if use := trace.Events[1].Pods.Use; len(use) != 1 || use[0].After != 30*time.Second || len(use[0].Resources) != 1 {
			t.Errorf("got %+v of another pod, want no memory", use)
		}
		cluster := trace.Onto(&Cluster{Nodes: []*v1.Node{{}}, Objects: trace.Owners[1:], Pods: []*v1.Pod{{}}})
		if len(cluster.Nodes) != 1 || cluster.Nodes[0].Name != "n1" || len(cluster.Pods) != 1 || !cluster.Taken.Equal(trace.Start) || len(cluster.Objects) != 2 ||
			cluster.Objects[1].(*appsv1.ReplicaSet).Spec.Selector.MatchLabels["app"] != "a" {
			t.Errorf("got %+v, want the pods of the history with their owners, which the snapshot has in part", cluster)
		}
		warnings := strings.Join(trace.Warnings, "\n")
		for _, want := range []string{":28: the last line is cut", "of 5m0s in all: 1", "gone when the history began, and are left out: 1", "pods were bound to nodes that were never in the history: 1", "pods have no end in the history: they end when another one of their name is created: 1"} {
			if !strings.Contains(warnings, want) || trace.Gaps != 1 || trace.Length != 10*time.Minute {
				t.Errorf("got %v and warnings %s, want %s", trace.Length, warnings, want)
			}
		}
		if &trace.Events[0].Pods.Pod.Spec.Containers[0] != &trace.Events[1].Pods.Pod.Spec.Containers[0] {
			t.Error("two pods that are like another one have their own specs")
		}
	}
}

func TestReadHistoryErrors(t *testing.T) {
	begin := prometheus + nodeOne + podOne
	tests := []struct{ name, text, want string }{
		{"newer version", `{"history":2,"start":"x","by":"v1.23.17+y","new":1}`, ":1: the history has version 2, and this release reads version 1; next: with kubectl-scheduling of release v1.23.17+y: kubectl scheduling history --convert "},
		{"huge version", `{"history":1e999}`, ":1: history is not a version"},
		{"no version", `{"history":0}`, ":1: history is not a version"},
		{"no start", `{"history":1,"source":"watch","by":"x"}`, ":1: start is not a time"},
		{"wrong start", strings.Replace(watched, "2026", "1970", 1), ":1: start is not a time in RFC 3339 between 2001 and 2100"},
		{"source", strings.Replace(watched, "watch", "s3cret", 1), ":1: the source is unknown"},
		{"key of the header", strings.Replace(watched, "cluster", "s", 1), `:1: the key "s" is unknown in this line`},
		{"second header", begin + watched, ":4: another history begins here"},
		{"cut file of prometheus", begin, ":3: the history is cut: its last line is missing; next: make it again: kubectl scheduling history --prometheus"},
		{"cut line of prometheus", begin + `{"time":"0s`, ":4: the line is cut, or not valid JSON; next: make it again"},
		{"cut line in the middle", watched + `{"time":"0s` + "\n" + nodeOne, ":2: the line is cut, or not valid JSON; next: leave out what it says: sed -i 2d "},
		{"line after the last", begin + last + last, ":5: the line follows the last one"},
		{"last that is not", begin + `{"time":"1h","last":"s3cret"}`, ":4: the line does not say what happens"},
		{"no nodes", prometheus + last, ": the history has no nodes at the start"},
		{"nothing", begin + `{"time":"1h"}`, ":4: the line does not say what happens"},
		{"two things", begin + `{"time":"1h","bound":"x/a","ended":"x/a"}`, ":4: the line says several things"},
		{"unknown key", begin + `{"time":"1h","ended":"x/a","reason":"s3cret"}`, `:4: the key "reason" is unknown in this line`},
		{"not a text", begin + `{"time":"1h","ended":["s3cret"]}`, ":4: ended is not a text"},
		{"no time", begin + `{"ended":"x/a"}`, ":4: time is not a time"},
		{"negative time", begin + `{"time":"-1h","ended":"x/a"}`, ":4: time is not a time"},
		{"huge time", begin + `{"time":"1e300h","ended":"x/a"}`, ":4: time is not a time"},
		{"time goes back", begin + last + `{"time":"59m","ended":"x/a"}`, ":5: the time goes back, from 1h0m0s to 59m0s"},
		{"negative age", prometheus + nodeOne + strings.Replace(podOne, "3h", "-3h", 1), ":3: age is not a time"},
		{"age of a later pod", begin + like("1s", "b", `,"age":"1h"`), ":4: only a pod at time 0 has on and age"},
		{"negative gap", begin + `{"time":"1h","gap":"-1s"}`, ":4: gap is not a time"},
		{"change", begin + `{"time":"1h","change":"drain","node":"n1"}`, ":4: change is not add or remove"},
		{"node of a wrong type", begin + `{"time":"1h","change":"add","node":{"metadata":{"name":["s3cret"]}}}`, ":4: node cannot be decoded: field ObjectMeta.metadata.name"},
		{"no node", begin + `{"time":"1h","change":"add"}`, ":4: node cannot be decoded"},
		{"hostile name of a node", begin + `{"time":"1h","change":"add","node":{"metadata":{"name":"a\u001b[31m"}}}`, ":4: Node a\x1b[31m has a name that is not valid"},
		{"unknown node is removed", begin + `{"time":"1h","change":"remove","node":"n9"}`, ":4: there is no node n9 here"},
		{"hostile name of a pod", begin + like("1s", "a/b", ""), ":4: Pod x/a/b has a name or namespace that is not valid"},
		{"unknown field of a pod", begin + `{"time":"1h","pod":{"spec":{"s":"s3cret"}}}`, ":4: pod cannot be decoded: field s is unknown"},
		{"no containers", begin + `{"time":"1h","pod":{"metadata":{"name":"b"}}}`, ":4: the pod has no containers"},
		{"negative request", begin + `{"time":"1h","pod":{"metadata":{"name":"b"},"spec":{"containers":[{"resources":{"requests":{"cpu":"-1"}}}]}}}`, ":4: Pod default/b requests less than 0 of cpu"},
		{"like an unknown pod", begin + strings.Replace(like("1s", "b", ""), "x/a", "x/z", 1), ":4: there is no pod x/z before this line"},
		{"like itself", begin + strings.Replace(like("1s", "b", ""), "x/a", "x/b", 1), ":4: there is no pod x/b before this line"},
		{"owner", begin + like("1s", "b", `,"owner":"s3cret"`), ":4: an owner is not KIND/NAME"},
		{"owners in a circle", begin + like("1s", "b", `,"owner":"A/a","workload":"B/b"`) + like("1s", "c", `,"owner":"B/b","workload":"A/a"`), ":5: B/b is an owner of itself"},
		{"bound twice", begin + `{"time":"1h","bound":"x/a","on":"n1"}`, ":4: there is no pod x/a that waits here"},
		{"unknown pod ends", begin + `{"time":"1h","ended":"x/z"}`, ":4: there is no pod x/z here"},
		{"unknown pod is bound", watched + nodeOne + `{"time":"1h","bound":"x/z","on":"n1"}`, ":3: there is no pod x/z that waits here"},
		{"long name", begin + `{"time":"1h","ended":"` + strings.Repeat("z", 1<<20) + `"}`, "zzz… here"},
		{"two pods at the start", begin + podOne, ":4: pod x/a is twice on a node at the start"},
		{"use", begin + `{"time":"1h","use":{"cpu":"-1"},"of":"x/a"}`, ":4: use of cpu is not a quantity"},
		{"use that is no list", begin + `{"time":"1h","use":"s3cret","of":"x/a"}`, ":4: use is not a list of quantities"},
		{"long line", begin + strings.Repeat("x", longestLine+1), ":4: the line is longer than 16 MiB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ReadTrace(write(t, t.TempDir(), "h", tt.text))
			wantError(t, err, "h", tt.want)
		})
	}
	wantError(t, (&history{memory: mostMemory}).read(place{"h", 1}, map[string]json.RawMessage{"time": []byte(`"0s"`), "last": []byte("true")}, nil), "h", ":1: the history takes more than 2 GiB of memory; next: a history of a shorter time")
}
