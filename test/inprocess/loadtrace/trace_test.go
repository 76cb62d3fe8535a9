// SPDX-License-Identifier: Apache-2.0

package loadtrace

import (
	"fmt"
	"math"
	"math/rand"
	"time"
)

// trace is the input that is independent of scheduling: the base load of the nodes, and the pods to create.
type trace struct {
	length time.Duration
	nodes  []machine
	// pods are in the order of their creation.
	pods []job
}

// wave is a load that oscillates around a mean.
type wave struct {
	// mean is in millicores.
	mean float64
	// swing is the amplitude as a share of the mean.
	swing         float64
	period, phase time.Duration
}

// at returns the load in millicores at a time.
func (w wave) at(at time.Duration) float64 {
	if w.swing == 0 {
		return w.mean
	}
	return w.mean * (1 + w.swing*math.Sin(2*math.Pi*float64(at+w.phase)/float64(w.period)))
}

// machine is a node. Its base load is in no pod's requests.
type machine struct {
	name  string
	cores int
	base  wave
	// zone is empty if the trace has no zones.
	zone string
}

// job is a pod of a trace.
type job struct {
	name string
	// owner is its job, if it is one of several pods.
	owner string
	// component is its role in the job, as in Apache Flink's label; empty if the trace does not use it.
	component string
	// after is the name of a pod that must run before this one is created, or empty.
	after string
	// arrives is its creation time since the beginning of the trace, or since the start of the pod after.
	arrives time.Duration
	// lives is its running time.
	lives time.Duration
	// request is its request in millicores.
	request int
	// use is its real use.
	use wave
}

// between returns a random number.
func between(random *rand.Rand, from, to float64) float64 { return from + random.Float64()*(to-from) }

// duration returns a random duration in tenths of seconds.
func duration(random *rand.Rand, from, to time.Duration) time.Duration {
	return time.Duration(between(random, float64(from), float64(to))).Round(100 * time.Millisecond)
}

// machines returns n random nodes with 8 cores each. One of four is busy independently of the trace's pods.
func machines(random *rand.Rand, n int) []machine {
	var drawn []machine
	for i := range n {
		share := between(random, 0.05, 0.25)
		if random.Intn(4) == 0 {
			share = between(random, 0.45, 0.6)
		}
		drawn = append(drawn, machine{name: fmt.Sprintf("node-%d", i), cores: 8, base: wave{
			mean:   math.Round(share * 8000),
			swing:  0.2,
			period: duration(random, 20*time.Second, 60*time.Second),
			phase:  duration(random, 0, 60*time.Second),
		}})
	}
	return drawn
}

// mixed returns a trace of batch pods with wrong requests. They are created in bursts of one kind, like the pods of one
// workload, and their requests do not correlate with their use.
func mixed(seed int64) trace {
	random := rand.New(rand.NewSource(seed))
	tr := trace{length: 50 * time.Second, nodes: machines(random, 60)}
	for at := time.Duration(0); at < tr.length-5*time.Second; at += duration(random, 200*time.Millisecond, 1200*time.Millisecond) {
		var request int
		var least, most float64
		switch kind := random.Intn(20); {
		case kind < 8: // requests much and uses little
			request, least, most = 1000, 100, 300
		case kind < 15: // uses its request
			request, least, most = 500, 400, 600
		default: // requests little and uses much
			request, least, most = 250, 600, 1400
		}
		for range 1 + random.Intn(12) {
			tr.pods = append(tr.pods, job{
				name: fmt.Sprintf("batch-%d", len(tr.pods)), arrives: at, lives: duration(random, 20*time.Second, 40*time.Second),
				request: request, use: wave{
					mean:   math.Round(between(random, least, most)),
					swing:  0.1,
					period: duration(random, 5*time.Second, 20*time.Second),
					phase:  duration(random, 0, 20*time.Second),
				},
			})
		}
	}
	return tr
}

// streaming returns a trace of Apache Flink jobs: a job manager and, once it runs, the job's
// number of task managers. All task managers have the same request. Their use follows the
// volume of the job's data, which differs between jobs by a factor of more than ten, rises
// and falls for all task managers of a job together, and is distributed among them unevenly.
func streaming(seed int64) trace {
	random := rand.New(rand.NewSource(seed))
	tr := trace{length: 50 * time.Second, nodes: machines(random, 60)}
	for at, n := time.Duration(0), 0; at < tr.length-10*time.Second; at += duration(random, 600*time.Millisecond, 2*time.Second) {
		owner := fmt.Sprintf("job-%d", n)
		lives := duration(random, 20*time.Second, 50*time.Second)
		manager := job{name: owner + "-manager", owner: owner, arrives: at, lives: lives, request: 1000, use: wave{mean: 100}}
		tr.pods = append(tr.pods, manager)
		volume := []float64{150, 300, 600, 1200, 2400}[random.Intn(5)]
		tide := wave{swing: between(random, 0.2, 0.6), period: duration(random, 15*time.Second, 40*time.Second),
			phase: duration(random, 0, 40*time.Second)}
		for task := range 3 + random.Intn(10) {
			use := tide
			use.mean = math.Round(volume * between(random, 0.7, 1.3))
			tr.pods = append(tr.pods, job{
				name: fmt.Sprintf("%s-task-%d", owner, task), owner: owner, after: manager.name, arrives: 500 * time.Millisecond,
				lives: lives - 500*time.Millisecond, request: 1000, use: use,
			})
		}
		n++
	}
	return tr
}

const (
	jobManager  = "jobmanager"
	taskManager = "taskmanager"
)

// graphs returns a trace of streaming jobs in three zones, whose task managers send data to each other. Every other job
// creates all of its pods at once; in the others the task managers follow the job manager. One of four task managers
// ends early, and is replaced a second later.
func graphs(seed int64) trace {
	random := rand.New(rand.NewSource(seed))
	tr := trace{length: 40 * time.Second, nodes: machines(random, 60)}
	for i := range tr.nodes {
		tr.nodes[i].zone = fmt.Sprintf("zone-%c", 'a'+i%3)
	}
	for at, n := time.Duration(0), 0; at < tr.length-8*time.Second; at += duration(random, 400*time.Millisecond, 1600*time.Millisecond) {
		owner := fmt.Sprintf("job-%d", n)
		lives := duration(random, 15*time.Second, 30*time.Second)
		manager := job{name: owner + "-manager", owner: owner, component: jobManager, arrives: at, lives: lives, request: 500, use: wave{mean: 100}}
		tr.pods = append(tr.pods, manager)
		volume := []float64{150, 300, 600, 1200}[random.Intn(4)]
		tide := wave{swing: between(random, 0.2, 0.6), period: duration(random, 15*time.Second, 40*time.Second),
			phase: duration(random, 0, 40*time.Second)}
		for number := range 4 + random.Intn(9) {
			use := tide
			use.mean = math.Round(volume * between(random, 0.7, 1.3))
			task := job{
				name: fmt.Sprintf("%s-task-%d", owner, number), owner: owner, component: taskManager, arrives: at, lives: lives,
				request: 500, use: use,
			}
			if n%2 == 1 {
				task.after, task.arrives, task.lives = manager.name, 500*time.Millisecond, lives-500*time.Millisecond
			}
			if random.Intn(4) > 0 {
				tr.pods = append(tr.pods, task)
				continue
			}
			again := task
			task.lives = duration(random, lives/4, lives/2)
			again.name, again.after, again.arrives = task.name+"-again", task.name, task.lives+time.Second
			again.lives -= again.arrives
			tr.pods = append(tr.pods, task, again)
		}
		n++
	}
	return tr
}

// The traces that the comparisons play.
var (
	mixedTrace     = mixed(5)
	streamingTrace = streaming(5)
	graphsTrace    = graphs(5)
)
