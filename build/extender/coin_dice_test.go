// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// drawn is what an extender answers about some nodes.
type drawn struct {
	passed []string
	scores extenderv1.HostPriorityList
}

// coinAndDice is the configuration that people copy.
func coinAndDice(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("../../manifests/config/extender-coin-dice.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// draw asks an extender that was just started: first where a pod of a namespace may go, then how good each node is.
func draw(t *testing.T, mode, configuration, namespace string, nodes []*corev1.Node) drawn {
	t.Helper()
	f := newFixture(t, configuration, generous, objects(nodes)...)
	question := modes[mode](nodes...)
	question.Pod.Namespace = namespace
	var result extenderv1.ExtenderFilterResult
	f.post(t, "filter", question, &result)
	d := drawn{passed: passed(t, mode, result)}
	// Preemption could not help, so no pod has to go because of a coin.
	for node, why := range result.FailedAndUnresolvableNodes {
		if !strings.Contains(why, "a coin of Chaos") {
			t.Errorf("of %s it is said: %q", node, why)
		}
	}
	if rejected := len(result.FailedAndUnresolvableNodes); len(d.passed)+rejected != len(nodes) {
		t.Errorf("%d nodes passed and %d failed for good, of %d", len(d.passed), rejected, len(nodes))
	}
	f.post(t, "prioritize", question, &d.scores)
	if len(d.scores) != len(nodes) {
		t.Fatalf("%d nodes have scores, of %d", len(d.scores), len(nodes))
	}
	return d
}

// TestCoinAndDice leaves nothing to chance: what is drawn depends on the seed, the pod's UID, the number of the
// question and the node's name.
func TestCoinAndDice(t *testing.T) {
	configuration := coinAndDice(t)
	var nodes []*corev1.Node
	for i := range 200 {
		nodes = append(nodes, bareNode(fmt.Sprintf("node-%d", i)))
	}
	first := draw(t, "names", configuration, "default", nodes)
	t.Run("another extender with this seed draws the same", func(t *testing.T) {
		for mode := range modes {
			if again := draw(t, mode, configuration, "default", nodes); !reflect.DeepEqual(again, first) {
				t.Errorf("%s: %v\nand before %v", mode, again, first)
			}
		}
	})
	t.Run("one with another seed does not", func(t *testing.T) {
		other := draw(t, "names", strings.Replace(configuration, "seed: 7", "seed: 8", 1), "default", nodes)
		if reflect.DeepEqual(other.passed, first.passed) || reflect.DeepEqual(other.scores, first.scores) {
			t.Error("seed 8 has the coins or the dice of seed 7")
		}
	})
	t.Run("pods of other namespaces are left alone", func(t *testing.T) {
		alone := draw(t, "names", configuration, "other", nodes)
		if len(alone.passed) != len(nodes) {
			t.Errorf("%d of %d nodes passed", len(alone.passed), len(nodes))
		}
		for _, score := range alone.scores {
			if score.Score != 0 {
				t.Errorf("%s has the score %d", score.Host, score.Score)
			}
		}
	})
}
