// SPDX-License-Identifier: Apache-2.0

package overcommit

import (
	"fmt"
	"strings"
	"time"
)

const (
	// tick is the time between two samples of a series, in seconds.
	tick = 10
	// past and future are the times, in seconds, for which a history has samples: of more than the longest horizon, and
	// for as long as the tests run.
	past, future = 4500, 1200
	// never is the time of the first sample of a root cgroup that a Prometheus drops.
	never = future + 1
)

// cgroup has the series of a cgroup in cAdvisor. Times are in seconds after the history's origin.
type cgroup struct {
	labels   string
	use      func(at int) float64 // in cores
	from, to int
}

// podCgroups returns the cgroups of a pod: its own, and one of each run of its container, with the times of their ends.
func podCgroups(name string, use func(int) float64, from int, ends ...int) []cgroup {
	labels := fmt.Sprintf(`namespace="team",pod=%q,id="/kubepods/%s`, name, name)
	cgroups := []cgroup{{labels + `"`, use, from, ends[len(ends)-1]}}
	for _, to := range ends {
		cgroups = append(cgroups, cgroup{fmt.Sprintf(`%s/%d",container="main"`, labels, to), use, from, to})
		from = to
	}
	return cgroups
}

func steady(cores float64) func(int) float64 { return func(int) float64 { return cores } }

// waves alternates between two uses every five minutes.
func waves(low, high float64) func(int) float64 {
	return func(at int) float64 {
		if (at+past)/300%2 == 0 {
			return low
		}
		return high
	}
}

// machine has the cgroups of its pods, the labels of its scrape targets, and the time of the first sample of its root
// cgroup, which has the use of all pods and that of the system.
type machine struct {
	pods    [][]cgroup
	targets []string
	from    int
}

func (m *machine) write(out *strings.Builder, origin int64, system float64) {
	root := cgroup{`id="/"`, func(at int) float64 {
		sum := system
		for _, pod := range m.pods {
			if at >= pod[0].from && at < pod[0].to {
				sum += pod[0].use(at)
			}
		}
		return sum
	}, m.from, future}
	for _, target := range m.targets {
		for _, cgroups := range append(m.pods, []cgroup{root}) {
			for _, c := range cgroups {
				sum := 0.0
				write(out, fmt.Sprintf(`container_cpu_usage_seconds_total{%s,%s}`, c.labels, target), origin, c.from, c.to, func(at int) float64 {
					defer func() { sum += c.use(at) * tick }()
					return sum
				})
			}
		}
	}
}

// write writes the samples of a series.
func write(out *strings.Builder, series string, origin int64, from, to int, value func(at int) float64) {
	for at := from; at <= to; at += tick {
		fmt.Fprintf(out, "%s %v %d\n", series, value(at), origin+int64(at))
	}
}

// origin returns the present, rounded down so that the steps of every horizon here meet samples.
func origin() int64 { return time.Now().Truncate(5 * time.Minute).Unix() }
