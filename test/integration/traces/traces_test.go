// SPDX-License-Identifier: Apache-2.0

// Package traces receives the OTLP spans of a real scheduler on a local control plane. It needs programs that were
// built before, so it has its own make target.
package traces

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

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

// receiver is a collector with the receiver of the OpenTelemetry Collector. It stores everything.
type receiver struct {
	ptraceotlp.UnimplementedGRPCServer
	mutex sync.Mutex
	// texts are the requests.
	texts    []string
	services []string
	spans    []ptrace.Span
}

func (r *receiver) Export(_ context.Context, request ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	text, err := request.MarshalJSON()
	if err != nil {
		return ptraceotlp.ExportResponse{}, err
	}
	r.texts = append(r.texts, string(text))
	for _, of := range request.Traces().ResourceSpans().All() {
		r.services = append(r.services, attributes(of.Resource().Attributes())["service.name"])
		for _, scope := range of.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				r.spans = append(r.spans, span)
			}
		}
	}
	return ptraceotlp.NewExportResponse(), nil
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

// attempt is the received span of an attempt.
type attempt struct {
	attributes map[string]string
	// children are the names of its child spans, by start time.
	children []string
}

// attempts returns the attempts of a pod, by start time. It fails for a span that exceeds its attempt.
func (r *receiver) attempts(t *testing.T, pod *corev1.Pod) []attempt {
	t.Helper()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	slices.SortStableFunc(r.spans, func(a, b ptrace.Span) int { return cmp.Compare(a.StartTimestamp(), b.StartTimestamp()) })
	var found []attempt
	for _, root := range r.spans {
		a := attempt{attributes: attributes(root.Attributes())}
		if !root.ParentSpanID().IsEmpty() || a.attributes["k8s.pod.uid"] != string(pod.UID) {
			continue
		}
		for _, span := range r.spans {
			if span.ParentSpanID() != root.SpanID() {
				continue
			}
			a.children = append(a.children, span.Name())
			if span.TraceID() != root.TraceID() || span.StartTimestamp() < root.StartTimestamp() || span.EndTimestamp() > root.EndTimestamp() {
				t.Errorf("%s is not within its attempt", span.Name())
			}
		}
		found = append(found, a)
	}
	return found
}

func attributes(of pcommon.Map) map[string]string {
	texts := map[string]string{}
	for key, value := range of.All() {
		texts[key] = value.AsString()
	}
	return texts
}

type stand struct {
	*cluster.Cluster
	receiver  *receiver
	address   string
	scheduler *localcluster.Scheduler
}

// newStand starts a scheduler that sends its spans to the stand's address, where no receiver is yet.
func newStand(t *testing.T, extenders string) *stand {
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
	cluster.Write(t, filepath.Join(folder, "config.yaml"), config+extenders)
	s.scheduler = s.StartScheduler(t, cluster.Program(t, "KUBE_SCHEDULER"), filepath.Join(folder, "config.yaml"),
		localcluster.WithLeaderElection(), localcluster.WithFlags("--tracing-config-file="+filepath.Join(folder, "tracing.yaml")))
	return s
}

// TestSpans compares the received spans with the results of pods, with an extender that accepts all nodes.
func TestSpans(t *testing.T) {
	extender := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		var args extenderv1.ExtenderArgs
		if err := json.NewDecoder(request.Body).Decode(&args); err != nil {
			t.Error(err)
		}
		var answer any = extenderv1.ExtenderFilterResult{NodeNames: args.NodeNames}
		if request.URL.Path == "/prioritize" {
			answer = extenderv1.HostPriorityList{}
		}
		if err := json.NewEncoder(response).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer extender.Close()
	s := newStand(t, fmt.Sprintf("extenders: [{urlPrefix: %q, filterVerb: filter, prioritizeVerb: prioritize, weight: 1, nodeCacheCapable: true}]\n", extender.URL))
	s.receiver.listen(t, s.address)

	bound := localcluster.NewPod("bound", "")
	bound.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", Value: "secret"}}
	bound.Annotations = map[string]string{"password": "secret"}
	bound = s.CreatePod(t, bound)
	node := s.AwaitBound(t, bound)
	waits := localcluster.NewPod("waits", "")
	waits.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000")}
	waits = s.CreatePod(t, waits)
	for _, tt := range []struct {
		pod        *corev1.Pod
		children   []string
		attributes map[string]string
	}{
		{
			bound,
			[]string{"PreFilter", "Filter", "Extender filter", "PreScore", "Score", "Extender prioritize", "Reserve", "Permit", "PreBind", "Bind", "PostBind"},
			map[string]string{
				"scheduler.result": "Bound", "k8s.node.name": node, "scheduler.nodes.evaluated": "3", "scheduler.nodes.feasible": "3",
			},
		},
		{
			waits, []string{"PreFilter", "Filter", "PostFilter"}, map[string]string{"scheduler.result": "Unschedulable"},
		},
	} {
		t.Run(tt.pod.Name, func(t *testing.T) {
			var got []attempt
			s.Await(t, "a span of an attempt", func() error {
				got = s.receiver.attempts(t, tt.pod)
				return cluster.Unless(len(got) > 0, "there is none")
			})
			if !slices.Equal(got[0].children, tt.children) {
				t.Errorf("the children are %v, want %v", got[0].children, tt.children)
			}
			tt.attributes["scheduler.attempt"], tt.attributes["scheduler.profile"] = "1", "default-scheduler"
			tt.attributes["k8s.namespace.name"], tt.attributes["k8s.pod.name"] = tt.pod.Namespace, tt.pod.Name
			for key, want := range tt.attributes {
				if got[0].attributes[key] != want {
					t.Errorf("%s is %q, want %q", key, got[0].attributes[key], want)
				}
			}
		})
	}

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
	if got := s.receiver.attempts(t, last); len(got) != 1 {
		t.Errorf("%d attempts of the last pod came before the scheduler ended, want 1", len(got))
	}

	for _, text := range s.receiver.texts {
		if strings.Contains(text, "secret") {
			t.Errorf("it tells what is the pod's own: %s", text)
		}
	}
	if services := slices.Compact(s.receiver.services); !slices.Equal(services, []string{"kube-scheduler"}) {
		t.Errorf("spans are of %v", services)
	}
}

// TestCollectorThatComesLater checks that pods are bound without a collector.
func TestCollectorThatComesLater(t *testing.T) {
	s := newStand(t, "")
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
		s.receiver.mutex.Lock()
		defer s.receiver.mutex.Unlock()
		return cluster.Unless(len(s.receiver.spans) > 0, "nothing came")
	})
	s.Await(t, "a word about that in the log", func() error {
		return cluster.Unless(strings.Contains(cluster.Read(t, s.scheduler.LogFile()), "The collector accepts spans again"), "there is none")
	})
}
