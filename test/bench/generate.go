// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
)

const zone, host = "topology.kubernetes.io/zone", "kubernetes.io/hostname"

// random is a generator with the same numbers on all machines and in all versions of this program.
type random int

func (r *random) below(limit int) int {
	*r = *r * 16807 % 2147483647
	return int(*r) % limit
}

// newNode describes in JSON a node that is ready, with four gibibytes of memory a core and further labels.
func newNode(number, cores int, labels string) string {
	name, resources := fmt.Sprintf("node-%05d", number), fmt.Sprintf(`{"cpu":"%d","memory":"%dGi","pods":"110"}`, cores, 4*cores)
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q,"labels":{"kubernetes.io/hostname":%[1]q%s}},`+
		`"status":{"capacity":%s,"allocatable":%[3]s,"conditions":[{"type":"Ready","status":"True"}]}}`, name, labels, resources)
}

// newPod describes a pod in JSON, with further fields of its metadata, its spec and its own.
func newPod(name, cpu, memory, metadata, spec, own string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":%q%s},"spec":{"containers":[{"name":"main",`+
		`"image":"app","resources":{"requests":{"cpu":%q,"memory":%q}}}]%s}%s}`, name, metadata, cpu, memory, spec, own)
}

// writeSnapshot writes objects as a List.
func writeSnapshot(file string, objects []string) error {
	return writeLines(file, `{"apiVersion":"v1","kind":"List","items":[`, strings.Join(objects, ",\n"), "]}")
}

// writeLines writes a trace, which is sorted by the times at the beginnings of its lines.
func writeLines(file string, lines ...string) error {
	return os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

// equalNodes are nodes with 32 cores.
func equalNodes(count int) (nodes []string) {
	for i := range count {
		nodes = append(nodes, newNode(i, 32, ""))
	}
	return nodes
}

// mixedNodes are nodes in three zones, of three sizes, and pods on each of them.
func mixedNodes(count, pods int) (objects []string) {
	for i := range count {
		disk := "hdd"
		if i%4 == 0 {
			disk = "ssd"
		}
		objects = append(objects, newNode(i, 8<<(i%3), fmt.Sprintf(`,%q:"zone-%d","disk":%q`, zone, i/3%3, disk)))
		for j := range pods {
			app := fmt.Sprint("app-", (i*pods+j)%500)
			objects = append(objects, newPod(fmt.Sprintf("old-%05d-%d", i, j), fmt.Sprintf("%dm", 100+j*50), fmt.Sprintf("%dMi", 256+j*128),
				fmt.Sprintf(`,"labels":{"app":%q},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":%[1]q,"uid":%[1]q,"controller":true}]`, app),
				fmt.Sprintf(`,"nodeName":"node-%05d"`, i), `,"status":{"phase":"Running"}`))
		}
	}
	return objects
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
func mixedTrace(count int) (lines []string) {
	for i := range count {
		app := fmt.Sprintf(`{"app":"%d-%d"}`, i%6, i/240)
		spread := func(skew int, key, otherwise string) string {
			return fmt.Sprintf(`{"maxSkew":%d,"topologyKey":%q,"whenUnsatisfiable":%q,"labelSelector":{"matchLabels":%s}}`, skew, key, otherwise, app)
		}
		affinity := func(kind, key string) string {
			return fmt.Sprintf(`,"affinity":{%q:{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":%q,"labelSelector":{"matchLabels":%s}}]}}`, kind, key, app)
		}
		spec := []string{
			"", `,"nodeSelector":{"disk":"ssd"}`,
			`,"topologySpreadConstraints":[` + spread(1, zone, "DoNotSchedule") + "]",
			`,"topologySpreadConstraints":[` + spread(2, zone, "DoNotSchedule") + "," + spread(3, host, "ScheduleAnyway") + "]",
			affinity("podAffinity", zone), affinity("podAntiAffinity", host),
		}[i%6]
		pod := newPod(fmt.Sprint("pod-", i), fmt.Sprintf("%dm", 50*(1+i%5)), fmt.Sprintf("%dMi", 128*(1+i%7)), `,"labels":`+app, spec, "")
		lines = append(lines, fmt.Sprintf(`{"time":"%.2fs","pod":%s}`, float64(i)/100, pod))
	}
	return lines
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
