// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"math"
	"regexp"
	"sort"
	"strconv"
	"time"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeload/source"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/result"
)

const (
	// longestHorizon is Overcommit's.
	longestHorizon = 24 * time.Hour
	// finest is how many points of a history a horizon has at most.
	finest = 240
)

// history is the integral of a value over time.
type history []point

// point has the integral up to a time, and the value from then on.
type point struct {
	at         time.Duration
	sum, value float64
}

// add sets the value from now on. Points are at least a step apart, and are forgotten after the longest time.
func (h history) add(now time.Duration, value float64, step, longest time.Duration) history {
	sum, n := 0.0, len(h)
	if n > 0 {
		sum = h[n-1].sum + h[n-1].value*(now-h[n-1].at).Seconds()
	}
	if n > 1 && now-h[n-2].at < step {
		h = h[:n-1]
	}
	for len(h) > 2 && h[1].at < now-longest {
		h = h[1:]
	}
	return append(h, point{now, sum, value})
}

// integral returns the integral up to a time since the first point.
func (h history) integral(at time.Duration) float64 {
	i := sort.Search(len(h), func(i int) bool { return h[i].at > at }) - 1
	if i == len(h)-1 {
		return h[i].sum + h[i].value*(at-h[i].at).Seconds()
	}
	part := float64(at-h[i].at) / float64(h[i+1].at-h[i].at)
	return h[i].sum + part*(h[i+1].sum-h[i].sum)
}

// means returns the means over a time before each step, from now back to the horizon or the first point.
func (h history) means(now, step, over, horizon time.Duration) (means []float64) {
	for to := now; len(h) > 0 && to-over >= h[0].at && to-step >= now-horizon; to -= step {
		means = append(means, (h.integral(to)-h.integral(to-over))/over.Seconds())
	}
	return means
}

// means returns the means of a pod's use of CPU, in cores, over a time before each step, from now back to the horizon or
// its start.
func (p *pod) means(now, step, over, horizon time.Duration) (means []float64) {
	for to := now - p.started; to >= over && to-step >= now-p.started-horizon; to -= step {
		sum, at, use := 0.0, to-over, p.workload.Use
		for i := p.useIndex(at); at < to; i++ {
			next := to
			if i+1 < len(use) && use[i+1].After < to {
				next = use[i+1].After
			}
			if i >= 0 {
				sum += float64(use[i].Resources.Cpu().MilliValue()) * (next - at).Seconds()
			}
			at = next
		}
		means = append(means, sum/1000/over.Seconds())
	}
	return means
}

// usable are sums over time and nodes for overcommitting pods: cores and shares multiplied by seconds, and seconds.
type usable struct {
	// asked is whether any pod asks for the resource.
	asked bool
	// horizon and step are the longest horizon, and the shortest step of histories, that was asked for; 0: none.
	horizon, step time.Duration
	last          time.Duration
	// taken is what overcommitting pods ask for of capacity. In the time exceeded of all time, that and the ordinary use
	// are more than the node has, by the share excess.
	taken, capacity, exceeded, all, excess float64
}

// measureOvercommit counts the time since the last measurement for a node, given in thousandths of cores the use of its
// ordinary pods and what its overcommitting pods ask for.
func (m *measurements) measureOvercommit(n *node, now time.Duration, ordinary, asked float64) {
	u := &m.usable
	if u.horizon > 0 {
		n.ordinary = n.ordinary.add(now, ordinary/1000, u.step, u.horizon)
	}
	if capacity, passed := n.capacity[0], (now - u.last).Seconds(); u.asked && capacity > 0 {
		u.taken += passed * asked / 1000
		u.capacity += passed * capacity / 1000
		u.all += passed
		if over := ordinary + asked - capacity; asked > 0 && over > 0 {
			u.exceeded += passed
			u.excess += passed * over / capacity
		}
	}
}

// figures adds the figures of overcommitting pods, if there are any and use is known.
func (u *usable) figures(add func(name, title, unit, better string, value float64)) {
	if u.all > 0 {
		add("overcommit_gained_percent", "CPU for overcommitting pods, of what the nodes have", "%", result.Higher, percent(u.taken, u.capacity))
		add("overcommit_violation_percent", "node-time in which ordinary use and overcommitting pods exceed the CPU", "%", result.Lower,
			percent(u.exceeded, u.all))
		add("overcommit_excess_percent", "by how much in that time", "%", result.Lower, percent(u.excess, u.exceeded))
	}
}

var (
	subqueryOf = regexp.MustCompile(`\[(\d+(?:ms|s|m|h)):(\d+(?:ms|s|m|h))\]`)
	quantileOf = regexp.MustCompile(`quantile_over_time\(\s*([0-9.]+)`)
)

// stepsOf returns the horizon and the step of a query's first subquery.
func stepsOf(query source.Query) (horizon, step time.Duration) {
	if found := subqueryOf.FindStringSubmatch(query.Value + query.Deviation); found != nil {
		horizon, _ = time.ParseDuration(found[1])
		step, _ = time.ParseDuration(found[2])
	}
	if step <= 0 || horizon < step {
		return time.Hour, 5 * time.Minute
	}
	return horizon, step
}

// answerOvercommit returns the answer to a query of Overcommit: the mean of the nodes' ordinary use and its deviation
// over the horizon, its current value, or a percentile of the use of each ordinary pod. All are in cores.
func (s *Simulation) answerOvercommit(number int, query source.Query, seconds float64) (rows []source.Row) {
	u, now := &s.measure.usable, s.now()
	row := func(kind source.Kind, label string, value float64) {
		rows = append(rows, source.Row{Query: number, Kind: kind, Label: label, Value: value})
	}
	horizon, step := stepsOf(query)
	over := source.OvercommitRate(horizon)
	if query.Name == source.OvercommitNow {
		horizon = windowIn(query, longestHorizon/source.OvercommitSteps)
		step, over = horizon, horizon
	}
	if !query.Pods {
		if horizon > u.horizon {
			u.horizon = horizon
		}
		if u.step == 0 || horizon/finest < u.step {
			u.step = horizon / finest
		}
	}
	for _, name := range namesOf(s.nodes) {
		n := s.nodes[name]
		if n.down {
			continue
		}
		if !query.Pods {
			// A quarter of the horizon is enough, as in the query.
			if means := n.ordinary.means(now, step, over, horizon); len(means) > 0 && 4*step*time.Duration(len(means)) >= horizon {
				sum, square := 0.0, 0.0
				for _, mean := range means {
					sum, square = sum+mean, square+mean*mean
				}
				count := float64(len(means))
				row(source.Value, name, sum/count)
				row(source.Timestamp, name, seconds)
				if query.Deviation != "" {
					row(source.Deviation, name, deviation(count, sum, square))
				}
			}
			continue
		}
		for _, p := range s.podsOn(n) {
			if means := p.means(now, step, over, horizon); p.running && p.overcommits == 0 && len(p.workload.Use) > 0 && len(means) > 0 {
				row(source.Value, p.key, interpolated(means, quantileIn(query)))
				row(source.Timestamp, p.key, seconds)
			}
		}
	}
	return rows
}

// quantileIn returns the quantile of an expression.
func quantileIn(query source.Query) float64 {
	if found := quantileOf.FindStringSubmatch(query.Value); found != nil {
		if q, err := strconv.ParseFloat(found[1], 64); err == nil {
			return math.Min(1, q)
		}
	}
	return 0.95
}

// interpolated returns a quantile of values as Prometheus does: it interpolates between ranks.
func interpolated(values []float64, q float64) float64 {
	sort.Float64s(values)
	rank := q * float64(len(values)-1)
	below := int(rank)
	if below+1 == len(values) {
		return values[below]
	}
	return values[below] + (rank-float64(below))*(values[below+1]-values[below])
}
