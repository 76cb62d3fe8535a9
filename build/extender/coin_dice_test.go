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

// TestCoinAndDice checks that the results of the published configuration depend on the seed, the pod's UID, the number of
// the request and the node's name only.
func TestCoinAndDice(t *testing.T) {
	content, err := os.ReadFile("../../manifests/config/extender-coin-dice.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var nodes []*corev1.Node
	for i := range 200 {
		nodes = append(nodes, bareNode(fmt.Sprintf("node-%d", i)))
	}
	// draw calls an extender that was just started.
	draw := func(mode, configuration, namespace string) ([]string, extenderv1.HostPriorityList) {
		f := newFixture(t, configuration, generous, objects(nodes)...)
		client := upstreamsClient(t, extenderConfig(f.url, in(mode)))
		pod := newPod()
		pod.Namespace = namespace
		passed, _, unresolvable, err := client.Filter(pod, nodes)
		// Unresolvable: no pod is evicted because of a coin.
		if err != nil || len(passed)+len(unresolvable) != len(nodes) {
			t.Errorf("%d nodes passed and %d failed for good, of %d; %v", len(passed), len(unresolvable), len(nodes), err)
		}
		scores, _, err := client.Prioritize(pod, nodes)
		if err != nil {
			t.Fatal(err)
		}
		return namesOf(passed), *scores
	}
	passed, scores := draw("names", string(content), "default")
	if again, dice := draw("whole nodes", string(content), "default"); !reflect.DeepEqual(again, passed) || !reflect.DeepEqual(dice, scores) {
		t.Errorf("another extender with this seed: %v %v\nand before %v %v", again, dice, passed, scores)
	}
	other, dice := draw("names", strings.Replace(string(content), "seed: 7", "seed: 8", 1), "default")
	if reflect.DeepEqual(other, passed) || reflect.DeepEqual(dice, scores) {
		t.Error("seed 8 has the coins or the dice of seed 7")
	}
	all, dice := draw("names", string(content), "other")
	for _, score := range dice {
		if len(all) != len(nodes) || score.Score != 0 {
			t.Fatalf("%d of %d nodes passed in another namespace, and %s has the score %d", len(all), len(nodes), score.Host, score.Score)
		}
	}
}
