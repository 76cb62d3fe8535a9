// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"fmt"
	"os"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// TestCoinAndDice sends the same requests to two extenders with the published configuration, by names and with whole
// nodes. Package chaos tests what coins and dice depend on.
func TestCoinAndDice(t *testing.T) {
	content, err := os.ReadFile("../../manifests/config/extender-coin-dice.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var nodes []*corev1.Node
	for i := range 200 {
		nodes = append(nodes, bareNode(fmt.Sprintf("node-%d", i)))
	}
	var coins [2][]string
	var dice [2]extenderv1.HostPriorityList
	for i, mode := range modes {
		client := upstreamsClient(t, extenderConfig(newFixture(t, string(content), generous, objects(nodes)...).url, in(mode)))
		passed, _, unresolvable, err := client.Filter(newPod(), nodes)
		// Unresolvable: no pod is evicted because of a coin.
		if err != nil || len(passed) == 0 || len(unresolvable) == 0 || len(passed)+len(unresolvable) != len(nodes) {
			t.Errorf("%d nodes passed and %d failed for good, of %d; %v", len(passed), len(unresolvable), len(nodes), err)
		}
		scores, _, err := client.Prioritize(newPod(), nodes)
		if err != nil {
			t.Fatal(err)
		}
		coins[i], dice[i] = namesOf(passed), *scores
	}
	if !reflect.DeepEqual(coins[0], coins[1]) || !reflect.DeepEqual(dice[0], dice[1]) {
		t.Errorf("got %v %v, and %v %v", coins[0], dice[0], coins[1], dice[1])
	}
}
