// SPDX-License-Identifier: Apache-2.0

package traces

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpgrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/semconv"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/tracing"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
)

// Options say what is traced, and who gets it.
type Options struct {
	// ConfigFile has a TracingConfiguration, as kube-apiserver's does. If it is empty, nothing is traced.
	ConfigFile string
}

// Validate says what is wrong with the configuration.
func (o Options) Validate() []error {
	if _, err := o.read(); err != nil {
		return []error{err}
	}
	return nil
}

// read returns nil if nothing is to be traced.
func (o Options) read() (*apiserver.TracingConfiguration, error) {
	if o.ConfigFile == "" {
		return nil, nil
	}
	config, err := tracing.ReadTracingConfiguration(o.ConfigFile)
	if err == nil {
		err = tracing.ValidateTracingConfiguration(config).ToAggregate()
	}
	if err != nil {
		return nil, fmt.Errorf("--tracing-config-file %s: %w; use the format of kube-apiserver, apiVersion apiserver.config.k8s.io/v1alpha1 and kind TracingConfiguration, "+
			"and check it with --validate-config", o.ConfigFile, err)
	}
	return config, nil
}

// Open begins to send spans to the collector of the configuration, whether it is there or not. It returns nil if
// nothing is to be traced.
func Open(o Options) (*Tracer, error) {
	config, err := o.read()
	if config == nil || err != nil {
		return nil, err
	}
	rate := int32(0)
	if config.SamplingRatePerMillion != nil {
		rate = *config.SamplingRatePerMillion
	}
	if rate == 0 {
		klog.InfoS("No attempt is traced: the tracing configuration has no samplingRatePerMillion; set it to 1 to 1000000", "file", o.ConfigFile)
		return nil, nil
	}
	options, endpoint := []otlpgrpc.Option{otlpgrpc.WithInsecure()}, fmt.Sprintf("%s:%d", otlp.DefaultCollectorHost, otlp.DefaultCollectorPort)
	if config.Endpoint != nil {
		endpoint = *config.Endpoint
		options = append(options, otlpgrpc.WithEndpoint(endpoint))
	}
	otel.SetErrorHandler(errorLog{})
	ctx := context.Background()
	about, err := resource.New(ctx, resource.WithAttributes(
		semconv.ServiceNameKey.String("kube-scheduler"), semconv.ServiceVersionKey.String(version.Get().String()),
	))
	if err != nil {
		return nil, fmt.Errorf("cannot describe this scheduler in its spans: %w; check the environment variable OTEL_RESOURCE_ATTRIBUTES", err)
	}
	exporter, err := otlp.NewExporter(ctx, otlpgrpc.NewDriver(options...))
	if err != nil {
		return nil, fmt.Errorf("cannot send spans to %s: %w; check the endpoint in %s", endpoint, err, o.ConfigFile)
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(float64(rate)/1000000))),
		sdktrace.WithBatcher(&lossyExporter{SpanExporter: exporter, endpoint: endpoint}),
		sdktrace.WithResource(about),
	)
	klog.InfoS("Scheduling attempts are traced", "endpoint", endpoint, "samplingRatePerMillion", rate)
	return New(provider, provider.Shutdown), nil
}

// errorLog takes the errors of OpenTelemetry, which also reports that there is none.
type errorLog struct{}

func (errorLog) Handle(err error) {
	if err != nil {
		klog.ErrorS(err, "Failed to send spans; check that the collector runs")
	}
}

// lossyExporter lets go of spans that the collector does not take. The batch processor of this release of OpenTelemetry
// keeps a batch that was not taken, adds to it without a bound, and tries it again with all that has come since; so
// component-base's NewProvider, which gives it the exporter itself, is not used. One goroutine exports.
type lossyExporter struct {
	sdktrace.SpanExporter
	endpoint string
	lost     int
}

func (e *lossyExporter) ExportSpans(ctx context.Context, spans []*sdktrace.SpanSnapshot) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err != nil:
		if e.lost == 0 {
			klog.ErrorS(err, "Spans are lost: the collector does not accept them; check that it listens there for OTLP over gRPC, without TLS", "endpoint", e.endpoint)
		}
		e.lost += len(spans)
	case e.lost > 0:
		klog.InfoS("The collector accepts spans again", "endpoint", e.endpoint, "lost", e.lost)
		e.lost = 0
	}
	return nil
}
