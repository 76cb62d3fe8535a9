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
	datasetsKey, rackLabel = "data-locality.scheduler/datasets", "example.com/rack"
	// byHandLabel is a label that people set on nodes for affinities.
	byHandLabel = "data.by-hand/"
)

// held is a dataset with the numbers of the nodes that hold it.
type held struct {
	name  string
	bytes int64
	nodes []int
}

// racked returns 96 nodes in 12 racks and 3 zones, and datasets on three of them each, as HDFS places them: one replica
// on any node, two on two nodes of another rack. Sizes differ by a factor of some thousands.
func racked(random *rand.Rand) ([]*corev1.Node, []held) {
	const racks, ofRack, ofZone = 12, 8, 4
	var nodes []*corev1.Node
	for i := range racks * ofRack {
		nodes = append(nodes, node(fmt.Sprintf("node-%02d", i), 16, 64, map[string]string{
			rackLabel: fmt.Sprintf("rack-%d", i/ofRack), corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i/ofRack/ofZone),
		}))
	}
	var datasets []held
	texts := make([][]string, len(nodes))
	for i := range 1500 {
		d := held{name: fmt.Sprintf("d%d", i), bytes: int64(math.Exp(random.NormFloat64()*1.5) * (10 << 30))}
		first := random.Intn(len(nodes))
		rack := (first/ofRack + 1 + random.Intn(racks-1)) % racks
		two := random.Perm(ofRack)[:2]
		d.nodes = []int{first, rack*ofRack + two[0], rack*ofRack + two[1]}
		for _, n := range d.nodes {
			texts[n] = append(texts[n], d.name)
			nodes[n].Labels[byHandLabel+d.name] = ""
		}
		datasets = append(datasets, d)
	}
	for i, node := range nodes {
		node.Annotations = map[string]string{datasetsKey: strings.Join(texts[i], ",")}
	}
	return nodes, datasets
}

// dataJobs is an hour of random jobs, with the datasets that each pod reads. Jobs have 1 to 16 pods, each of which
// reads one to three datasets, some of them more often than others, for 5 to 35 minutes.
func dataJobs(seed int64) scenario {
	random := rand.New(rand.NewSource(seed))
	nodes, datasets := racked(random)
	s := scenario{length: 90 * time.Minute, nodes: nodes, reads: map[string][]held{}}
	popular := rand.NewZipf(random, 1.3, 4, uint64(len(datasets)-1))
	for at := time.Duration(0); at < time.Hour; at += 12 * time.Second {
		milliCPU := 500 * (1 + random.Intn(4))
		for range 1 + random.Intn(16) {
			pod := st.MakePod().Name(fmt.Sprintf("batch-%d", len(s.pods))).Req(requests(milliCPU, 2*milliCPU)).Obj()
			var texts []string
			for range 1 + random.Intn(3) {
				d := datasets[popular.Uint64()]
				s.reads[pod.Name], texts = append(s.reads[pod.Name], d), append(texts, fmt.Sprintf("%s=%d", d.name, d.bytes))
			}
			pod.Annotations = map[string]string{datasetsKey: strings.Join(texts, ",")}
			s.add(at, time.Duration(5+random.Intn(30))*time.Minute, pod)
		}
	}
	return s
}

// dataJobsByHand adds the usual manual affinity: pods prefer the nodes with the label of a dataset, weighted by size.
func dataJobsByHand(seed int64) scenario {
	s := dataJobs(seed)
	for _, event := range s.pods {
		pod, total := event.Pods.Pod, int64(0)
		for _, d := range s.reads[pod.Name] {
			total += d.bytes
		}
		for _, d := range s.reads[pod.Name] {
			prefer(pod, int32(1+99*d.bytes/total), corev1.NodeSelectorRequirement{Key: byHandLabel + d.name, Operator: corev1.NodeSelectorOpExists})
		}
	}
	return s
}

// reading has the figures of a run.
type reading struct {
	// at are the shares of bytes that were read on the node, in its rack, in its zone, and farther away.
	at [4]float64
	// most is the maximum number of pods on a node at a time.
	most int
}

func (s scenario) reading(lives []life) reading {
	var r reading
	labels := map[string]map[string]string{}
	for _, node := range s.nodes {
		labels[node.Name] = node.Labels
	}
	total := 0.0
	for _, l := range lives {
		for _, d := range s.reads[l.Pod.Name] {
			r.at[levelOf(labels[l.node], s.nodes, d)] += float64(d.bytes)
			total += float64(d.bytes)
		}
		together := 0
		for _, other := range lives {
			if other.node == l.node && other.at(l.from) {
				together++
			}
		}
		r.most = max(r.most, together)
	}
	for level := range r.at {
		r.at[level] /= total
	}
	return r
}

// levelOf returns the level of the nearest replica of a dataset for a node with labels.
func levelOf(labels map[string]string, nodes []*corev1.Node, d held) int {
	for level, key := range []string{corev1.LabelHostname, rackLabel, corev1.LabelTopologyZone} {
		for _, n := range d.nodes {
			if nodes[n].Labels[key] == labels[key] {
				return level
			}
		}
	}
	return 3
}

// TestBatchJobsReadNearToTheirData checks that with DataLocality more bytes are read in the rack or nearer, and fewer
// from another zone, than with the default profile and with manual affinities.
func TestBatchJobsReadNearToTheirData(t *testing.T) {
	t.Parallel()
	ways := []way{
		{"default profile", "data", stock},
		{"preferred node affinity", "data by hand", stock},
		{"DataLocality, weight 20", "data", manifest(t, "data-locality.yaml")},
	}
	s := dataJobs(1)
	got := compare(t, fmt.Sprintf("%d pods on %d nodes in %v, which read datasets with three replicas", len(s.pods), len(s.nodes), s.length),
		"bytes read on the node | in the rack | in the zone | further away | most pods on a node", ways, func(way way) (reading, []any) {
			r := s.reading(s.lives(t, run(t, way, 1), 1))
			return r, []any{percent(r.at[0]), percent(r.at[1]), percent(r.at[2]), percent(r.at[3]), r.most}
		})
	// Affinity covers only the node: a pod without room there goes anywhere.
	byDefault, ours := got[0], got[2]
	for i, far := range []float64{0.1, 0.6} {
		theirs := got[i]
		if ours.at[0]+ours.at[1] <= theirs.at[0]+theirs.at[1] || ours.at[3] >= far*theirs.at[3] {
			t.Errorf("with DataLocality bytes are read near and far by the shares %.3f, with %s by %.3f", ours.at, ways[i].name, theirs.at)
		}
	}
	if ours.at[0] <= 10*byDefault.at[0] {
		t.Errorf("%.3f of all bytes are read on the node, and %.3f by default", ours.at[0], byDefault.at[0])
	}
}
