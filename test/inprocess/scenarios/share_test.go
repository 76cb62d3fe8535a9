// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

const (
	// The share of the pods app=web that placement-policy.yaml allows on the nodes capacity=spot, in percent.
	leastOnSpot, mostOnSpot = 60, 80
	// enough is the number of web pods from which on their share is meaningful.
	enough = 20
)

// podEachMinute is a random stream of pods on nodes in three zones, every second of them spot: two of three pods are of
// the Deployment web, which is scaled up, and down again, because pods end after one to six hours. With one pod per
// minute, the placement of each is known.
func podEachMinute(seed int64) scenario {
	random := rand.New(rand.NewSource(seed))
	s := scenario{length: 16 * time.Hour}
	for i := range 40 {
		of := []string{"on-demand", spot}[i%2]
		s.nodes = append(s.nodes, node(fmt.Sprintf("%s-%d", of, i), 16, 64, map[string]string{
			corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%3), "capacity": of,
		}))
	}
	for at := time.Duration(0); at < s.length; at += time.Minute {
		app := []string{"web", "web", "batch"}[random.Intn(3)]
		pod := st.MakePod().Name(fmt.Sprintf("%s-%d", app, len(s.pods))).Label("app", app).Req(requests(250*(1+random.Intn(4)), 1024)).Obj()
		// It ends between the creations of two others.
		s.add(at, time.Duration(60+random.Intn(300))*time.Minute-30*time.Second, pod)
	}
	return s
}

// podEachMinuteByHand gives each web pod a preference for spot nodes with the maximum weight.
func podEachMinuteByHand(seed int64) scenario {
	s := podEachMinute(seed)
	for _, event := range s.pods {
		if pod := event.Pods.Pod; pod.Labels["app"] == "web" {
			prefer(pod, 100, corev1.NodeSelectorRequirement{Key: "capacity", Operator: corev1.NodeSelectorOpIn, Values: []string{spot}})
		}
	}
	return s
}

// shareOverTime has the share of the web pods on spot nodes over time, in percent.
type shareOverTime struct {
	least, mean, most float64
	// against is the number of web pods, of all, that were placed on a node against the policy.
	against, all int
}

func shareOf(lives []life) shareOverTime {
	s, samples := shareOverTime{least: 100}, 0.0
	for _, now := range lives {
		web, onSpot := 0, 0
		for _, l := range lives {
			if l.Pod.Labels["app"] == "web" && l.at(now.from) {
				web++
				if strings.HasPrefix(l.node, spot) {
					onSpot++
				}
			}
		}
		if now.Pod.Labels["app"] == "web" {
			s.all++
			// At most 80 % of the pods, rounded down, and at least 60 %, rounded up but not above the maximum.
			most := mostOnSpot * web / 100
			least := min((leastOnSpot*web+99)/100, most)
			if to := strings.HasPrefix(now.node, spot); to && onSpot > most || !to && onSpot < least {
				s.against++
			}
		}
		if web >= enough {
			share := 100 * float64(onSpot) / float64(web)
			s.least, s.most, s.mean = min(s.least, share), max(s.most, share), s.mean+share
			samples++
		}
	}
	s.mean /= samples
	return s
}

// TestShareOfSpot checks that with the share rule no pod is placed against the policy. Without it, the spot nodes, half
// of all, have half of the pods; with a preference, all of them.
func TestShareOfSpot(t *testing.T) {
	t.Parallel()
	ways := []way{
		{"default profile", "share", stock},
		{"preferred node affinity", "share by hand", stock},
		{"NodeFilter with a share", "share", manifest(t, "placement-policy.yaml")},
	}
	s := podEachMinute(1)
	got := compare(t, fmt.Sprintf("%d pods on %d nodes, half of them spot, in %v; %d to %d %% of the web pods are to be on spot nodes",
		len(s.pods), len(s.nodes), s.length, leastOnSpot, mostOnSpot), "least | mean | most | placed against the policy", ways,
		func(way way) (shareOverTime, []any) {
			o := shareOf(s.lives(t, run(t, way, 1), 1))
			return o, []any{percent(o.least / 100), percent(o.mean / 100), percent(o.most / 100), fmt.Sprintf("%d of %d", o.against, o.all)}
		})
	ours := got[2]
	if ours.against > 0 {
		t.Errorf("%d of %d web pods went where the policy is against it", ours.against, ours.all)
	}
	// Pods that end can move the share out of its bounds until others are created.
	if ours.least < leastOnSpot-5 || ours.most > mostOnSpot+5 {
		t.Errorf("%.1f to %.1f %% of the web pods were on spot nodes, far from %d to %d %%", ours.least, ours.most, leastOnSpot, mostOnSpot)
	}
	for i, other := range got[:2] {
		if other.against < other.all/10 {
			t.Errorf("%s: only %d of %d web pods went where the policy is against it, so this is no scenario for it", ways[i].name, other.against, other.all)
		}
	}
}
