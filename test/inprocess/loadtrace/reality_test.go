// SPDX-License-Identifier: Apache-2.0

package loadtrace

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"time"
)

// step is the time step for summing loads.
const step = 100 * time.Millisecond

// placement is a pod on a node with its start and end.
type placement struct {
	job
	node     int
	from, to time.Duration
}

// reality is the real load of a cluster's nodes: the trace's own load, and that of the placed pods.
type reality struct {
	nodes []machine

	mutex sync.Mutex
	at    time.Duration // the trace's time, which determines the loads
	on    [][]placement // by node
	idle  []float64     // seconds of each core of a node
	since time.Time
	until []time.Time // time up to which idle is counted, by node
}

func newReality(nodes []machine, now time.Time) *reality {
	r := &reality{
		nodes: nodes, since: now,
		on: make([][]placement, len(nodes)), idle: make([]float64, len(nodes)), until: make([]time.Time, len(nodes)),
	}
	for i := range r.until {
		r.until[i] = now
	}
	return r
}

// move sets the trace's time.
func (r *reality) move(at time.Duration, now time.Time) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for node := range r.nodes {
		r.reckon(node, now)
	}
	r.at = at
}

// place starts a pod on a node at the trace's time.
func (r *reality) place(j job, node int, now time.Time) placement {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.reckon(node, now)
	p := placement{job: j, node: node, from: r.at, to: r.at + j.lives}
	r.on[node] = append(r.on[node], p)
	return p
}

// load returns the demand on a node at a time, as a share of its capacity: above 1 the pods do not get all of it.
func (r *reality) load(node int, at time.Duration) float64 {
	sum := r.nodes[node].base.at(at)
	for _, p := range r.on[node] {
		if p.from <= at && at < p.to {
			sum += p.use.at(at - p.from)
		}
	}
	return sum / float64(1000*r.nodes[node].cores)
}

// reckon updates a node's idle time since the last call. It must be called before each change of the load.
func (r *reality) reckon(node int, now time.Time) {
	if took := now.Sub(r.until[node]); took > 0 {
		r.idle[node] += took.Seconds() * (1 - min(1, r.load(node, r.at)))
		r.until[node] = now
	}
}

// seconds returns the idle and the busy time of each core of a node until now.
func (r *reality) seconds(node int, now time.Time) (idle, busy float64) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.reckon(node, now)
	return r.idle[node], r.until[node].Sub(r.since).Seconds() - r.idle[node]
}

// ServeHTTP imitates node_exporter on the node in the query.
func (r *reality) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	for i, node := range r.nodes {
		if request.FormValue("node") != address(node) {
			continue
		}
		idle, busy := r.seconds(i, time.Now())
		var text strings.Builder
		text.WriteString("# TYPE node_cpu_seconds_total counter\n")
		for cpu := range node.cores {
			fmt.Fprintf(&text, "node_cpu_seconds_total{cpu=\"%d\",mode=\"idle\"} %f\n", cpu, idle)
			fmt.Fprintf(&text, "node_cpu_seconds_total{cpu=\"%d\",mode=\"user\"} %f\n", cpu, busy)
		}
		_, _ = io.WriteString(w, text.String())
		return
	}
	http.NotFound(w, request)
}

// address returns the instance label of a node in Prometheus.
func address(node machine) string { return node.name + ":9100" }

// hot is the load above which a node is a hot spot.
const hot = 0.8

// heat has the load figures of the nodes during a trace.
type heat struct {
	// peak is the highest load of any node.
	peak float64
	// spread is the standard deviation of the nodes' loads, its mean over time.
	spread float64
	// spots is the time that nodes were hot, summed over nodes.
	spots time.Duration
	// slowed is the time that jobs had a pod on a hot node, summed over jobs: a job is as fast as its slowest part.
	slowed time.Duration
}

// heat returns the figures for a duration from the beginning of the trace.
func (r *reality) heat(length time.Duration) heat {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var h heat
	steps := 0
	for at := step / 2; at < length; at += step {
		var sum, squares float64
		slowed := make(map[string]bool)
		for node := range r.nodes {
			load := r.load(node, at)
			sum, squares = sum+load, squares+load*load
			h.peak = max(h.peak, load)
			if load <= hot {
				continue
			}
			h.spots += step
			for _, p := range r.on[node] {
				if p.owner != "" && p.from <= at && at < p.to {
					slowed[p.owner] = true
				}
			}
		}
		n := float64(len(r.nodes))
		h.spread += math.Sqrt(max(0, squares/n-(sum/n)*(sum/n)))
		h.slowed += time.Duration(len(slowed)) * step
		steps++
	}
	h.spread /= float64(steps)
	return h
}
