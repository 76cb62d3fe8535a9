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

// startScheduler starts a scheduler that sends its spans to an address.
func startScheduler(t *testing.T, c *cluster.Cluster, address string) *localcluster.Scheduler {
	t.Helper()
	tracing := cluster.Read(t, example)
	for said, own := range map[string]string{exampleEndpoint: address, onePct: "samplingRatePerMillion: 1000000\n"} {
		if strings.Count(tracing, said) != 1 {
			t.Fatalf("%s does not have %q once; next: change this test with it", example, said)
		}
		tracing = strings.Replace(tracing, said, own, 1)
	}
	folder := t.TempDir()
	cluster.Write(t, filepath.Join(folder, "tracing.yaml"), tracing)
	cluster.Write(t, filepath.Join(folder, "config.yaml"), config)
	return c.StartScheduler(t, cluster.Program(t, "KUBE_SCHEDULER"), filepath.Join(folder, "config.yaml"),
		localcluster.SchedulerOptions{LeaderElection: true, Flags: []string{"--tracing-config-file=" + filepath.Join(folder, "tracing.yaml")}})
}

// TestSpans binds pods before a collector is there, and checks that later spans come to it, also those of the last batch.
// What is in them is tested in package traces, and in TestTraces of the patch 0720.
func TestSpans(t *testing.T) {
	c, collector, address := shared.Get(t), &receiver{}, cluster.FreeAddress(t, "127.0.0.1")
	c.AddNodes(t, 3)
	scheduler := startScheduler(t, c, address)
	logged := func(what string) {
		t.Helper()
		c.Await(t, "a word in the log", func() error {
			return cluster.Unless(strings.Contains(cluster.Read(t, scheduler.LogFile()), what), "there is no %q", what)
		})
	}
	bind := func(name string) {
		t.Helper()
		c.AwaitBound(t, c.CreatePod(t, localcluster.NewPod(name, "")))
	}
	for i := range 20 {
		bind(fmt.Sprintf("without-%d", i))
	}
	logged("Spans are lost")
	collector.listen(t, address)
	count := 0
	c.Await(t, "spans, once it is there", func() error {
		bind(fmt.Sprintf("with-%d", count))
		count++
		return cluster.Unless(collector.attempts("") > 0, "nothing came")
	})
	logged("The collector accepts spans again")

	// The batch of this one is neither full nor due yet.
	bind("last")
	c.Await(t, "the end of its attempt", func() error {
		content, err := c.Get(t.Context(), scheduler.URL()+"/scheduling/pods/default/last")
		return cluster.Unless(err == nil && strings.Contains(string(content), `"result":"Bound"`), "%v: %s", err, content)
	})
	if err := scheduler.Stop(); err != nil {
		t.Fatal(err)
	}
	if got := collector.attempts("last"); got != 1 {
		t.Errorf("%d attempts of the last pod came before the scheduler ended, want 1", got)
	}
	if services := slices.Compact(collector.services); !slices.Equal(services, []string{"kube-scheduler"}) {
		t.Errorf("spans are of %v", services)
	}
}
