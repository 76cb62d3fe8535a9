// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/draw"
)

// keys are the keys of an attempt's draws, each independent of the others. They hold the seed, the pod's UID and the
// attempt's number.
type keys struct {
	coins, dice, delay, redirect, target uint64
}

func newKeys(attempt uint64) keys {
	return keys{
		coins:    draw.Mix(attempt, "coins"),
		dice:     draw.Mix(attempt, "dice"),
		delay:    draw.Mix(attempt, "delay"),
		redirect: draw.Mix(attempt, "redirect"),
		target:   draw.Mix(attempt, "target"),
	}
}

// rejects flips the node's coin, which falls against it in percent of the cases.
func (k *keys) rejects(nodeName string, percent int32) bool {
	return happens(draw.Mix(k.coins, nodeName), percent)
}

// score throws the node's die: 0 to 100, each as likely.
func (k *keys) score(nodeName string) int64 {
	return int64(draw.Below(draw.Mix(k.dice, nodeName), uint64(framework.MaxNodeScore+1)))
}

// permitDelay draws a delay of more than 0 and at most max, uniformly. max is more than 0.
func (k *keys) permitDelay(max time.Duration) time.Duration {
	return 1 + time.Duration(draw.Below(k.delay, uint64(max)))
}

// redirects says whether the pod goes to a random node: so it is in percent of the cases.
func (k *keys) redirects(percent int32) bool {
	return happens(k.redirect, percent)
}

// drawNode draws one of the nodes, each as likely: the one with the lowest number, if each draws a number. So the order
// of the nodes does not matter, and of two lists that differ in few nodes mostly the same one is drawn (rendezvous
// hashing: D. Thaler and C. Ravishankar, IEEE/ACM Transactions on Networking 6(1), 1998). It is "" without nodes.
func (k *keys) drawNode(nodes []*v1.Node) string {
	drawn, lowest := "", uint64(0)
	for _, node := range nodes {
		if number := draw.Mix(k.target, node.Name); drawn == "" || number < lowest {
			drawn, lowest = node.Name, number
		}
	}
	return drawn
}

func happens(key uint64, percent int32) bool {
	return draw.Below(key, 100) < uint64(percent)
}
