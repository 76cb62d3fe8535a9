// SPDX-License-Identifier: Apache-2.0

package traces

import (
	"context"
	"io/ioutil"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/util/wait"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// receiver is a collector.
type receiver struct {
	collector.UnimplementedTraceServiceServer
	requests chan *collector.ExportTraceServiceRequest
	hangs    bool
}

func (r *receiver) Export(ctx context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	if r.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	r.requests <- request
	return &collector.ExportTraceServiceResponse{}, nil
}

func (r *receiver) serve(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, r)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

func write(t *testing.T, fields string) Options {
	file := filepath.Join(t.TempDir(), "tracing.yaml")
	content := "apiVersion: apiserver.config.k8s.io/v1alpha1\nkind: TracingConfiguration\n" + fields
	if err := ioutil.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return Options{ConfigFile: file}
}

func open(t *testing.T, endpoint string) *Tracer {
	tracer, err := Open(write(t, "endpoint: "+endpoint+"\nsamplingRatePerMillion: 1000000\n"))
	if err != nil {
		t.Fatal(err)
	}
	return tracer
}

func TestSpansThatAreLeftAreSentAtTheEnd(t *testing.T) {
	r := &receiver{requests: make(chan *collector.ExportTraceServiceRequest, 1)}
	tracer := open(t, r.serve(t))
	pod := st.MakePod().Name("p").UID("uid").Obj()
	tracer.Begin(context.Background(), pod, "default-scheduler")
	tracer.Failed(pod, true)
	tracer.Flush()
	select {
	case request := <-r.requests:
		text := request.String()
		for _, want := range []string{"kube-scheduler", attemptSpan, "default-scheduler", "Unschedulable"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s is not in %s", want, text)
			}
		}
	case <-time.After(wait.ForeverTestTimeout):
		t.Fatal("nothing came")
	}
	// What comes after the end is lost, and does no harm.
	tracer.Begin(context.Background(), pod, "default-scheduler")
	tracer.Failed(pod, true)
	tracer.Flush()
}

func TestCollectorThatIsAwayOrHangsHoldsNothingUp(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	away := listener.Addr().String()
	listener.Close()
	for name, endpoint := range map[string]string{"away": away, "hangs": (&receiver{hangs: true}).serve(t)} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			tracer := open(t, endpoint)
			pod := st.MakePod().Name("p").UID("uid").Obj()
			for i := 0; i < 10*sdktrace.DefaultMaxQueueSize; i++ {
				tracer.Begin(context.Background(), pod, "default-scheduler")
				tracer.Failed(pod, true)
			}
			tracer.Flush()
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("%v have passed", took)
			}
		})
	}
}

// TestBatchThatFailsIsLost: a batch that the processor kept would never be sent again in one of the usual size.
func TestBatchThatFailsIsLost(t *testing.T) {
	spans := &failing{failures: 2}
	exporter := &lossyExporter{SpanExporter: spans}
	processor := sdktrace.NewBatchSpanProcessor(exporter, sdktrace.WithMaxExportBatchSize(2), sdktrace.WithBatchTimeout(time.Hour), sdktrace.WithBlocking())
	tracer := New(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(processor)), processor.Shutdown)
	pod := st.MakePod().Name("p").UID("uid").Obj()
	for i := 0; i < 8; i++ {
		tracer.Begin(context.Background(), pod, "default-scheduler")
		tracer.Failed(pod, true)
	}
	tracer.Flush()
	if len(spans.spans) != 4 || exporter.lost != 0 {
		t.Errorf("%d spans came, want the last 4 of 8; %d count as lost since", len(spans.spans), exporter.lost)
	}
}

type failing struct {
	kept
	failures int
}

func (f *failing) ExportSpans(ctx context.Context, spans []*sdktrace.SpanSnapshot) error {
	if f.failures > 0 {
		f.failures--
		return context.DeadlineExceeded
	}
	return f.kept.ExportSpans(ctx, spans)
}

func TestConfiguration(t *testing.T) {
	if tracer, err := Open(Options{}); tracer != nil || err != nil {
		t.Errorf("without a file: %v, %v", tracer, err)
	}
	if tracer, err := Open(write(t, "endpoint: localhost:4317\n")); tracer != nil || err != nil {
		t.Errorf("without a rate: %v, %v", tracer, err)
	}
	(*Tracer)(nil).Flush()
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"no file":     {Options{ConfigFile: "/nonexistent/tracing.yaml"}, "no such file"},
		"a rate":      {write(t, "samplingRatePerMillion: 1000001\n"), "samplingRatePerMillion"},
		"an endpoint": {write(t, "endpoint: https://localhost:4317\n"), "unsupported scheme"},
		"a kind":      {write(t, "kind: AdmissionConfiguration\n"), "decode"},
	} {
		errs := test.options.Validate()
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), test.want) || !strings.Contains(errs[0].Error(), test.options.ConfigFile) {
			t.Errorf("%s: %v, want %s", name, errs, test.want)
		}
		if _, err := Open(test.options); err == nil {
			t.Errorf("%s: it opens", name)
		}
	}
}
