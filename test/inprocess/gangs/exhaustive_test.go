// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// gangs is the number of random gangs, and mostWrong the share of those of mixed shapes, in percent, that may wait
	// although they fit: one pod after the other is incomplete.
	gangs, mostWrong = 1000, 2
	gpu              = v1.ResourceName("nvidia.com/gpu")
	disk             = "disk"
)

// amounts are cores, gibibytes and GPUs.
type amounts [3]int

func (a amounts) list() v1.ResourceList {
	return v1.ResourceList{
		v1.ResourceCPU:    *resource.NewQuantity(int64(a[0]), resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(int64(a[1])<<30, resource.BinarySI),
		gpu:               *resource.NewQuantity(int64(a[2]), resource.DecimalSI),
	}
}

// add adds b to a, times a factor.
func (a *amounts) add(b amounts, times int) {
	for i := range a {
		a[i] += times * b[i]
	}
}

type machine struct {
	has     amounts
	zone    string
	disk    string
	tainted bool
}

// shape is what pods have in common.
type shape struct {
	needs     amounts
	disk      string // empty: any
	tolerates bool
}

// neighbour is a pod on a node.
type neighbour struct {
	node     int
	needs    amounts
	priority int32
}

// puzzle is a gang and a cluster.
type puzzle struct {
	machines   []machine
	neighbours []neighbour
	members    []shape
	minMember  int
	oneZone    bool
	priority   int32
}

// newPuzzle returns a random puzzle; each second one has members of one shape.
func newPuzzle(seed int) puzzle {
	random := rand.New(rand.NewSource(int64(seed)))
	pick := func(values ...int) int { return values[random.Intn(len(values))] }
	p := puzzle{oneZone: random.Intn(4) == 0, priority: []int32{low, normal, normal}[random.Intn(3)]}
	for i := 0; i < 3+random.Intn(3); i++ {
		p.machines = append(p.machines, machine{
			has:  amounts{2 + random.Intn(5), 3 + random.Intn(8), pick(0, 0, 1, 2)},
			zone: fmt.Sprintf("zone-%d", random.Intn(2)), disk: []string{"hdd", "ssd"}[random.Intn(2)], tainted: random.Intn(4) == 0,
		})
		free := p.machines[i].has
		for n := random.Intn(3); n > 0; n-- {
			needs := amounts{1 + random.Intn(2), 1 + random.Intn(2), pick(0, 0, 1)}
			if fits(free, needs) {
				free.add(needs, -1)
				p.neighbours = append(p.neighbours, neighbour{i, needs, []int32{low, low, high}[random.Intn(3)]})
			}
		}
	}
	one := shape{}
	for i := 0; i < 2+random.Intn(5); i++ {
		s := shape{needs: amounts{1 + random.Intn(3), 1 + random.Intn(3), pick(0, 0, 0, 1)}, tolerates: random.Intn(2) == 0}
		if random.Intn(4) == 0 {
			s.disk = []string{"hdd", "ssd"}[random.Intn(2)]
		}
		if i == 0 {
			one = s
		} else if seed%2 == 0 {
			s = one
		}
		p.members = append(p.members, s)
	}
	p.minMember = len(p.members) - pick(0, 0, 0, 1)
	return p
}

func fits(free, needs amounts) bool {
	return needs[0] <= free[0] && needs[1] <= free[1] && needs[2] <= free[2]
}

func (s shape) may(m machine) bool {
	return (s.disk == "" || s.disk == m.disk) && (s.tolerates || !m.tainted)
}

// mixed reports whether the members have several shapes.
func (p puzzle) mixed() bool {
	for _, member := range p.members {
		if member != p.members[0] {
			return true
		}
	}
	return false
}

// holds tries all placements of a number of members; with evict, pods of lower priority are gone.
func (p puzzle) holds(needed int, evict bool) bool {
	for _, zone := range []string{"zone-0", "zone-1"} {
		free := make([]amounts, len(p.machines))
		for i, m := range p.machines {
			if free[i] = m.has; p.oneZone && m.zone != zone {
				free[i] = amounts{-1}
			}
		}
		for _, n := range p.neighbours {
			if !evict || n.priority >= p.priority {
				free[n.node].add(n.needs, -1)
			}
		}
		if p.place(free, 0, needed) {
			return true
		}
	}
	return false
}

// place places so many of the members from next on.
func (p puzzle) place(free []amounts, next, needed int) bool {
	if needed == 0 {
		return true
	}
	if len(p.members)-next < needed {
		return false
	}
	member := p.members[next]
	for i, m := range p.machines {
		if member.may(m) && fits(free[i], member.needs) {
			free[i].add(member.needs, -1)
			if p.place(free, next+1, needed-1) {
				return true
			}
			free[i].add(member.needs, 1)
		}
	}
	return p.place(free, next+1, needed)
}

// exhaustive compares the scheduler's decisions with all placements.
func exhaustive(o order, r *report) error {
	var groups []*unstructured.Unstructured
	for seed := o.First; seed < o.First+o.Count; seed++ {
		annotations := map[string]string{}
		p := newPuzzle(seed)
		if p.oneZone {
			annotations[requiredKey] = v1.LabelTopologyZone
		}
		groups = append(groups, newGroup(fmt.Sprintf("gang-%d", seed), p.minMember, annotations))
	}
	w, err := newWorld(groups)
	for seed := o.First; seed < o.First+o.Count && err == nil; seed++ {
		if err = newPuzzle(seed).compare(w, seed, r); err == nil {
			err = w.clear()
		}
	}
	return err
}

// set sets up the cluster, and creates the gang.
func (p puzzle) set(w *world, seed int) error {
	for i, m := range p.machines {
		node := newNode(fmt.Sprintf("node-%d-%d", seed, i), 0).Label(v1.LabelTopologyZone, m.zone).Label(disk, m.disk)
		if m.tainted {
			node.Taints([]v1.Taint{{Key: "dedicated", Effect: v1.TaintEffectNoSchedule}})
		}
		list := m.has.list()
		list[v1.ResourcePods] = resource.MustParse("110")
		node.Status.Capacity, node.Status.Allocatable = list, list
		w.add(node.Obj())
	}
	create := func(name, group string, s shape, priority int32, selector map[string]string) {
		pod := newPod(name, group, 0, priority)
		pod.Pod.Spec.Containers[0].Resources.Requests = s.needs.list()
		pod.Pod.Spec.Containers[0].Resources.Limits = v1.ResourceList{gpu: s.needs.list()[gpu]}
		if pod.Pod.Spec.NodeSelector = selector; s.disk != "" {
			pod.Pod.Spec.NodeSelector = map[string]string{disk: s.disk}
		}
		if s.tolerates {
			pod.Pod.Spec.Tolerations = []v1.Toleration{{Key: "dedicated", Operator: v1.TolerationOpExists}}
		}
		w.create(pod)
	}
	for i, n := range p.neighbours {
		create(fmt.Sprintf("neighbour-%d-%d", seed, i), "", shape{needs: n.needs, tolerates: true}, n.priority,
			map[string]string{v1.LabelHostname: fmt.Sprintf("node-%d-%d", seed, n.node)})
	}
	if err := w.advance(time.Second); err != nil {
		return err
	}
	if placed := len(w.placed()); placed != len(p.neighbours) {
		return fmt.Errorf("puzzle %d: %d of %d neighbours run", seed, placed, len(p.neighbours))
	}
	for i, member := range p.members {
		create(fmt.Sprintf("member-%d-%d", seed, i), fmt.Sprintf("gang-%d", seed), member, p.priority, nil)
	}
	return w.advance(20 * time.Second)
}

func (p puzzle) compare(w *world, seed int, r *report) error {
	if err := p.set(w, seed); err != nil {
		return err
	}
	pods := w.placed()
	placed, evicted, wrong := p.check(pods, seed)
	if wrong != "" {
		r.fail("puzzle %d: %s: %+v", seed, wrong, p)
	}
	kind := "one shape"
	if p.mixed() {
		kind = "mixed shapes"
	}
	r.Counts[kind]++
	free, evicting := p.holds(p.minMember, false), p.holds(p.minMember, true)
	if evicting {
		r.Counts[kind+", fits"]++
	}
	if evicting && !free {
		r.Counts[kind+", fits by evictions"]++
	}
	switch {
	case placed > 0 && placed < p.minMember:
		r.fail("puzzle %d: %d members run, want at least %d or none: %+v", seed, placed, p.minMember, p)
	case placed == 0 && evicted > 0:
		r.fail("puzzle %d: %d pods were evicted, and the gang does not run: %+v", seed, evicted, p)
	case placed > 0 && !evicting:
		r.fail("puzzle %d: the gang runs, but does not fit: %+v", seed, p)
	case placed == 0 && evicting:
		if r.Counts[kind+", wrong no"]++; kind == "one shape" {
			r.fail("puzzle %d: the gang waits, but fits (without evictions: %v): %+v", seed, free, p)
		}
	case evicted > 0 && p.holds(placed, false) && (!p.oneZone || placed == p.minMember):
		if r.Counts[kind+", needless"]++; kind == "one shape" {
			r.fail("puzzle %d: %d pods were evicted, but %d members fit without: %+v", seed, evicted, placed, p)
		}
	}
	return nil
}

// check counts the members that run, and the neighbours that do not, and reports what is wrong with the placement.
func (p puzzle) check(pods map[string]*v1.Pod, seed int) (placed, evicted int, wrong string) {
	free, zones, at := make([]amounts, len(p.machines)), map[string]bool{}, map[string]int{}
	for i, m := range p.machines {
		free[i], at[fmt.Sprintf("node-%d-%d", seed, i)] = m.has, i
	}
	for i, n := range p.neighbours {
		if pods[fmt.Sprintf("neighbour-%d-%d", seed, i)] != nil {
			free[n.node].add(n.needs, -1)
		} else if evicted++; n.priority >= p.priority {
			wrong = fmt.Sprintf("a pod of the priority %d was evicted", n.priority)
		}
	}
	var nodes []string
	for i, member := range p.members {
		pod := pods[fmt.Sprintf("member-%d-%d", seed, i)]
		if pod == nil {
			continue
		}
		placed++
		on := at[pod.Spec.NodeName]
		free[on].add(member.needs, -1)
		zones[p.machines[on].zone] = true
		nodes = append(nodes, fmt.Sprintf("%d on %d", i, on))
		if !member.may(p.machines[on]) {
			wrong = fmt.Sprintf("member %d may not be on node %d", i, on)
		}
	}
	for i := range free {
		if !fits(free[i], amounts{}) {
			wrong = fmt.Sprintf("node %d is overcommitted", i)
		}
	}
	if p.oneZone && len(zones) > 1 {
		wrong = "the gang is in two zones"
	}
	if wrong != "" {
		wrong += " (" + strings.Join(nodes, ", ") + ")"
	}
	return placed, evicted, wrong
}

func TestDecisionsAgainstExhaustiveSearch(t *testing.T) {
	counts := runCases(t, "exhaustive", gangs)
	for _, kind := range []string{"one shape", "mixed shapes"} {
		t.Logf("%s: %d gangs; %d fit, %d of them by evictions; of these %d wait, and %d evict needlessly", kind,
			counts[kind], counts[kind+", fits"], counts[kind+", fits by evictions"], counts[kind+", wrong no"], counts[kind+", needless"])
	}
	if wrong, all := counts["mixed shapes, wrong no"], counts["mixed shapes, fits"]; 100*wrong > mostWrong*all {
		t.Errorf("%d of %d gangs of mixed shapes that fit wait, want at most %d %%", wrong, all, mostWrong)
	}
}
