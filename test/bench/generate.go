// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kube-scheduler-fork/build/localcluster"
)

// random is a generator with the same numbers on all machines and in all versions of this program.
type random int

func (r *random) below(limit int) int {
	*r = *r * 16807 % 2147483647
	return int(*r) % limit
}

// newNode describes a node that is ready.
func newNode(number, cores, gigabytes int) *corev1.Node {
	name := fmt.Sprintf("node-%05d", number)
	resources := amounts(fmt.Sprint(cores), fmt.Sprintf("%dGi", gigabytes))
	resources[corev1.ResourcePods] = resource.MustParse("110")
	return &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{Capacity: resources, Allocatable: resources,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

func amounts(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

func newPod(name, cpu, memory string) *corev1.Pod {
	pod := localcluster.NewPod(name, "")
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	pod.Spec.Containers[0].Resources.Requests = amounts(cpu, memory)
	return pod
}

// writeSnapshot writes objects as a List.
func writeSnapshot(file string, objects func(yield func(any) bool)) error {
	return write(file, func(out *bufio.Writer) error {
		before := `{"apiVersion":"v1","kind":"List","items":[`
		for object := range objects {
			content, err := json.Marshal(object)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "%s\n%s", before, content)
			before = ","
		}
		_, err := out.WriteString("\n]}\n")
		return err
	})
}

func write(file string, content func(*bufio.Writer) error) error {
	created, err := os.Create(file)
	if err != nil {
		return err
	}
	defer created.Close()
	out := bufio.NewWriter(created)
	if err := content(out); err != nil {
		return err
	}
	return out.Flush()
}

// writeLines writes a trace, which is sorted by the times at the beginnings of its lines.
func writeLines(file string, lines ...string) error {
	return os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

// equalNodes are nodes with 32 cores.
func equalNodes(count int) func(func(any) bool) {
	return func(yield func(any) bool) {
		for i := 0; i < count && yield(newNode(i, 32, 128)); i++ {
		}
	}
}

// mixedNodes are nodes in three zones, of three sizes, and pods on each of them.
func mixedNodes(count, pods int) func(func(any) bool) {
	return func(yield func(any) bool) {
		for i := range count {
			size := 8 << (i % 3)
			node := newNode(i, size, 4*size)
			node.Labels[corev1.LabelTopologyZone] = fmt.Sprint("zone-", i/3%3)
			node.Labels["disk"] = "hdd"
			if i%4 == 0 {
				node.Labels["disk"] = "ssd"
			}
			if !yield(node) {
				return
			}
			for j := range pods {
				app, controller := fmt.Sprint("app-", (i*pods+j)%500), true
				pod := newPod(fmt.Sprintf("old-%05d-%d", i, j), fmt.Sprintf("%dm", 100+j*50), fmt.Sprintf("%dMi", 256+j*128))
				pod.Labels = map[string]string{"app": app}
				pod.OwnerReferences = []metav1.OwnerReference{
					{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app, UID: types.UID(app), Controller: &controller}}
				pod.Spec.NodeName, pod.Status.Phase = node.Name, corev1.PodRunning
				pod.Spec.Containers[0].Image = fmt.Sprint("app:", j)
				if !yield(pod) {
					return
				}
			}
		}
	}
}

// basicTrace has equal pods that stay.
func basicTrace(count int) []string {
	lines := []string{"time,name,cpu,memory"}
	for i := range count {
		lines = append(lines, fmt.Sprintf("%.2f,pod-%d,100m,256Mi", float64(i)/100, i))
	}
	return lines
}

// mixedTrace has pods of six sizes: plain ones, with a node selector, with one or two spread constraints, with affinity to a
// zone, and with anti-affinity to a host.
func mixedTrace(count int) (lines []string, err error) {
	for i := range count {
		app := map[string]string{"app": fmt.Sprintf("%d-%d", i%6, i/240)}
		selector := &metav1.LabelSelector{MatchLabels: app}
		pod := newPod(fmt.Sprint("pod-", i), fmt.Sprintf("%dm", 50*(1+i%5)), fmt.Sprintf("%dMi", 128*(1+i%7)))
		pod.Labels = app
		spread := func(skew int32, key string, otherwise corev1.UnsatisfiableConstraintAction) {
			pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
				MaxSkew: skew, TopologyKey: key, WhenUnsatisfiable: otherwise, LabelSelector: selector})
		}
		switch i % 6 {
		case 1:
			pod.Spec.NodeSelector = map[string]string{"disk": "ssd"}
		case 2:
			spread(1, corev1.LabelTopologyZone, corev1.DoNotSchedule)
		case 3:
			spread(2, corev1.LabelTopologyZone, corev1.DoNotSchedule)
			spread(3, corev1.LabelHostname, corev1.ScheduleAnyway)
		case 4:
			pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{TopologyKey: corev1.LabelTopologyZone, LabelSelector: selector}}}}
		case 5:
			pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{TopologyKey: corev1.LabelHostname, LabelSelector: selector}}}}
		}
		line, err := json.Marshal(map[string]any{"time": fmt.Sprintf("%.2fs", float64(i)/100), "pod": pod})
		if err != nil {
			return nil, err
		}
		lines = append(lines, string(line))
	}
	return lines, nil
}

// dayTrace is a day: more pods arrive at noon, and each runs up to two hours.
func dayTrace(count int) []string {
	lines, draw := []string{"time,name,cpu,memory,duration"}, random(1)
	for i := range count {
		share := float64(i) / float64(count)
		n := draw.below(math.MaxInt32)
		lines = append(lines, fmt.Sprintf("%.3f,pod-%d,%dm,%dMi,%d", 86400*(share+0.05*math.Sin(2*math.Pi*share)), i, 250*(1+n%8), 512*(1+n%6), 60+n%7140))
	}
	return lines
}

// gangTrace is a day: 200 gangs of 2, 4, … 512 pods with 2 cores each, and as many single pods with 4, 8 or 12 cores as make
// load percent of the cores. Pods run for 30 to 90 minutes. Each fourth gang of at most 64 pods has a priority; evicted pods
// come again.
func gangTrace(cores, load, seed int) []string {
	draw, left := random(seed*7919+1), cores*86400*load/100
	var lines []string
	add := func(i int, kind string, size, cpu, lasts, priority int, gang string) {
		left -= size * cpu * lasts
		lines = append(lines, fmt.Sprintf("%09.3f,%s-%d,%d,%d,%dGi,%d,%d,%s,Job/%s-%d",
			float64(draw.below(864000))/10, kind, i, size, cpu, 2*cpu, lasts, priority, gang, kind, i))
	}
	i := 0
	for ; i < 200; i++ {
		size, priority := 2<<(i%9), 0
		if i%4 == 0 && size <= 64 {
			priority = 1000
		}
		add(i, "gang", size, 2, 1800+draw.below(3600), priority, fmt.Sprint("gang-", i))
	}
	for ; left > 0; i++ {
		cpu := 4 * (1 + draw.below(3))
		add(i, "single", 1, cpu, 1800+draw.below(3600), 0, "")
	}
	slices.Sort(lines)
	return append([]string{"time,name,count,cpu,memory,duration,priority,gang,owner"}, lines...)
}
