// SPDX-License-Identifier: Apache-2.0

// Package attacks sends to the secure port of a scheduler, stock's and ours, what anyone can send who can connect to it,
// without credentials. It measures what that costs, and checks that pods are bound meanwhile. All traffic is on loopback,
// and limited in count and time.
package attacks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

const (
	// maxHandlers is the number of goroutines that a connection can make a server start: the handlers of the 250 streams
	// that it may open, and those that read, write and serve.
	maxHandlers = 250 + 4
	// spare is the number of goroutines by which a scheduler differs from one moment to the next.
	spare = 50
	// descriptor is what Go keeps of an ended goroutine in bytes: its descriptor, and its part of maps that do not shrink.
	descriptor = 1000
	// patience limits an attack: on a busy machine, 10,000 handshakes take minutes.
	patience = 10 * time.Minute
)

var shared cluster.Shared

func TestMain(m *testing.M) { cluster.Main(m, &shared) }

// stand is a scheduler under attack.
type stand struct {
	*cluster.Cluster
	scheduler *localcluster.Scheduler
	target    target
	// before is what the scheduler held before the first attack.
	before cluster.Usage
	// pods is the number of bound pods. During an attack, the slowest one was bound after slowest, and peak is the largest
	// number of goroutines that was seen; highest is that of all attacks.
	pods          atomic.Int64
	slowest       time.Duration
	peak, highest float64
}

// attack is an attack, in rounds of connections. run makes a round, and returns how many connections the server ended.
type attack struct {
	name        string
	run         func(context.Context) (int, error)
	connections int
	// ends reports whether ours ends all connections; each of them makes it start at most goroutines.
	ends       bool
	goroutines int
}

// attacks returns the attacks on a scheduler.
func (t target) attacks() []attack {
	return []attack{
		{"none", t.none, 0, false, 0},
		{"rapid reset of /healthz", t.rapidReset("/healthz"), resetConnections, false, maxHandlers},
		// Each handler asks the API server, by another goroutine, whether the client may read it.
		{"rapid reset of /metrics", t.rapidReset("/metrics"), resetConnections, false, 2 * maxHandlers},
		{"CONTINUATION flood", t.continuationFlood, floodConnections, true, 8},
		{"client certificates of 1 MB", t.longChains, chains, true, 4},
		{"slow headers", t.slowHeaders, slowConnections, true, 2},
		// Last, because Go returns their memory to the kernel late.
		{"idle connections", t.idle, idleConnections, false, 4},
	}
}

func TestAttacks(t *testing.T) {
	rows := map[string]string{}
	for _, side := range []struct{ name, program string }{{"stock", "STOCK_SCHEDULER"}, {"ours", "KUBE_SCHEDULER"}} {
		t.Run(side.name, func(t *testing.T) {
			s := newStand(t, side.program)
			for _, a := range s.target.attacks() {
				t.Run(a.name, func(t *testing.T) { rows[a.name] += " " + s.measure(t, a, side.name == "ours") + " |" })
			}
		})
	}
	var table strings.Builder
	for _, a := range (target{}).attacks() {
		fmt.Fprintf(&table, "| %s |%s\n", a.name, rows[a.name])
	}
	t.Logf("peak of the memory, of goroutines, CPU time, bound pods, connections that the server ended:\n\n| attack | stock | ours |\n|---|---|---|\n%s", &table)
}

func newStand(t *testing.T, program string) *stand {
	t.Helper()
	s := &stand{Cluster: shared.Get(t)}
	s.AddNodes(t, 20)
	config := filepath.Join(t.TempDir(), "config.yaml")
	cluster.Write(t, config, "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n")
	s.scheduler = s.StartScheduler(t, cluster.Program(t, program), config)
	admin, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	s.target.address = strings.TrimPrefix(s.scheduler.URL(), "https://")
	if s.target.tls, err = rest.TLSConfigFor(rest.AnonymousClientConfig(admin)); err != nil {
		t.Fatal(err)
	}
	s.target.bound = &s.pods
	s.bind(t)
	s.before = s.usage(t)
	return s
}

// usage returns what the scheduler holds after a garbage collection.
func (s *stand) usage(t *testing.T) cluster.Usage {
	t.Helper()
	if _, err := s.Get(t.Context(), s.scheduler.URL()+"/debug/pprof/heap?gc=1"); err != nil {
		t.Fatal(err)
	}
	return s.Usage(t, s.scheduler)
}

// bind creates a pod and waits until it is bound.
func (s *stand) bind(t *testing.T) {
	t.Helper()
	pod, began := s.CreatePod(t, localcluster.NewPod(fmt.Sprint("pod-", s.pods.Load()), "")), time.Now()
	s.AwaitBound(t, pod)
	s.pods.Add(1)
	s.slowest = max(s.slowest, time.Since(began))
	s.peak = max(s.peak, s.Usage(t, s.scheduler).Goroutines)
}

// proc reads a file of the scheduler's process.
func (s *stand) proc(t *testing.T, file string) string {
	t.Helper()
	return cluster.Read(t, fmt.Sprintf("/proc/%d/%s", s.Processes()["kube-scheduler"], file))
}

// peakMemory returns the largest resident memory since reset, in MB.
func (s *stand) peakMemory(t *testing.T) (megabytes int) {
	t.Helper()
	_, rest, _ := strings.Cut(s.proc(t, "status"), "VmHWM:")
	if _, err := fmt.Sscan(rest, &megabytes); err != nil {
		t.Fatal(err)
	}
	return megabytes >> 10
}

// measure attacks the scheduler, and returns a cell of the table.
func (s *stand) measure(t *testing.T, a attack, ours bool) string {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	// The kernel then measures the peak of the resident memory anew.
	reset := fmt.Sprintf("/proc/%d/clear_refs", s.Processes()["kube-scheduler"])
	if err := os.WriteFile(reset, []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
	before, began := s.Usage(t, s.scheduler), time.Now()
	s.peak, s.slowest = 0, 0
	pods, done := s.pods.Load(), make(chan struct{})
	var connections, ended int
	var err error
	go func() {
		defer close(done)
		// An attack that the server ends is over sooner than a pod is bound.
		for err == nil && s.pods.Load() < pods+enoughPods {
			var n int
			n, err = a.run(ctx)
			ended, connections = ended+n, connections+a.connections
		}
	}()
	for running := true; running; {
		s.bind(t)
		select {
		case <-done:
			running = false
		default:
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	after := s.Usage(t, s.scheduler)
	cell := fmt.Sprintf("%d MB, %.0f, %.1f s, %d in %.0f s, %d of %d", s.peakMemory(t), s.peak, after.CPU-before.CPU,
		s.pods.Load()-pods, time.Since(began).Seconds(), ended, connections)
	t.Logf("%s; the slowest pod was bound after %.1f s", cell, s.slowest.Seconds())
	if a.ends && ours && ended < connections {
		t.Errorf("the server ended only %d of %d connections", ended, connections)
	}
	if limit := s.before.Goroutines + float64(a.connections*a.goroutines+spare); ours && s.peak > limit {
		t.Errorf("%.0f goroutines, want at most %.0f", s.peak, limit)
	}
	cancel()
	if !ours {
		return cell
	}
	// Go keeps the descriptors of ended goroutines.
	s.highest = max(s.highest, s.peak)
	kept := descriptor * s.highest
	cluster.Await(t, "everything to be released", func() error {
		now := s.usage(t)
		return cluster.Unless(now.Heap <= 1.05*s.before.Heap+5e6+kept && now.Goroutines <= s.before.Goroutines+20 && now.Files <= s.before.Files+10,
			"the scheduler holds %+v; before the first attack %+v", now, s.before)
	})
	return cell
}
