// SPDX-License-Identifier: Apache-2.0

package staticpod

import (
	"fmt"
	"math/rand"
	"regexp"
	"strings"
	"testing"
)

// FuzzOnlyTheIntendedLinesChange writes one and the same manifest in the formatting that a number stands for, swaps it, and
// looks at the lines: those outside the change have to be there, in order, byte for byte.
func FuzzOnlyTheIntendedLinesChange(f *testing.F) {
	for seed := int64(0); seed < 200; seed++ {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed int64) {
		w := &writer{random: rand.New(rand.NewSource(seed))}
		manifest := w.manifest()
		for name, swap := range map[string]Swap{"with configuration": withConfig, "image only": imageOnly} {
			edited, err := Apply([]byte(manifest), swap)
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, manifest)
			}
			if edited.Reformatted != "" {
				t.Errorf("%s: %s\n%s", name, edited.Reformatted, manifest)
			}
			w.compare(t, manifest, string(edited.Manifest), swap.ConfigFolder != "")
			nudged, err := Restart(edited.Manifest, swap.RestartedAt.Add(1))
			if err != nil || nudged.Reformatted != "" {
				t.Fatalf("%s: Restart: %v %s", name, err, nudged.Reformatted)
			}
			want := strings.Replace(string(edited.Manifest), ".000000005Z", ".000000006Z", 1)
			if string(nudged.Manifest) != want {
				t.Errorf("%s: Restart changed more than the time:\n%s", name, Diff("want", []byte(want), "got", nudged.Manifest))
			}
		}
	})
}

// added is what a new line may look like.
var added = regexp.MustCompile(`kube-scheduler-swap|^ *-? *hostPath:$|^ *type: Directory$|^ *readOnly: true$|` +
	`^ *(annotations|volumes|volumeMounts):( +#.*)?$|^ *image: *['"]?example.com|^ *--config$`)

// compare looks for the untouched lines among those of the result; what is between them has to be ours.
func (w *writer) compare(t *testing.T, before, after string, withConfiguration bool) {
	t.Helper()
	result := strings.SplitAfter(after, w.eol)
	at := 0
	for number, line := range strings.SplitAfter(before, w.eol) {
		if by := w.touched[number]; by == anySwap || by == configuration && withConfiguration {
			// It may change, and need not.
			if at < len(result) && result[at] == line {
				at++
			}
			continue
		}
		for ; at < len(result) && result[at] != line && result[at] != line+w.eol; at++ {
			if content := strings.TrimRight(result[at], "\r\n"); !added.MatchString(content) {
				t.Fatalf("line %q is gone or changed; there is %q\n%s", line, content, Diff("before", []byte(before), "after", []byte(after)))
			}
		}
		if at == len(result) {
			t.Fatalf("line %q is gone\n%s", line, Diff("before", []byte(before), "after", []byte(after)))
		}
		at++
	}
	for ; at < len(result); at++ {
		if content := strings.TrimRight(result[at], "\r\n"); content != "" && !added.MatchString(content) {
			t.Fatalf("line %q is new\n%s", content, Diff("before", []byte(before), "after", []byte(after)))
		}
	}
	if strings.HasSuffix(before, w.eol) != strings.HasSuffix(after, w.eol) {
		t.Fatalf("the last line break came or went:\n%s", Diff("before", []byte(before), "after", []byte(after)))
	}
}

// writer writes a manifest in a random formatting.
type writer struct {
	random  *rand.Rand
	eol     string
	step    int
	lists   int
	dash    int
	lines   []string
	touched map[int]touch
}

// touch is what may change a line.
type touch int

const (
	anySwap touch = iota + 1
	configuration
)

func (w *writer) chance(percent int) bool { return w.random.Intn(100) < percent }

func (w *writer) manifest() string {
	w.eol = []string{"\n", "\n", "\r\n"}[w.random.Intn(3)]
	w.step = 1 + w.random.Intn(6)
	w.lists = w.random.Intn(5)
	w.dash = 2 + w.random.Intn(3)
	w.touched = map[int]touch{}
	if w.chance(20) {
		w.line(0, "---")
	}
	sections := []func(){
		func() { w.line(0, "apiVersion: v1") },
		func() { w.line(0, "kind: "+w.quote("Pod")) },
		w.metadata,
		w.spec,
		func() { w.line(0, "status: {}") },
	}
	w.random.Shuffle(len(sections), func(i, j int) { sections[i], sections[j] = sections[j], sections[i] })
	for _, section := range sections {
		section()
	}
	text := strings.Join(w.lines, w.eol)
	// A literal text that ends with the file, without a line break, would get one by anything that follows.
	if w.chance(80) || strings.HasSuffix(text, "# of two lines") {
		text += w.eol
	}
	return text
}

// line writes a line, sometimes with a comment, and sometimes something that means nothing before it.
func (w *writer) line(indentation int, content string) {
	for w.chance(12) {
		if w.chance(50) {
			w.lines = append(w.lines, strings.Repeat(" ", w.random.Intn(3)))
		} else {
			w.lines = append(w.lines, strings.Repeat(" ", w.random.Intn(indentation+3))+
				[]string{"# a comment", "#", "# - --commented=out", "# key: [value", "#\ttabbed\t", "# image: \"x\" ä€𝄞"}[w.random.Intn(6)])
		}
	}
	if content != "---" && !strings.HasSuffix(content, "|") && w.chance(15) {
		content += strings.Repeat(" ", 1+w.random.Intn(4)) + "# " + []string{"why: not", "]", "\"", "{}", "ü"}[w.random.Intn(5)]
	}
	w.lines = append(w.lines, strings.Repeat(" ", indentation)+content)
}

func (w *writer) touch(by touch, indentation int, content string) {
	w.line(indentation, content)
	w.touched[len(w.lines)-1] = by
}

func (w *writer) quote(value string) string {
	switch w.random.Intn(4) {
	case 0:
		return `"` + value + `"`
	case 1:
		return `'` + value + `'`
	}
	return value
}

// collection writes a key with entries, or one of the ways to say that there are none. A list in brackets is one line, which
// an addition changes.
func (w *writer) collection(indentation int, key string, entries func(), flow string) {
	by := configuration
	if key == "annotations" {
		by = anySwap
	}
	switch w.random.Intn(6) {
	case 0:
		w.touch(by, indentation, key+": "+map[bool]string{true: "{}", false: "[]"}[key == "annotations"])
	case 1:
		w.touch(by, indentation, key+": "+[]string{"null", "~"}[w.random.Intn(2)])
	case 2:
		w.touch(by, indentation, key+":")
	case 3:
	case 4:
		w.touch(by, indentation, key+": "+flow)
	default:
		w.line(indentation, key+":")
		entries()
	}
}

func (w *writer) metadata() {
	w.line(0, "metadata:")
	at := w.step
	parts := []func(){
		func() { w.line(at, "name:  "+w.quote("kube-scheduler")) },
		func() { w.line(at, "namespace: kube-system") },
		func() { w.line(at, "creationTimestamp: null") },
		func() {
			w.collection(at, "annotations", func() {
				w.line(at+w.step, "owner: "+w.quote("us"))
				w.line(at+w.step, "note: |")
				w.lines = append(w.lines, strings.Repeat(" ", at+2*w.step)+"a text", strings.Repeat(" ", at+2*w.step)+"# of two lines")
			}, `{owner: us, "other": 'x'}`)
		},
	}
	w.shuffled(parts)
}

func (w *writer) shuffled(parts []func()) {
	w.random.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	for _, part := range parts {
		part()
	}
}

func (w *writer) spec() {
	w.line(0, "spec:")
	at := w.step
	w.shuffled([]func(){
		func() { w.line(at, "hostNetwork: true") },
		func() { w.line(at, "securityContext: {seccompProfile: {type: RuntimeDefault}}") },
		func() {
			w.collection(at, "volumes", func() {
				dash := at + w.lists
				w.line(dash, w.item("name: kubeconfig"))
				w.line(dash+w.dash, "hostPath:")
				w.line(dash+w.dash+w.step, "path: /etc/kubernetes/scheduler.conf")
			}, "[{name: kubeconfig, hostPath: {path: /etc/kubernetes/scheduler.conf}}]")
		},
		func() {
			w.line(at, "containers:")
			w.container(at + w.lists)
		},
	})
}

func (w *writer) item(content string) string {
	return "-" + strings.Repeat(" ", w.dash-1) + content
}

func (w *writer) container(dash int) {
	at := dash + w.dash
	w.line(dash, w.item("name: kube-scheduler"))
	w.shuffled([]func(){
		func() { w.touch(anySwap, at, "image: "+w.quote("registry.k8s.io/kube-scheduler:v1.23.17")) },
		func() { w.line(at, "imagePullPolicy: IfNotPresent") },
		func() { w.line(at, "resources: {requests: {cpu: 100m}}") },
		func() {
			w.collection(at, "volumeMounts", func() {
				w.line(at+w.lists, w.item("name: kubeconfig"))
				w.line(at+w.lists+w.dash, "mountPath: "+w.quote("/etc/kubernetes/scheduler.conf"))
			}, "[{name: kubeconfig, mountPath: /etc/kubernetes/scheduler.conf}, ]")
		},
		func() { w.command(at) },
	})
}

func (w *writer) command(at int) {
	own := w.chance(25)
	if w.chance(25) {
		config := ""
		if own {
			config = fmt.Sprintf(", --config, %s", w.quote("/own.yaml"))
		}
		w.touch(configuration, at, "command: [kube-scheduler"+config+", "+w.quote("--leader-elect=true")+"]")
		return
	}
	w.line(at, "command:")
	at += w.lists
	w.line(at, w.item("kube-scheduler"))
	w.line(at, w.item(w.quote("--kubeconfig=/etc/kubernetes/scheduler.conf")))
	if own {
		w.touch(configuration, at, w.item(w.quote("--config=/own.yaml")))
	}
	w.line(at, w.item("--leader-elect=true"))
}
