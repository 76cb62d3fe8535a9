// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"context"
	"fmt"
	"math/rand"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/measured"
	"k8s.io/utils/pointer"
)

// TestResultsAreThoseWithoutKeeping lets time pass, measurements come and grow old, and nodes change, and asks again
// and again about pods of few kinds: what is kept must be what is computed when nothing is.
func TestResultsAreThoseWithoutKeeping(t *testing.T) {
	for stale, percent := range map[config.NodeLoadFilterOnStale]int32{config.NodeLoadFilterOpen: 0, config.NodeLoadFilterClosed: 40} {
		stale, percent := stale, percent
		t.Run(string(stale), func(t *testing.T) {
			const seed, steps, count = 1, 1500, 12
			random := rand.New(rand.NewSource(seed))
			byMemory, byNetwork := cpu(0), network(90)
			byMemory.Name, byMemory.Estimator.Resource, byMemory.Strategy = "memory", v1.ResourceMemory, config.NodeLoadRisk
			byNetwork.Strategy = config.NodeLoadTargetUtilization
			args := arguments(cpu(70), byMemory, byNetwork)
			args.FilterOnStale, args.ExemptPriorityAbove, args.MinFreshNodesPercent = stale, pointer.Int32(10), percent
			w := newWorld(t, args, nodes(count))
			measure := func() {
				samples := map[string][]measured.Sample{}
				for i := 0; i < count; i++ {
					var of []measured.Sample
					for range w.plugin.resources {
						s := w.sample(random.Float64()*0.9, time.Duration(random.Intn(200))*time.Second)
						s.Deviation, s.HasDeviation = random.Float64()/5, random.Intn(4) > 0
						if random.Intn(8) == 0 {
							s = measured.Sample{Missing: measured.NotANumber}
						}
						of = append(of, s)
					}
					samples[fmt.Sprintf("node-%d", i)] = of
				}
				w.measure(samples)
			}
			measure()
			kinds := []*v1.Pod{pod("small", "100m"), pod("large", "2"), pod("streams", "100m"), pod("urgent", "2"), pod("alike", "100m")}
			kinds[2].Annotations = map[string]string{"example.com/bandwidth": "200M"}
			kinds[3].Spec.Priority = pointer.Int32(11)
			infos, err := w.SnapshotSharedLister().NodeInfos().List()
			if err != nil {
				t.Fatal(err)
			}
			hits, passed := 0, 0
			for step := 0; step < steps; step++ {
				switch random.Intn(10) {
				case 0:
					// It is set back, too: by little, and by so much that the ages are not known any more.
					w.clock.SetTime(w.clock.Now().Add(time.Duration(random.Intn(35)-15) * time.Second))
				case 1:
					infos[random.Intn(count)].AddPod(pod(fmt.Sprintf("assumed-%d", step), "300m"))
				case 2:
					if random.Intn(4) == 0 {
						measure()
					}
				}
				incoming, state := kinds[random.Intn(len(kinds))], framework.NewCycleState()
				w.plugin.PreFilter(context.Background(), state, incoming)
				c, v := w.plugin.cycle(state, incoming), w.plugin.current()
				// Rejected nodes are scored as well, and scored before they are filtered.
				filterFirst := random.Intn(2) == 0
				ask := func() (texts []string) {
					for _, info := range infos {
						var status *framework.Status
						if filterFirst {
							status = w.plugin.Filter(context.Background(), state, incoming, info)
						}
						score, _ := w.plugin.Score(context.Background(), state, incoming, info.Node().Name)
						if !filterFirst {
							status = w.plugin.Filter(context.Background(), state, incoming, info)
						}
						texts = append(texts, fmt.Sprintf("%s: score %d, %q", info.Node().Name, score, status.Message()))
					}
					return texts
				}
				for _, info := range infos {
					_, passes, found := c.result(info)
					if found {
						hits++
					}
					if passes {
						passed++
					}
				}
				kept := ask()
				results, loads := append([]uint64(nil), v.results.words...), append([]uint64(nil), v.loads...)
				forget(v)
				for i, computed := range ask() {
					if kept[i] != computed {
						t.Fatalf("seed %d, step %d, pod %s: kept %s; computed %s", seed, step, incoming.Name, kept[i], computed)
					}
				}
				copy(v.results.words, results)
				copy(v.loads, loads)
			}
			if hits < steps || passed < steps || passed == hits {
				t.Errorf("of %d nodes that were asked about, %d results were kept and %d nodes known to pass; want more, and not all", steps*count, hits, passed)
			}
		})
	}
}

// TestFirstOfAKindIsNotKept, for it may be the last; nor is any after too many kinds.
func TestFirstOfAKindIsNotKept(t *testing.T) {
	s := newResults(1)
	seen := map[uint64]bool{}
	for i := 1; i <= 1<<kindBits; i++ {
		of := &podKind{estimates: [maxResources]float64{float64(i)}}
		if number := s.kind(of); number != notKept {
			t.Fatalf("the first pod of kind %d has number %d", i, number)
		}
		number := s.kind(of)
		if last := i == 1<<kindBits; (number == notKept) != last {
			t.Fatalf("the second pod of kind %d has number %d", i, number)
		}
		if seen[number] {
			t.Fatalf("number %d is given twice", number)
		}
		seen[number] = true
	}
	if got := s.kind(&podKind{estimates: [maxResources]float64{1}}); got == notKept {
		t.Error("too many kinds make the ones before forgotten")
	}
}

// TestManyResultsAreKept: of as many nodes as there is room made for, nearly all.
func TestManyResultsAreKept(t *testing.T) {
	const count = 1000
	all := nodes(count)
	w := newWorld(t, arguments(cpu(80)), all)
	samples := map[string][]measured.Sample{}
	for i, n := range all {
		// What is too old stays so.
		samples[n.Name] = []measured.Sample{w.sample(0.1, time.Duration(i%3*2)*time.Minute)}
	}
	w.measure(samples)
	for i := 0; i < many; i++ {
		w.cycle(t, pod("incoming", "1"))
	}
	state := framework.NewCycleState()
	w.plugin.PreFilter(context.Background(), state, pod("incoming", "1"))
	c, found := w.plugin.cycle(state, nil), 0
	for _, n := range all {
		if _, passes, kept := c.result(w.nodeInfo(t, n.Name)); kept && passes {
			found++
		}
	}
	if found < count*95/100 {
		t.Errorf("of %d nodes' results %d are kept", count, found)
	}
}
