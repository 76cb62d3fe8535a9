// SPDX-License-Identifier: Apache-2.0

package loadtrace

import (
	"fmt"
	"math"
	"math/rand"
	"time"
)

// trace is what happens in a cluster, however it is scheduled: the load that its nodes have anyway, and the pods that
// come.
type trace struct {
	length time.Duration
	nodes  []machine
	// pods are in the order in which they come.
	pods []job
}

// wave is a load that swings around a mean.
type wave struct {
	// mean is in millicores.
	mean float64
	// swing is the most that it departs from the mean, as a share of it.
	swing         float64
	period, phase time.Duration
}

// at is the load in millicores at a time.
func (w wave) at(at time.Duration) float64 {
	if w.swing == 0 {
		return w.mean
	}
	return w.mean * (1 + w.swing*math.Sin(2*math.Pi*float64(at+w.phase)/float64(w.period)))
}

// machine is a node. What it does besides the pods of the trace is in no pod's requests.
type machine struct {
	name  string
	cores int
	base  wave
	// zone is empty where a trace has no zones.
	zone string
}

// job is a pod of a trace.
type job struct {
	name string
	// owner is the job that it belongs to, if it is one of several pods.
	owner string
	// component is what it is there, as Apache Flink labels it; empty where a trace does not look at that.
	component string
	// after names a pod that must run before this one is created; empty if it needs none.
	after string
	// arrives is when it is created: since the trace's beginning, or since the pod before it runs.
	arrives time.Duration
	// lives is how long it runs.
	lives time.Duration
	// request is what it asks for, in millicores.
	request int
	// use is what it really takes.
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

// mixed is a trace of batch pods whose requests are wrong. They come in bursts of one kind, like the pods of one
// workload, and their requests do not show which will use most.
func mixed(seed int64) trace {
	random := rand.New(rand.NewSource(seed))
	tr := trace{length: 50 * time.Second, nodes: machines(random, 60)}
	for at := time.Duration(0); at < tr.length-5*time.Second; at += duration(random, 200*time.Millisecond, 1200*time.Millisecond) {
		var request int
		var least, most float64
		switch kind := random.Intn(20); {
		case kind < 8: // asks for much and hardly does anything
			request, least, most = 1000, 100, 300
		case kind < 15: // honest
			request, least, most = 500, 400, 600
		default: // asks for little and takes what it can get
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

// streaming is a trace of jobs as Apache Flink runs them: a job manager, and when it runs, as many task managers as the
// job asks for. All task managers request the same. What they use follows the volume of the job's data, which differs
// from job to job by more than ten times, rises and falls for all of a job's task managers at once, and is spread over
// them unevenly.
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

// graphs is a trace of streaming jobs in three zones, whose task managers send data to each other. Of every two jobs
// one comes with all of its pods at once, and the task managers of the other one follow its job manager. Of every four
// task managers one ends early, and another comes for it a second later.
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
