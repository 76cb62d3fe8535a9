// SPDX-License-Identifier: Apache-2.0

// Package traces receives the OTLP spans of a real scheduler on a local control plane. It needs programs that were
// built before, so it has its own make target.
package traces

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

const (
	config = "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n" +
		"leaderElection: {leaderElect: true, leaseDuration: 15s, renewDeadline: 10s, retryPeriod: 1s}\n" +
		"podInitialBackoffSeconds: 1\npodMaxBackoffSeconds: 1\n"
	// example is the published example, whose values the tests replace.
	example                 = "../../../manifests/examples/tracing/tracing-config.yaml"
	exampleEndpoint, onePct = "localhost:4317", "samplingRatePerMillion: 10000\n"
)

var shared cluster.Shared

func TestMain(m *testing.M) { cluster.Main(m, &shared) }

// receiver is a collector with the receiver of the OpenTelemetry Collector. It stores the services and the pods of root
// spans.
type receiver struct {
	ptraceotlp.UnimplementedGRPCServer
	mutex    sync.Mutex
	services []string
	pods     []string
}

func (r *receiver) Export(_ context.Context, request ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, of := range request.Traces().ResourceSpans().All() {
		r.services = append(r.services, attribute(of.Resource().Attributes(), "service.name"))
		for _, scope := range of.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				if span.ParentSpanID().IsEmpty() {
					r.pods = append(r.pods, attribute(span.Attributes(), "k8s.pod.name"))
				}
			}
		}
	}
	return ptraceotlp.NewExportResponse(), nil
}

func attribute(of pcommon.Map, key string) string {
	value, _ := of.Get(key)
	return value.AsString()
}

// listen starts to receive at an address.
func (r *receiver) listen(t *testing.T, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	ptraceotlp.RegisterGRPCServer(server, r)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
}

// attempts returns the number of attempts of a pod, or of all pods if the name is empty.
func (r *receiver) attempts(pod string) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	count := 0
	for _, name := range r.pods {
		if pod == "" || name == pod {
			count++
		}
	}
	return count
}

type stand struct {
	*cluster.Cluster
	receiver  *receiver
	address   string
	scheduler *localcluster.Scheduler
}

// newStand starts a scheduler that sends its spans to the stand's address, where no receiver is yet.
func newStand(t *testing.T) *stand {
	t.Helper()
	s := &stand{Cluster: shared.Get(t), receiver: &receiver{}, address: cluster.FreeAddress(t, "127.0.0.1")}
	s.AddNodes(t, 3)
	tracing := cluster.Read(t, example)
	for said, own := range map[string]string{exampleEndpoint: s.address, onePct: "samplingRatePerMillion: 1000000\n"} {
		if strings.Count(tracing, said) != 1 {
			t.Fatalf("%s does not have %q once; next: change this test with it", example, said)
		}
		tracing = strings.Replace(tracing, said, own, 1)
	}
	folder := t.TempDir()
	cluster.Write(t, filepath.Join(folder, "tracing.yaml"), tracing)
	cluster.Write(t, filepath.Join(folder, "config.yaml"), config)
	s.scheduler = s.StartScheduler(t, cluster.Program(t, "KUBE_SCHEDULER"), filepath.Join(folder, "config.yaml"),
		localcluster.SchedulerOptions{LeaderElection: true, Flags: []string{"--tracing-config-file=" + filepath.Join(folder, "tracing.yaml")}})
	return s
}

// TestSpans checks that spans come to a collector, also those of the last batch. What is in them is tested in package
// traces, and in TestTraces of the patch 0720.
func TestSpans(t *testing.T) {
	s := newStand(t)
	s.receiver.listen(t, s.address)
	s.AwaitBound(t, s.CreatePod(t, localcluster.NewPod("bound", "")))
	s.Await(t, "a span of an attempt", func() error {
		return cluster.Unless(s.receiver.attempts("bound") > 0, "there is none")
	})

	// The batch of this one is neither full nor due yet.
	last := s.CreatePod(t, localcluster.NewPod("last", ""))
	s.AwaitBound(t, last)
	s.Await(t, "the end of its attempt", func() error {
		content, err := s.Get(t.Context(), s.scheduler.URL()+"/scheduling/pods/default/last")
		return cluster.Unless(err == nil && strings.Contains(string(content), `"result":"Bound"`), "%v: %s", err, content)
	})
	if err := s.scheduler.Stop(); err != nil {
		t.Fatal(err)
	}
	if got := s.receiver.attempts("last"); got != 1 {
		t.Errorf("%d attempts of the last pod came before the scheduler ended, want 1", got)
	}

	if services := slices.Compact(s.receiver.services); !slices.Equal(services, []string{"kube-scheduler"}) {
		t.Errorf("spans are of %v", services)
	}
}

// TestCollectorThatComesLater checks that pods are bound without a collector.
func TestCollectorThatComesLater(t *testing.T) {
	s := newStand(t)
	for i := range 20 {
		s.AwaitBound(t, s.CreatePod(t, localcluster.NewPod(fmt.Sprintf("without-%d", i), "")))
	}
	s.Await(t, "a word about it in the log", func() error {
		return cluster.Unless(strings.Contains(cluster.Read(t, s.scheduler.LogFile()), "Spans are lost"), "there is none")
	})
	s.receiver.listen(t, s.address)
	count := 0
	s.Await(t, "spans, once it is there", func() error {
		pod := s.CreatePod(t, localcluster.NewPod(fmt.Sprintf("with-%d", count), ""))
		count++
		s.AwaitBound(t, pod)
		return cluster.Unless(s.receiver.attempts("") > 0, "nothing came")
	})
	s.Await(t, "a word about that in the log", func() error {
		return cluster.Unless(strings.Contains(cluster.Read(t, s.scheduler.LogFile()), "The collector accepts spans again"), "there is none")
	})
}
