// SPDX-License-Identifier: Apache-2.0

// Package nodelocal checks plugins that have the method NodeLocalKey of services.NodeLocal. Only _test files import it.
package nodelocal

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/services"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	clocktesting "k8s.io/utils/clock/testing"
)

// Test fails for a violation, if no pod qualifies, and if a change of one of the fields of pods in reads changes no
// result, because then the check proves nothing about it. So args must match some of the pods and nodes in objects.go.
func Test(t *testing.T, factory frameworkruntime.PluginFactory, args runtime.Object, reads ...string) {
	t.Helper()
	result := Check(t, factory, args)
	for _, violation := range result.Violations {
		t.Error(violation)
	}
	if result.Qualified == 0 {
		t.Error("NodeLocalKey returned false for each pod, so nothing was checked: change args, or remove the method")
	}
	for _, path := range reads {
		if !result.Reads.Has(path) {
			t.Errorf("no change of %s changed a result, so its part of the key was not checked: change args", path)
		}
	}
}

// Result is the result of a check.
type Result struct {
	// Violations are results that differ for equal keys and a node that has not changed, at most five.
	Violations []string
	// Qualified is the number of pods for which the plugin returned a key.
	Qualified int
	// Reads are the fields of pods of which a change alone changed a result, such as spec.nodeSelector, and those above.
	Reads sets.String

	// first has the first observation for each key and node.
	first map[string]observation
}

type observation struct{ result, of string }

// Check evaluates a plugin for many pods, on nodes that stay the same while the other nodes, the objects of informers and
// the clocks in the plugin's fields differ, and compares the results for equal keys. It does not notice time.Now.
func Check(t testing.TB, factory frameworkruntime.PluginFactory, args runtime.Object) *Result {
	t.Helper()
	r := &Result{Reads: sets.NewString(), first: map[string]observation{}}
	var subjects []*subject
	for number, nodes := range snapshots() {
		subjects = append(subjects, newSubject(t, number, nodes, factory, args))
	}
	bases := pods(t)
	for i, base := range bases {
		what := fmt.Sprintf("pod %d", i)
		// The first snapshot is the last one, too: a draw or a counter gives another result for the same call.
		for _, s := range append(subjects, subjects[0]) {
			r.evaluate(s, what, typed(base))
		}
		// The first two snapshots have all nodes of the check, and take turns.
		n, unchanged := 0, [2]map[string]string{subjects[0].results(typed(base)), subjects[1].results(typed(base))}
		variation{words: words(args), visit: func(path string) {
			if len(r.Violations) == 5 {
				return
			}
			pod := typed(base)
			if pod == nil {
				return
			}
			n++
			now := r.evaluate(subjects[n%2], what+" with another "+path, pod)
			if strings.Contains(path, " ") || reflect.DeepEqual(now, unchanged[n%2]) {
				return
			}
			for end := len(path); end > 0; end = strings.LastIndex(path[:end], ".") {
				r.Reads.Insert(path[:end])
			}
		}}.vary(base, bases[1-i], nil, "")
	}
	return r
}

// evaluate compares the results of a pod with earlier ones for its key, and returns them.
func (r *Result) evaluate(s *subject, what string, pod *v1.Pod) map[string]string {
	begin := []byte("what the key had before")
	key, qualifies := s.local.NodeLocalKey(pod, begin)
	results, of := s.results(pod), fmt.Sprintf("%s in snapshot %d", what, s.number)
	if !qualifies || len(r.Violations) == 5 {
		return results
	}
	r.Qualified++
	if again, _ := s.local.NodeLocalKey(pod.DeepCopy(), begin); !bytes.Equal(key, again) || !bytes.HasPrefix(key, begin) {
		r.Violations = append(r.Violations, fmt.Sprintf("%s: the key of %s is %q, and then %q: NodeLocalKey must append the same each time",
			s.plugin.Name(), of, key, again))
	}
	for node, result := range results {
		at, now := string(key)+node, observation{result, of}
		if first, known := r.first[at]; !known {
			r.first[at] = now
		} else if first.result != result {
			r.Violations = append(r.Violations, fmt.Sprintf("%s, %s: with the same key %s has %s, and %s has %s",
				s.plugin.Name(), node, first.of, first.result, of, result))
			break
		}
	}
	return results
}

// subject is a plugin with a snapshot.
type subject struct {
	number int
	nodes  snapshot
	plugin framework.Plugin
	local  services.NodeLocal
}

func newSubject(t testing.TB, number int, nodes snapshot, factory frameworkruntime.PluginFactory, args runtime.Object) *subject {
	t.Helper()
	client := clientset.NewSimpleClientset(nodes.objects()...)
	objects := informers.NewSharedInformerFactory(client, 0)
	s := &subject{number: number, nodes: nodes}
	s.plugin = plugintest.New(t, func(args runtime.Object, _ framework.Handle) (framework.Plugin, error) {
		return factory(args, plugintest.Handle(t, t.Name(), frameworkruntime.WithSnapshotSharedLister(nodes),
			frameworkruntime.WithClientSet(client), frameworkruntime.WithInformerFactory(objects)))
	}, t.Name(), args, nil)
	s.local, _ = s.plugin.(services.NodeLocal)
	if prepare(reflect.ValueOf(s.plugin).Elem(), clocktesting.NewFakeClock(time.Unix(int64(number)*3600, 0))) || s.local == nil {
		t.Fatalf("%s does not have the method NodeLocalKey, or embeds a plugin with it, in which case the framework does not call it", s.plugin.Name())
	}
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	objects.Start(stop)
	objects.WaitForCacheSync(stop)
	return s
}

// prepare replaces the clocks in the fields of a plugin, and reports whether it embeds a plugin with NodeLocalKey.
func prepare(plugin reflect.Value, clock *clocktesting.FakeClock) (embeds bool) {
	for i := 0; i < plugin.NumField(); i++ {
		of := plugin.Type().Field(i)
		if _, tells := of.Type.MethodByName("Now"); tells && of.Type.Kind() == reflect.Interface {
			reflect.NewAt(of.Type, unsafe.Pointer(plugin.Field(i).UnsafeAddr())).Elem().Set(reflect.ValueOf(clock))
		}
		_, has := of.Type.MethodByName("NodeLocalKey")
		embeds = embeds || of.Anonymous && has
	}
	return embeds
}

// results returns the results of Filter and Score by node.
func (s *subject) results(pod *v1.Pod) map[string]string {
	ctx, state, results := context.Background(), framework.NewCycleState(), map[string]string{}
	if pre, ok := s.plugin.(framework.PreFilterPlugin); ok && !pre.PreFilter(ctx, state, pod).IsSuccess() {
		return results
	}
	filter, filters := s.plugin.(framework.FilterPlugin)
	score, scores := s.plugin.(framework.ScorePlugin)
	if pre, ok := s.plugin.(framework.PreScorePlugin); ok {
		scores = scores && pre.PreScore(ctx, state, pod, []*v1.Node{s.nodes[0].Node()}).IsSuccess()
	}
	for _, info := range s.nodes {
		name, result := info.Node().Name, ""
		if filters {
			status := filter.Filter(ctx, state, pod, info)
			result = fmt.Sprintf("Filter %v %q ", status.Code(), status.Message())
		}
		if scores {
			score, status := score.Score(ctx, state, pod, name)
			result += fmt.Sprintf("Score %d %v", score, status.Code())
		}
		results[name] = result
	}
	return results
}
