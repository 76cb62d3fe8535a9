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
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// hanging is a collector that does not answer.
type hanging struct {
	collector.UnimplementedTraceServiceServer
}

func (hanging) Export(ctx context.Context, _ *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func write(t *testing.T, fields string) Options {
	file := filepath.Join(t.TempDir(), "tracing.yaml")
	content := "apiVersion: apiserver.config.k8s.io/v1alpha1\nkind: TracingConfiguration\n" + fields
	if err := ioutil.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return Options{ConfigFile: file}
}

// TestCollectorThatHangs checks that neither attempts nor the exit wait for it. test/integration/traces has a collector
// that accepts spans, and one that is away.
func TestCollectorThatHangs(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, hanging{})
	go server.Serve(listener)
	defer server.Stop()
	began := time.Now()
	tracer, err := Open(write(t, "endpoint: "+listener.Addr().String()+"\nsamplingRatePerMillion: 1000000\n"))
	if err != nil {
		t.Fatal(err)
	}
	pod := st.MakePod().Name("p").UID("uid").Obj()
	for i := 0; i < 10*sdktrace.DefaultMaxQueueSize; i++ {
		tracer.Begin(context.Background(), pod, "default-scheduler")
		tracer.Failed(pod, true)
	}
	tracer.Flush()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("%v have passed", took)
	}
	// Later spans are lost without an error.
	tracer.Begin(context.Background(), pod, "default-scheduler")
	tracer.Failed(pod, true)
	tracer.Flush()
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
