// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodefilter"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"kube-scheduler-fork/test/inprocess/table"
)

// The share of the pods app=web that placement-policy.yaml allows on the nodes capacity=spot, in percent.
const (
	leastOnSpot, mostOnSpot = 60, 80
	// warm is the number of web pods from which on their share is meaningful.
	warm = 20
)

// halfSpot returns nodes in three zones, every second of them spot.
func halfSpot(count int) []*corev1.Node {
	var nodes []*corev1.Node
	for i := range count {
		of := []string{"on-demand", spot}[i%2]
		name := fmt.Sprintf("%s-%d", of, i)
		nodes = append(nodes, st.MakeNode().Name(name).Label(corev1.LabelHostname, name).Label(corev1.LabelTopologyZone, fmt.Sprintf("zone-%d", i%3)).
			Label("capacity", of).Capacity(map[corev1.ResourceName]string{corev1.ResourceCPU: "16", corev1.ResourceMemory: "64Gi", corev1.ResourcePods: "110"}).Obj())
	}
	return nodes
}

// aPodEachMinute returns a random stream of pods: two of three are of the Deployment web, which is scaled up, and down
// again, because pods end after one to six hours. With one pod per minute, the placement of each is known.
func aPodEachMinute(seed int64, length time.Duration) []visit {
	random := rand.New(rand.NewSource(seed))
	var pods []visit
	for at := time.Duration(0); at < length; at += time.Minute {
		app := []string{"web", "web", "batch"}[random.Intn(3)]
		pods = append(pods, visit{
			pod: st.MakePod().Name(fmt.Sprintf("%s-%d", app, len(pods))).Label("app", app).Req(map[corev1.ResourceName]string{
				corev1.ResourceCPU: fmt.Sprintf("%dm", 250*(1+random.Intn(4))), corev1.ResourceMemory: "1Gi",
			}).Obj(),
			comes: at, runs: time.Duration(60+random.Intn(300)) * time.Minute,
		})
	}
	return pods
}

// preferringSpot gives each web pod a preference for spot nodes with the maximum weight.
func preferringSpot(pods []visit) []visit {
	var preferring []visit
	for _, v := range pods {
		v.pod = v.pod.DeepCopy()
		if v.pod.Labels["app"] == "web" {
			v.pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
				Weight: 100,
				Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: "capacity", Operator: corev1.NodeSelectorOpIn, Values: []string{spot}},
				}},
			}}}}
		}
		preferring = append(preferring, v)
	}
	return preferring
}

// shareOverTime has the share of the web pods on spot nodes over time, in percent.
type shareOverTime struct {
	least, mean, most float64
	// against is the number of web pods, of all, that were placed on a node against the policy.
	against, came int
	podsPerSecond float64
}

func shareOf(t *testing.T, way way, tr trace) shareOverTime {
	t.Helper()
	s, steps := shareOverTime{least: 100}, 0.0
	known := map[string]bool{}
	c := play(t, way, tr, func(c *cluster) {
		web, onSpot, came := 0, 0, ""
		for name, pod := range c.placed {
			if pod.Labels["app"] != "web" {
				continue
			}
			web++
			if strings.HasPrefix(pod.Spec.NodeName, spot) {
				onSpot++
			}
			if !known[name] {
				known[name], came = true, pod.Spec.NodeName
			}
		}
		if len(c.waiting) > 0 {
			t.Errorf("%s: after %v pods wait", way.name, c.now)
		}
		if came != "" {
			s.came++
			// At most 80 % of the pods, rounded down, and at least 60 %, rounded up but not above the maximum.
			most := mostOnSpot * web / 100
			least := min((leastOnSpot*web+99)/100, most)
			if strings.HasPrefix(came, spot) && onSpot > most || !strings.HasPrefix(came, spot) && onSpot < least {
				s.against++
			}
		}
		if web < warm {
			return
		}
		share := 100 * float64(onSpot) / float64(web)
		s.least, s.most, s.mean = min(s.least, share), max(s.most, share), s.mean+share
		steps++
	})
	s.mean /= steps
	s.podsPerSecond = c.podsPerSecond()
	return s
}

// TestShareOfSpot checks that with the share rule no pod is placed against the policy. Without it, the spot nodes, half
// of all, have half of the pods; with a preference, all of them.
func TestShareOfSpot(t *testing.T) {
	tr := trace{length: 16 * time.Hour, step: time.Minute, nodes: halfSpot(40)}
	pods := aPodEachMinute(1, tr.length)
	ways := []struct {
		way
		pods []visit
	}{
		{way{name: "default"}, pods},
		{way{name: "preferred node affinity"}, preferringSpot(pods)},
		{way{
			name: "NodeFilter with a share", config: manifest(t, "placement-policy.yaml"),
			plugins: frameworkruntime.Registry{nodefilter.Name: nodefilter.New},
		}, pods},
	}
	got := map[string]shareOverTime{}
	for _, way := range ways {
		tr.pods = way.pods
		got[way.name] = shareOf(t, way.way, tr)
	}
	table.Log(t, fmt.Sprintf("%d pods on %d nodes, half of them spot, in %v; %d to %d %% of the web pods are to be on spot nodes", len(pods), len(tr.nodes), tr.length, leastOnSpot, mostOnSpot),
		[]string{"web pods on spot", "least", "mean", "most", "placed against the policy", "pods per second"},
		func(row func(...any)) {
			for _, way := range ways {
				s := got[way.name]
				row(way.name, fmt.Sprintf("%.1f %%", s.least), fmt.Sprintf("%.1f %%", s.mean), fmt.Sprintf("%.1f %%", s.most),
					fmt.Sprintf("%d of %d", s.against, s.came), fmt.Sprintf("%.0f", s.podsPerSecond))
			}
		})
	ours := got["NodeFilter with a share"]
	if ours.against > 0 {
		t.Errorf("%d of %d web pods went where the policy is against it", ours.against, ours.came)
	}
	// Pods that end can move the share out of its bounds until others are created.
	if ours.least < leastOnSpot-5 || ours.most > mostOnSpot+5 {
		t.Errorf("%.1f to %.1f %% of the web pods were on spot nodes, far from %d to %d %%", ours.least, ours.most, leastOnSpot, mostOnSpot)
	}
	for _, other := range ways[:2] {
		if s := got[other.name]; s.against < s.came/10 {
			t.Errorf("%s: %d of %d web pods went where the policy is against it, so this is no trace for it", other.name, s.against, s.came)
		}
	}
}
