// SPDX-License-Identifier: Apache-2.0

package randscore

import (
	"context"
	"fmt"
	"math/rand"
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

func newPlugin(t testing.TB, seed int64) *RandScore {
	t.Helper()
	plugin, err := New(&config.RandScoreArgs{Seed: seed}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return plugin.(*RandScore)
}

func nodeNames(count int) []string {
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("node-%d", i+1)
	}
	return names
}

// scoreInOrder scores the nodes one after the other, in a new cycle of the pod.
func scoreInOrder(t testing.TB, pl *RandScore, pod *v1.Pod, names []string) map[string]int64 {
	t.Helper()
	state, scores := framework.NewCycleState(), map[string]int64{}
	for _, name := range names {
		score, status := pl.Score(context.Background(), state, pod, name)
		if !status.IsSuccess() {
			t.Fatal(status.AsError())
		}
		scores[name] = score
	}
	return scores
}

// scoreInParallel scores the nodes in a new cycle of the pod as the scheduler does: with 16 workers at once.
func scoreInParallel(pl *RandScore, pod *v1.Pod, names []string) map[string]int64 {
	const workers = 16
	state, scores := framework.NewCycleState(), make([]int64, len(names))
	plugintest.InParallel(workers, func(worker int) {
		for i := worker; i < len(names); i += workers {
			scores[i], _ = pl.Score(context.Background(), state, pod, names[i])
		}
	})
	byName := map[string]int64{}
	for i, name := range names {
		byName[name] = scores[i]
	}
	return byName
}

func TestScoreIsReplayed(t *testing.T) {
	names := nodeNames(200)
	shuffled := append([]string{}, names...)
	rand.New(rand.NewSource(1)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	pod, other := st.MakePod().Name("pod").UID("uid-1").Obj(), st.MakePod().Name("pod").UID("uid-2").Obj()
	want := scoreInOrder(t, newPlugin(t, 7), pod, names)
	// The scores are uniform because pseudorandom's numbers are.
	for name, score := range want {
		if score < framework.MinNodeScore || score > framework.MaxNodeScore {
			t.Errorf("%s scores %d, want 0 to 100", name, score)
		}
	}

	tests := []struct {
		name string
		got  map[string]int64
		same bool
	}{
		{name: "a new plugin with the same seed", got: scoreInOrder(t, newPlugin(t, 7), pod, names), same: true},
		{name: "another order of the nodes", got: scoreInOrder(t, newPlugin(t, 7), pod, shuffled), same: true},
		{name: "16 workers", got: scoreInParallel(newPlugin(t, 7), pod, names), same: true},
		{name: "16 workers and another order", got: scoreInParallel(newPlugin(t, 7), pod, shuffled), same: true},
		{name: "another seed", got: scoreInOrder(t, newPlugin(t, 8), pod, names)},
		{name: "another pod of the same name", got: scoreInOrder(t, newPlugin(t, 7), other, names)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if same := reflect.DeepEqual(tt.got, want); same != tt.same {
				t.Errorf("the scores are the same: %v, want %v\n got %v\nwant %v", same, tt.same, tt.got, want)
			}
		})
	}
}

func TestScoreOfTwoAttempts(t *testing.T) {
	names := nodeNames(50)
	pod := st.MakePod().Name("pod").UID("uid-1").Obj()
	pl, again := newPlugin(t, 7), newPlugin(t, 7)
	var attempts []map[string]int64
	for attempt := 0; attempt < 3; attempt++ {
		scores := scoreInOrder(t, pl, pod, names)
		for earlier := range attempts {
			if reflect.DeepEqual(scores, attempts[earlier]) {
				t.Errorf("attempts %d and %d have the same scores", earlier+1, attempt+1)
			}
		}
		attempts = append(attempts, scores)
		if got := scoreInParallel(again, pod, names); !reflect.DeepEqual(got, scores) {
			t.Errorf("attempt %d is not replayed by a new plugin", attempt+1)
		}
	}
}

func TestScoreDoesNotAllocate(t *testing.T) {
	pl, pod, state := newPlugin(t, 0), st.MakePod().UID("uid-1").Obj(), framework.NewCycleState()
	pl.Score(context.Background(), state, pod, "node-1")
	plugintest.ExpectAllocations(t, "Score after the cycle's first call", 0, func() { pl.Score(context.Background(), state, pod, "node-1") })
}

func BenchmarkScore(b *testing.B) {
	const nodes = 5000
	pl, names, pod := newPlugin(b, 0), nodeNames(nodes), st.MakePod().UID("8b9a1c44-5a35-4e5f-9d5e-0c5d1f3b7f11").Obj()
	plugintest.PerNode(b, nodes, func(int) {
		state := framework.NewCycleState()
		for _, name := range names {
			pl.Score(context.Background(), state, pod, name)
		}
	})
}
