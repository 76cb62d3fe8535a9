// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

// TestNormalizeScoreRedirects: the draw is of the nodes that fit, and it does not matter what volumes the pod has.
func TestNormalizeScoreRedirects(t *testing.T) {
	claim := v1.Volume{VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}
	const pods = 400
	for _, tt := range []struct {
		name    string
		nodes   int
		percent int32
		// want is how many of the pods are drawn a node for, give or take allowed: four times √(400 × 0.2 × 0.8) = 8.
		want, allowed int
	}{
		{name: "always", nodes: 5, percent: 100, want: pods},
		{name: "never", nodes: 5, percent: 0},
		{name: "one in five", nodes: 5, percent: 20, want: pods / 5, allowed: 32},
		{name: "a single node, which is not scored", nodes: 1, percent: 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, config.ChaosArgs{Namespaces: []string{"test"}, Seed: 7, RandomBindPercent: tt.percent}, makeNodes(tt.nodes))
			before, drawn, bound := counted(t, w)["redirect"], 0, map[string]int{}
			for number := 0; number < pods; number++ {
				pod := makePod(number)
				pod.Spec.Volumes = []v1.Volume{claim}
				r := w.cycle(t, pod)
				bound[r.best]++
				hundred := 0
				for node, score := range r.scores {
					if score == framework.MaxNodeScore && node == r.best {
						hundred++
					} else if score != 0 {
						t.Errorf("%s scores %d, and the pod goes to %s", node, score, r.best)
					}
				}
				if drawn += hundred; hundred > 1 || w.plugin.attempts.read(r.state).drawn != "" && hundred != 1 {
					t.Errorf("%d nodes score 100", hundred)
				}
			}
			if drawn < tt.want-tt.allowed || drawn > tt.want+tt.allowed {
				t.Errorf("a node was drawn for %d of %d pods, want %d ± %d", drawn, pods, tt.want, tt.allowed)
			}
			if got := counted(t, w)["redirect"] - before; got != float64(drawn) {
				t.Errorf("%g draws are counted, want %d", got, drawn)
			}
			// Each of five nodes is expected 80 times, with the same standard deviation.
			for node, count := range bound {
				if tt.percent == 100 && tt.nodes == 5 && (count < 80-32 || count > 80+32) {
					t.Errorf("%s is drawn %d times of %d, want 80 ± 32", node, count, pods)
				}
			}
		})
	}
}

// TestReserveOfAnotherNode: the scheduler takes another node, because other plugins have more weight. No event and no
// counter says that the pod went to a random one.
func TestReserveOfAnotherNode(t *testing.T) {
	pod := makePod(1)
	w := newWorld(t, config.ChaosArgs{Namespaces: []string{"test"}, RandomBindPercent: 100}, makeNodes(5), pod)
	before := counted(t, w)["redirect"]
	state, scores := framework.NewCycleState(), framework.NodeScoreList{{Name: "node-1"}, {Name: "node-2"}}
	w.plugin.NormalizeScore(context.Background(), state, pod, scores)
	other := "node-1"
	if w.plugin.attempts.read(state).drawn == other {
		other = "node-2"
	}
	w.plugin.Reserve(context.Background(), state, pod, other)
	if got := counted(t, w)["redirect"] - before; got != 0 || len(w.events) != 0 {
		t.Errorf("counted %g, events %q, want none", got, w.events)
	}
}
