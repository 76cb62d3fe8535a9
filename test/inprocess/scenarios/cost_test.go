// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"fmt"
	"math"
	"math/rand"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

const (
	spot = "spot"
	day  = 24 * time.Hour
	// days is the number of compared days: a single one may suit a configuration by chance.
	days = 3
	// luck is the share of another figure below which a figure is lower: days of one configuration differ by less.
	luck = 0.95
)

// types are the instance types of the nodes, with their capacity and price per hour. The type old-8 is in no price
// table of a configuration.
var types = []struct {
	name           string
	cpu, memory    int // cores, GiB
	price, spot    float64
	onDemand, some int // nodes of each kind
}{
	{"general-8", 8, 32, 0.38, 0.15, 24, 12},
	{"compute-8", 8, 16, 0.34, 0.11, 18, 12},
	{"memory-8", 8, 64, 0.50, 0.17, 12, 6},
	{"general-16", 16, 64, 0.77, 0.28, 18, 6},
	{"old-8", 8, 32, 0.45, 0, 12, 0},
}

// priced returns nodes in three zones.
func priced() []*corev1.Node {
	var nodes []*corev1.Node
	for _, m := range types {
		for i := range m.onDemand + m.some {
			zone, of, price := "zone-"+string(rune('a'+i%3)), "on-demand", m.price
			if i >= m.onDemand {
				of, price = spot, m.spot
				if m.name == "general-8" && zone == "zone-a" {
					price = 0.12
				}
			}
			nodes = append(nodes, node(fmt.Sprintf("%s-%s-%d", m.name, of, i), m.cpu, m.memory, map[string]string{
				corev1.LabelTopologyZone: zone, corev1.LabelInstanceTypeStable: m.name, "karpenter.sh/capacity-type": of,
				priceLabel: fmt.Sprint(price),
			}))
		}
	}
	return nodes
}

// awake returns the share of people who are awake, from 0.3 at two in the night to 1.
func awake(at time.Duration) float64 {
	return 0.65 - 0.35*math.Cos(2*math.Pi*(at-2*time.Hour).Hours()/24)
}

// dayOfPods is a random day. Services have more replicas the more people are awake, most at two in the afternoon; batch
// pods come mostly at night, and tolerate spot.
func dayOfPods(seed int64) scenario {
	random := rand.New(rand.NewSource(seed))
	s := scenario{length: day, nodes: priced()}
	for service := range 40 {
		replicas := 4 + random.Intn(13)
		milliCPU, mebibytes := 250*(1+random.Intn(6)), 512*(1+random.Intn(8))
		for replica := range replicas {
			// A replica runs while that many are needed.
			var since time.Duration = -1
			for at := time.Duration(0); at <= day; at += 5 * time.Minute {
				needed := at < day && awake(at)*float64(replicas) > float64(replica)
				if needed && since < 0 {
					since = at
				}
				if !needed && since >= 0 {
					s.add(since, at-since, st.MakePod().Name(fmt.Sprintf("service-%d-%d-%d", service, replica, since/time.Minute)).
						Req(requests(milliCPU, mebibytes)).Obj())
					since = -1
				}
			}
		}
	}
	for at := time.Duration(0); at < day; at += time.Duration(1+random.Intn(int(10*awake(at)*awake(at))+1)) * time.Minute {
		milliCPU, mebibytes := 500*(1+random.Intn(6)), 1024*(1+random.Intn(8))
		for range 1 + random.Intn(8) {
			s.add(at, time.Duration(10+random.Intn(110))*time.Minute, st.MakePod().Name(fmt.Sprintf("batch-%d", len(s.pods))).
				Req(requests(milliCPU, mebibytes)).Toleration(spot).Obj())
		}
	}
	return s
}

// bill is the price of the nodes with pods, for an hour, of each day, and means over the days: the price, the number of
// these nodes, and the share of services' pods on spot nodes.
type bill struct {
	each                     []float64
	perHour, nodes, services float64
}

func billOf(t *testing.T, way way) bill {
	t.Helper()
	var b bill
	for seed := int64(1); seed <= days; seed++ {
		s, of := dayOfPods(seed), run(t, way, seed)
		onSpot, all := time.Duration(0), time.Duration(0)
		for _, l := range s.lives(t, of, 1) {
			if strings.HasPrefix(l.Pod.Name, "service") {
				all += l.to - l.from
				if strings.Contains(l.node, spot) {
					onSpot += l.to - l.from
				}
			}
		}
		b.each = append(b.each, figure(t, of, "cost_per_hour"))
		b.perHour += b.each[seed-1] / days
		b.nodes += (float64(len(s.nodes)) - figure(t, of, "empty_nodes")) / days
		b.services += float64(onSpot) / float64(all) / days
	}
	return b
}

// TestCostOfADay checks that bin packing with NodeCost is significantly cheaper than without, and than the default
// profile, and keeps services off spot nodes.
func TestCostOfADay(t *testing.T) {
	t.Parallel()
	ways := []way{
		{"default profile", "cost", stock},
		{"bin packing", "cost", manifest(t, "bin-packing.yaml")},
		{"bin packing with NodeCost", "cost", manifest(t, "node-cost.yaml")},
		{"the same by `CheapestNode`", "cost", manifest(t, "node-cost.yaml", "strategy: CheapestShare", "strategy: CheapestNode")},
	}
	title := fmt.Sprintf("means of %d days of about %d pods on %d nodes", days, len(dayOfPods(1).pods), len(priced()))
	got := compare(t, title, "cost per hour of the nodes in use | each day | nodes in use | services' pods on spot nodes", ways,
		func(way way) (bill, []any) {
			b := billOf(t, way)
			return b, []any{fmt.Sprintf("%.2f", b.perHour), fmt.Sprintf("%.1f", b.each), fmt.Sprintf("%.1f", b.nodes), percent(b.services)}
		})
	ours := got[2]
	for i, theirs := range got[:2] {
		if ours.perHour >= luck*theirs.perHour {
			t.Errorf("nodes in use cost %.2f per hour with NodeCost, and %.2f with %s", ours.perHour, theirs.perHour, ways[i].name)
		}
		for day, price := range ours.each {
			if price >= theirs.each[day] {
				t.Errorf("day %d: nodes in use cost %.2f per hour with NodeCost, and %.2f with %s", day+1, price, theirs.each[day], ways[i].name)
			}
		}
	}
	if ours.services > 0.01 {
		t.Errorf("%s of the services' pods were on spot nodes, which they do not tolerate", percent(ours.services))
	}
}
