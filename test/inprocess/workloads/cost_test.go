// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"fmt"
	"math"
	"math/rand"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodecost"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"kube-scheduler-fork/test/inprocess/table"
)

const (
	capacityType = "karpenter.sh/capacity-type"
	spot         = "spot"
	// luck is the share of another way's cost below which a cost is lower: days of the same way differ by less.
	luck = 0.95
	day  = 24 * time.Hour
)

// machines are the instance types of the trace's nodes, with their capacity
// and price per hour. The type old-8 is in no price table of a configuration.
var machines = []struct {
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

// priced returns the nodes of the trace in three zones, and the price of each per hour.
func priced() ([]*corev1.Node, map[string]float64) {
	var nodes []*corev1.Node
	prices := map[string]float64{}
	for _, m := range machines {
		for i := range m.onDemand + m.some {
			zone, of, price := "zone-"+string(rune('a'+i%3)), "on-demand", m.price
			if i >= m.onDemand {
				of, price = spot, m.spot
				if m.name == "general-8" && zone == "zone-a" {
					price = 0.12
				}
			}
			name := fmt.Sprintf("%s-%s-%d", m.name, of, i)
			prices[name] = price
			nodes = append(nodes, st.MakeNode().Name(name).Label(corev1.LabelHostname, name).Label(corev1.LabelTopologyZone, zone).
				Label(corev1.LabelInstanceTypeStable, m.name).Label(capacityType, of).
				Capacity(map[corev1.ResourceName]string{
					corev1.ResourceCPU: fmt.Sprint(m.cpu), corev1.ResourceMemory: fmt.Sprintf("%dGi", m.memory), corev1.ResourcePods: "110",
				}).Obj())
		}
	}
	return nodes, prices
}

// dayOfPods returns a random day. Services have more replicas the more people are awake, most at two in the afternoon;
// batch pods come mostly at night, and tolerate spot.
func dayOfPods(seed int64) []visit {
	random := rand.New(rand.NewSource(seed))
	var pods []visit
	add := func(v visit, name string, milliCPU, mebibytes int) {
		v.pod = st.MakePod().Name(name).Req(map[corev1.ResourceName]string{
			corev1.ResourceCPU: fmt.Sprintf("%dm", milliCPU), corev1.ResourceMemory: fmt.Sprintf("%dMi", mebibytes),
		}).Obj()
		if strings.HasPrefix(name, "batch") {
			v.pod.Spec.Tolerations = []corev1.Toleration{{Key: spot, Operator: corev1.TolerationOpExists}}
		}
		pods = append(pods, v)
	}
	// awake returns the share of people who are awake, from 0.3 at two in the night to 1.
	awake := func(at time.Duration) float64 {
		return 0.65 - 0.35*math.Cos(2*math.Pi*(at-2*time.Hour).Hours()/24)
	}
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
					v := visit{comes: since}
					if at < day {
						v.ends = at
					}
					add(v, fmt.Sprintf("service-%d-%d-%d", service, replica, since/time.Minute), milliCPU, mebibytes)
					since = -1
				}
			}
		}
	}
	for at := time.Duration(0); at < day; at += time.Duration(1+random.Intn(int(10*awake(at)*awake(at))+1)) * time.Minute {
		milliCPU, mebibytes := 500*(1+random.Intn(6)), 1024*(1+random.Intn(8))
		for range 1 + random.Intn(8) {
			add(visit{comes: at, runs: time.Duration(10+random.Intn(110)) * time.Minute}, fmt.Sprintf("batch-%d", len(pods)), milliCPU, mebibytes)
		}
	}
	return pods
}

// bill has the costs of a day.
type bill struct {
	// perHour is the price of the nodes with pods, nodes their number, and services
	// the share of services' pods on spot nodes, all as means over the day.
	perHour, nodes, services float64
	podsPerSecond            float64
}

func billOf(t *testing.T, way way, tr trace, prices map[string]float64) bill {
	t.Helper()
	var b bill
	steps := 0.0
	c := play(t, way, tr, func(c *cluster) {
		steps++
		if len(c.waiting) > 0 {
			t.Fatalf("%s: %d pods find no node, so the nodes in use are not those of all pods", c.name, len(c.waiting))
		}
		services, onSpot := 0, 0
		for node, pods := range c.podsOn() {
			b.perHour += prices[node]
			b.nodes++
			for _, pod := range pods {
				if strings.HasPrefix(pod.Name, "service") {
					services++
					if strings.Contains(node, spot) {
						onSpot++
					}
				}
			}
		}
		b.services += float64(onSpot) / float64(services)
	})
	b.perHour, b.nodes, b.services, b.podsPerSecond = b.perHour/steps, b.nodes/steps, b.services/steps, c.podsPerSecond()
	return b
}

// days is the number of compared days: a single one may suit a way by chance.
const days = 3

// mean returns the mean of a figure over days.
func mean(bills []bill, figure func(bill) float64) float64 {
	sum := 0.0
	for _, b := range bills {
		sum += figure(b)
	}
	return sum / float64(len(bills))
}

func perHour(b bill) float64 { return b.perHour }

// TestCostOfADay checks that bin packing with NodeCost is significantly cheaper than without, and than the default
// profile, and keeps services off spot nodes.
func TestCostOfADay(t *testing.T) {
	nodes, prices := priced()
	registry := frameworkruntime.Registry{nodecost.Name: nodecost.New}
	withCost := manifest(t, "node-cost.yaml")
	byDefault, packing := way{name: "default"}, way{name: "bin packing", config: manifest(t, binPacking)}
	byCost := way{name: "bin packing with NodeCost", config: withCost, plugins: registry}
	ways := []way{byDefault, packing, byCost, {
		name: "the same by CheapestNode", plugins: registry,
		config: strings.Replace(withCost, "strategy: CheapestShare", "strategy: CheapestNode", 1),
	}}
	got, pods := map[string][]bill{}, 0
	for seed := int64(1); seed <= days; seed++ {
		tr := trace{length: day, step: 10 * time.Minute, nodes: nodes, pods: dayOfPods(seed)}
		pods += len(tr.pods)
		for _, way := range ways {
			got[way.name] = append(got[way.name], billOf(t, way, tr, prices))
		}
	}
	table.Log(t, fmt.Sprintf("%d days of %d pods on %d nodes; means, and the cost of each day", days, pods/days, len(nodes)),
		[]string{"", "cost per hour", "each day", "nodes in use", "services' pods on spot", "pods per second"},
		func(row func(...any)) {
			for _, way := range ways {
				bills, each := got[way.name], ""
				for _, b := range bills {
					each += fmt.Sprintf(" %.1f", b.perHour)
				}
				row(way.name, fmt.Sprintf("%.2f", mean(bills, perHour)), each,
					fmt.Sprintf("%.1f", mean(bills, func(b bill) float64 { return b.nodes })),
					fmt.Sprintf("%.0f %%", 100*mean(bills, func(b bill) float64 { return b.services })),
					fmt.Sprintf("%.0f", mean(bills, func(b bill) float64 { return b.podsPerSecond })))
			}
		})
	ours := got[byCost.name]
	for _, other := range []way{byDefault, packing} {
		theirs := got[other.name]
		if mean(ours, perHour) >= luck*mean(theirs, perHour) {
			t.Errorf("nodes in use cost %.2f per hour with NodeCost, and %.2f with %s", mean(ours, perHour), mean(theirs, perHour), other.name)
		}
		for i := range ours {
			if ours[i].perHour >= theirs[i].perHour {
				t.Errorf("day %d: nodes in use cost %.2f per hour with NodeCost, and %.2f with %s", i+1, ours[i].perHour, theirs[i].perHour, other.name)
			}
		}
	}
	for i := range ours {
		if ours[i].services > 0.01 {
			t.Errorf("day %d: %.1f %% of the services' pods were on spot nodes, which they do not tolerate", i+1, 100*ours[i].services)
		}
	}
}
