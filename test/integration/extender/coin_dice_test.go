// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

// coinAndDice is the extender's configuration in which chance alone decides.
const coinAndDice = "../../../manifests/config/extender-coin-dice.yaml"

// TestCoinAndDice sees a stock scheduler follow the coins, and asks for the dice. That all pods have the same fate, or
// that dice show few of their sides, happens less often than once in 100,000 times.
func TestCoinAndDice(t *testing.T) {
	c := newStand(t)
	c.startScheduler(t)
	c.startExtenderWith(t, coinAndDice)
	t.Run("a coin lets some pods onto a node, and not others", func(t *testing.T) {
		bound, refused := 0, 0
		for _, pod := range c.createPods(t, 20, onlyOnBare) {
			c.Await(t, pod.Name+" to be bound or to be refused by a coin", func() error {
				seen, err := c.Pod(t, pod.Namespace, pod.Name)
				if err != nil {
					return err
				}
				switch why := cluster.WhyPending(seen); {
				case seen.Spec.NodeName != "":
					bound++
				case strings.Contains(why, "1 node(s) were rejected by a coin of Chaos"):
					refused++
				default:
					return fmt.Errorf("it says %q", why)
				}
				return nil
			})
		}
		t.Logf("%d pods are bound, and %d were refused", bound, refused)
		if bound == 0 || refused == 0 {
			t.Errorf("%d pods are bound and %d were refused by a coin, want some of each", bound, refused)
		}
	})
	t.Run("dice show 0 to 10", func(t *testing.T) {
		names := []string{"node-1", "node-2", "node-3", "node-4", "bare"}
		sides := map[int64]bool{}
		for i := range 20 {
			pod := localcluster.NewPod(fmt.Sprintf("thrown-%d", i), "")
			pod.UID = types.UID(pod.Name)
			var scores extenderv1.HostPriorityList
			c.ask(t, "prioritize", extenderv1.ExtenderArgs{Pod: pod, NodeNames: &names}, &scores)
			if len(scores) != len(names) {
				t.Fatalf("scores %v, want one for each of %v", scores, names)
			}
			for _, score := range scores {
				if score.Score < extenderv1.MinExtenderPriority || score.Score > extenderv1.MaxExtenderPriority {
					t.Errorf("%s: a score of %d", score.Host, score.Score)
				}
				sides[score.Score] = true
			}
		}
		if len(sides) < 6 {
			t.Errorf("100 throws showed %v, want more of the 11 sides", sides)
		}
	})
}
