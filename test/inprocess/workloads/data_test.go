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
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/datalocality"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"kube-scheduler-fork/test/inprocess/table"
)

const (
	datasetsKey, rackLabel = "data-locality.scheduler/datasets", "example.com/rack"
	// byHandLabel is a label that people set on nodes for affinities.
	byHandLabel = "data.by-hand/"
)

// held is a dataset of the trace with the numbers of the nodes that hold it.
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
		name := fmt.Sprintf("node-%02d", i)
		nodes = append(nodes, st.MakeNode().Name(name).Label(corev1.LabelHostname, name).Label(rackLabel, fmt.Sprintf("rack-%d", i/ofRack)).
			Label(corev1.LabelTopologyZone, fmt.Sprintf("zone-%d", i/ofRack/ofZone)).
			Capacity(map[corev1.ResourceName]string{corev1.ResourceCPU: "16", corev1.ResourceMemory: "64Gi", corev1.ResourcePods: "110"}).Obj())
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

// batchJobs returns random jobs of an hour, and the datasets that each pod reads. Jobs have 1 to 16 pods, each of which
// reads one to three datasets, some of them more often than others, for 5 to 35 minutes.
func batchJobs(random *rand.Rand, datasets []held) ([]visit, map[string][]held) {
	popular := rand.NewZipf(random, 1.3, 4, uint64(len(datasets)-1))
	var pods []visit
	reads := map[string][]held{}
	for at := time.Duration(0); at < time.Hour; at += 12 * time.Second {
		milliCPU := 500 * (1 + random.Intn(4))
		for range 1 + random.Intn(16) {
			name := fmt.Sprintf("batch-%d", len(pods))
			var texts []string
			var of []held
			for range 1 + random.Intn(3) {
				d := datasets[popular.Uint64()]
				of, texts = append(of, d), append(texts, fmt.Sprintf("%s=%d", d.name, d.bytes))
			}
			pod := st.MakePod().Name(name).Req(map[corev1.ResourceName]string{
				corev1.ResourceCPU: fmt.Sprintf("%dm", milliCPU), corev1.ResourceMemory: fmt.Sprintf("%dMi", 2*milliCPU),
			}).Obj()
			pod.Annotations = map[string]string{datasetsKey: strings.Join(texts, ",")}
			pods = append(pods, visit{pod: pod, comes: at, runs: time.Duration(5+random.Intn(30)) * time.Minute})
			reads["default/"+name] = of
		}
	}
	return pods, reads
}

// byHand adds the usual manual affinity: pods prefer the nodes with the label of a dataset, weighted by size.
func byHand(pods []visit, reads map[string][]held) []visit {
	var changed []visit
	for _, v := range pods {
		v.pod = v.pod.DeepCopy()
		var total int64
		for _, d := range reads["default/"+v.pod.Name] {
			total += d.bytes
		}
		var terms []corev1.PreferredSchedulingTerm
		for _, d := range reads["default/"+v.pod.Name] {
			terms = append(terms, corev1.PreferredSchedulingTerm{
				Weight: int32(1 + 99*d.bytes/total),
				Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: byHandLabel + d.name, Operator: corev1.NodeSelectorOpExists},
				}},
			})
		}
		v.pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: terms}}
		changed = append(changed, v)
	}
	return changed
}

// reading has the figures of a trace.
type reading struct {
	// at are the shares of bytes that were read on the node, in its rack, in its zone, and farther away.
	at [4]float64
	// hottest is the maximum number of pods on a node at a time.
	hottest       int
	podsPerSecond float64
}

// readingOf plays a trace, and returns its figures from the nodes of the placed pods.
func readingOf(t *testing.T, way way, tr trace, reads map[string][]held) reading {
	t.Helper()
	var r reading
	index := map[string]int{}
	for i, node := range tr.nodes {
		index[node.Name] = i
	}
	seen, total := map[string]bool{}, 0.0
	c := play(t, way, tr, func(c *cluster) {
		for name, pod := range c.placed {
			if seen[name] {
				continue
			}
			seen[name] = true
			on := tr.nodes[index[pod.Spec.NodeName]]
			for _, d := range reads[name] {
				r.at[levelOf(on, tr.nodes, d)] += float64(d.bytes)
				total += float64(d.bytes)
			}
		}
		for _, pods := range c.podsOn() {
			r.hottest = max(r.hottest, len(pods))
		}
	})
	if len(seen) != len(tr.pods) {
		t.Errorf("%s: %d pods were placed, want %d", way.name, len(seen), len(tr.pods))
	}
	for level := range r.at {
		r.at[level] /= total
	}
	r.podsPerSecond = c.podsPerSecond()
	return r
}

// levelOf returns the level of the nearest replica of a dataset.
func levelOf(on *corev1.Node, nodes []*corev1.Node, d held) int {
	nearest := 3
	for _, n := range d.nodes {
		for level, key := range []string{corev1.LabelHostname, rackLabel, corev1.LabelTopologyZone} {
			if nodes[n].Labels[key] == on.Labels[key] {
				nearest = min(nearest, level)
			}
		}
	}
	return nearest
}

// TestBatchJobsReadNearToTheirData checks that with DataLocality more bytes are read in the rack or nearer, and fewer
// from another zone, than with the default profile and with manual affinities.
func TestBatchJobsReadNearToTheirData(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	nodes, datasets := racked(random)
	pods, reads := batchJobs(random, datasets)
	tr := trace{length: 90 * time.Minute, step: 12 * time.Second, nodes: nodes, pods: pods}
	affine := tr
	affine.pods = byHand(pods, reads)
	registry := frameworkruntime.Registry{datalocality.Name: datalocality.New}
	byDefault, byAffinity := way{name: "default"}, way{name: "preferred node affinity"}
	ours := way{name: "DataLocality", config: manifest(t, "data-locality.yaml"), plugins: registry}
	ways := []way{byDefault, byAffinity, ours}
	got := map[string]reading{}
	for _, way := range ways {
		with := tr
		if way.name == byAffinity.name {
			with = affine
		}
		got[way.name] = readingOf(t, way, with, reads)
	}
	table.Log(t, fmt.Sprintf("%d pods on %d nodes in %v, which read %d datasets with three replicas", len(pods), len(nodes), tr.length, len(datasets)),
		[]string{"", "bytes read on the node", "in the rack", "in the zone", "further away", "most pods on a node", "pods per second"},
		func(row func(...any)) {
			for _, way := range ways {
				r := got[way.name]
				cells := []any{way.name}
				for _, share := range r.at {
					cells = append(cells, fmt.Sprintf("%.1f %%", 100*share))
				}
				row(append(cells, r.hottest, fmt.Sprintf("%.0f", r.podsPerSecond))...)
			}
		})
	// Affinity covers only the node: a pod without room there goes anywhere.
	mine := got[ours.name]
	for other, far := range map[string]float64{byDefault.name: 0.1, byAffinity.name: 0.6} {
		theirs := got[other]
		if mine.at[0]+mine.at[1] <= theirs.at[0]+theirs.at[1] || mine.at[3] >= far*theirs.at[3] {
			t.Errorf("with DataLocality bytes are read near and far by the shares %.3f, with %s by %.3f", mine.at, other, theirs.at)
		}
	}
	if theirs := got[byDefault.name]; mine.at[0] <= 10*theirs.at[0] {
		t.Errorf("%.3f of all bytes are read on the node, and %.3f by default", mine.at[0], theirs.at[0])
	}
}
