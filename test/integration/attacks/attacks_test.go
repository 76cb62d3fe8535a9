// SPDX-License-Identifier: Apache-2.0

// Package attacks sends to the secure port of a scheduler, stock's and ours, what anyone can send who can connect to it,
// without credentials. It measures what that costs, and checks that pods are bound meanwhile. All traffic is on loopback,
// and limited in count and time.
package attacks

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
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
	// enoughPods are bound during each attack: the second one was created after the first was bound.
	enoughPods = 2
	// dialers connect at the same time.
	dialers = 32
)

var shared cluster.Shared

func TestMain(m *testing.M) { cluster.Main(m, &shared) }

// attack is what each of some connections does, when all of them are open. run returns an error if the server ends the
// connection.
type attack struct {
	name, protocol string
	connections    int
	run            func(context.Context, *tls.Conn) error
	// ends reports whether ours ends all connections; each of them makes it start at most goroutines.
	ends        bool
	goroutines  int
	certificate *tls.Certificate
}

// attacks returns the attacks on a scheduler.
func (s *stand) attacks(t *testing.T) []attack {
	chain, err := longChain()
	if err != nil {
		t.Fatal(err)
	}
	return []attack{
		{name: "none"},
		{"rapid reset of /healthz", "h2", 4, rapidReset("/healthz"), false, maxHandlers, nil},
		// Each handler asks the API server, by another goroutine, whether the client may read it.
		{"rapid reset of /metrics", "h2", 4, rapidReset("/metrics"), false, 2 * maxHandlers, nil},
		{"CONTINUATION flood", "h2", 4, flood(endlessHeaders), true, 8, nil},
		{"client certificates of 1 MB", "", 64, useCertificate, true, 4, chain},
		{"slow headers", "http/1.1", 500, slowHeaders, true, 2, nil},
		// Last, because Go returns their memory to the kernel late.
		{"idle connections", "h2", 10_000, s.idle, false, 4, nil},
	}
}

func TestAttacks(t *testing.T) {
	for _, side := range []struct{ name, program string }{{"stock", "STOCK_SCHEDULER"}, {"ours", "KUBE_SCHEDULER"}} {
		t.Run(side.name, func(t *testing.T) {
			s := newStand(t, side.program)
			for _, a := range s.attacks(t) {
				t.Run(a.name, func(t *testing.T) { s.measure(t, a, side.name == "ours") })
			}
		})
	}
}

// stand is a scheduler under attack.
type stand struct {
	*cluster.Cluster
	scheduler *localcluster.Scheduler
	address   string
	tls       *tls.Config
	// before is what the scheduler held before the first attack.
	before cluster.Usage
	// pods is the number of bound pods. During an attack, the slowest one was bound after slowest, and peak is the largest
	// number of goroutines that was seen; highest is that of all attacks.
	pods          atomic.Int64
	slowest       time.Duration
	peak, highest float64
}

func newStand(t *testing.T, program string) *stand {
	t.Helper()
	s := &stand{Cluster: shared.Get(t)}
	s.AddNodes(t, 20)
	s.scheduler = s.StartScheduler(t, cluster.Program(t, program), cluster.WriteConfig(t, ""))
	admin, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	s.address = strings.TrimPrefix(s.scheduler.URL(), "https://")
	if s.tls, err = rest.TLSConfigFor(rest.AnonymousClientConfig(admin)); err != nil {
		t.Fatal(err)
	}
	s.bind(t)
	s.before, _ = s.UsageAfterCollection(t, s.scheduler, patience)
	return s
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

// idle leaves a connection alone until pods have been bound.
func (s *stand) idle(ctx context.Context, socket *tls.Conn) error {
	if socket != nil {
		if _, err := open(socket); err != nil {
			return err
		}
	}
	for before := s.pods.Load(); s.pods.Load() < before+enoughPods && ctx.Err() == nil; {
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

// attack opens the connections of an attack, and returns how many of them the server ended.
func (s *stand) attack(ctx context.Context, a attack) (int, error) {
	if a.connections == 0 {
		return 0, s.idle(ctx, nil)
	}
	config := s.tls.Clone()
	if config.NextProtos = nil; a.protocol != "" {
		config.NextProtos = []string{a.protocol}
	}
	if a.certificate != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return a.certificate, nil }
	}
	var (
		all     errgroup.Group
		ended   atomic.Int64
		opening sync.WaitGroup
		free    = make(chan bool, dialers)
	)
	opening.Add(a.connections)
	for range a.connections {
		all.Go(func() error {
			free <- true
			socket, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", s.address)
			<-free
			opening.Done()
			if err == nil {
				defer socket.Close()
				defer context.AfterFunc(ctx, func() { socket.Close() })()
				opening.Wait()
				err = a.run(ctx, socket.(*tls.Conn))
			} else if a.certificate == nil {
				return fmt.Errorf("a connection for %s: %w", a.name, err)
			}
			if err != nil {
				ended.Add(1)
			}
			return ctx.Err()
		})
	}
	err := all.Wait()
	return int(ended.Load()), err
}

// peakMemory returns the largest resident memory since reset, in MB.
func (s *stand) peakMemory(t *testing.T) (megabytes int) {
	t.Helper()
	_, rest, _ := strings.Cut(cluster.Read(t, s.proc("status")), "VmHWM:")
	if _, err := fmt.Sscan(rest, &megabytes); err != nil {
		t.Fatal(err)
	}
	return megabytes >> 10
}

// proc returns the path of a file about the scheduler's process.
func (s *stand) proc(file string) string {
	return fmt.Sprintf("/proc/%d/%s", s.Processes()["kube-scheduler"], file)
}

// measure attacks the scheduler until pods have been bound. It logs what that costs, a cell of the table in docs/security.md.
func (s *stand) measure(t *testing.T, a attack, ours bool) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	// The kernel then measures the peak of the resident memory anew.
	if err := os.WriteFile(s.proc("clear_refs"), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
	before, began := s.Usage(t, s.scheduler), time.Now()
	s.peak, s.slowest = 0, 0
	pods, done := s.pods.Load(), make(chan error, 1)
	var connections, ended int
	go func() {
		var err error
		// An attack that the server ends is over sooner than a pod is bound.
		for err == nil && s.pods.Load() < pods+enoughPods {
			var n int
			n, err = s.attack(ctx, a)
			ended, connections = ended+n, connections+a.connections
		}
		done <- err
	}()
	for running := true; running; {
		s.bind(t)
		select {
		case err := <-done:
			if running = false; err != nil {
				t.Fatal(err)
			}
		default:
		}
	}
	after := s.Usage(t, s.scheduler)
	t.Logf("peak %d MB, %.0f goroutines, %.1f s of CPU time; %d pods bound in %.0f s, the slowest after %.1f s; %d of %d connections ended",
		s.peakMemory(t), s.peak, after.CPU-before.CPU, s.pods.Load()-pods, time.Since(began).Seconds(), s.slowest.Seconds(), ended, connections)
	if !ours {
		return
	}
	if a.ends && ended < connections {
		t.Errorf("the server ended only %d of %d connections", ended, connections)
	}
	if limit := s.before.Goroutines + float64(a.connections*a.goroutines+spare); s.peak > limit {
		t.Errorf("%.0f goroutines, want at most %.0f", s.peak, limit)
	}
	// Go keeps the descriptors of ended goroutines.
	s.highest = max(s.highest, s.peak)
	kept := descriptor * s.highest
	cluster.Await(t, "everything to be released", func() error {
		now, _ := s.UsageAfterCollection(t, s.scheduler, patience)
		return cluster.Unless(now.Within(s.before, 1.05, 5e6+kept, 20, 10), "the scheduler holds %+v; before the first attack %+v", now, s.before)
	})
}
