// SPDX-License-Identifier: Apache-2.0

// Package traces makes a span of each attempt to schedule a pod, with a child for each extension point and each request
// to an extender, and sends them to a collector with OTLP. Spans have the names of pods, nodes, profiles, plugins and
// extenders: no other field of a pod, and no text of an error.
//
// A nil *Tracer traces nothing: all its methods may be called.
package traces

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/semconv"
	"go.opentelemetry.io/otel/trace"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/records"
)

// repeated is the result of an attempt for a pod of a gang after which the pod is searched for again.
const repeated records.Result = "Repeated"

// resultKey is the attribute with the result of an attempt.
const resultKey = attribute.Key("scheduler.result")

// Tracer makes the spans. One goroutine schedules, and calls Next and Begin; all others may call the rest at any time.
type Tracer struct {
	tracer   trace.Tracer
	flush    func(context.Context) error
	flushing sync.Once

	// next is the pod that the queue has given last, and taken when it has.
	next  *framework.QueuedPodInfo
	taken time.Time

	// attempts has those that are sampled, until they end. A pod is in one attempt at a time.
	mutex    sync.RWMutex
	attempts map[types.UID]*attempt
}

// attempt belongs to the goroutine that schedules, and then to the one that binds.
type attempt struct {
	span trace.Span
	// filter is open from the end of PreFilter to the next step.
	filter trace.Span
}

// New returns a Tracer of a provider's, with what sends the spans that are left at the end.
func New(provider trace.TracerProvider, flush func(context.Context) error) *Tracer {
	return &Tracer{tracer: provider.Tracer("k8s.io/kubernetes/pkg/scheduler"), flush: flush, attempts: make(map[types.UID]*attempt)}
}

// Next notes the pod that the queue has given.
func (t *Tracer) Next(podInfo *framework.QueuedPodInfo) {
	if t != nil {
		t.next, t.taken = podInfo, time.Now()
	}
}

// Gang begins the span of an attempt for a gang of some pods. Spans that begin with the context that it returns are its
// children. end ends it; the spans of its pods may end later.
func (t *Tracer) Gang(ctx context.Context, name string, pods int) (child context.Context, end func(result string)) {
	if t == nil {
		return ctx, func(string) {}
	}
	ctx, span := t.tracer.Start(ctx, "Gang")
	span.SetAttributes(attribute.String("scheduler.gang", name), attribute.Int("scheduler.gang.pods", pods))
	return ctx, func(result string) {
		span.SetAttributes(resultKey.String(result))
		span.End()
	}
}

// Begin begins the span of an attempt, if it is sampled, and ends one of the pod that is still open. Plugins get the
// context that it returns.
func (t *Tracer) Begin(ctx context.Context, pod *v1.Pod, profile string) context.Context {
	number, taken := 1, time.Now()
	if next := t.next; next != nil && next.Pod != nil && next.Pod.UID == pod.UID {
		number, taken = next.Attempts, t.taken
	}
	t.next = nil
	if open := t.take(pod.UID); open != nil {
		open.end(repeated)
	}
	ctx, span := t.tracer.Start(ctx, "Attempt", trace.WithTimestamp(taken))
	if !span.IsRecording() {
		return ctx
	}
	span.SetAttributes(
		semconv.K8SNamespaceNameKey.String(pod.Namespace), semconv.K8SPodNameKey.String(pod.Name), semconv.K8SPodUIDKey.String(string(pod.UID)),
		attribute.String("scheduler.profile", profile), attribute.Int("scheduler.attempt", number),
	)
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.attempts[pod.UID] = &attempt{span: span}
	return ctx
}

// Searched notes what the search for a node has found; node is empty without one.
func (t *Tracer) Searched(pod *v1.Pod, node string, evaluated, feasible int) {
	a := t.of(pod.UID)
	if a == nil {
		return
	}
	a.endFilter()
	if node != "" {
		a.span.SetAttributes(semconv.K8SNodeNameKey.String(node),
			attribute.Int("scheduler.nodes.evaluated", evaluated), attribute.Int("scheduler.nodes.feasible", feasible))
	}
}

// Failed ends an attempt that has not bound its pod. unschedulable says that the search has found no node.
func (t *Tracer) Failed(pod *v1.Pod, unschedulable bool) {
	if t == nil {
		return
	}
	a := t.take(pod.UID)
	if a == nil {
		return
	}
	if unschedulable {
		a.end(records.Unschedulable)
		return
	}
	a.span.SetStatus(codes.Error, "")
	a.end(records.Failed)
}

// bound ends an attempt that has bound its pod.
func (t *Tracer) bound(pod *v1.Pod) {
	if a := t.take(pod.UID); a != nil {
		a.end(records.Bound)
	}
}

// flushTime is for how long the end of the program waits for spans to be sent.
const flushTime = time.Second

// Flush sends the spans that are left, at the end of the program. What comes later is lost.
func (t *Tracer) Flush() {
	if t == nil {
		return
	}
	t.flushing.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), flushTime)
		defer cancel()
		if err := t.flush(ctx); err != nil {
			klog.ErrorS(err, "The last spans are lost: the collector did not accept them in time; check that it runs", "timeout", flushTime)
		}
	})
}

func (t *Tracer) of(uid types.UID) *attempt {
	t.mutex.RLock()
	defer t.mutex.RUnlock()
	return t.attempts[uid]
}

func (t *Tracer) take(uid types.UID) *attempt {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	a := t.attempts[uid]
	delete(t.attempts, uid)
	return a
}

func (a *attempt) end(result records.Result) {
	a.endFilter()
	a.span.SetAttributes(resultKey.String(string(result)))
	a.span.End()
}

func (a *attempt) endFilter() {
	if a.filter != nil {
		a.filter.End()
		a.filter = nil
	}
}

// Step is a part of an attempt. That of an attempt that is not sampled has a span that does nothing.
type Step struct{ span trace.Span }

// Step begins the span of an extension point, or of a request to an extender. Plugins get the context that it returns.
func (t *Tracer) Step(ctx context.Context, pod types.UID, name string, options ...trace.SpanOption) (context.Context, Step) {
	a := t.of(pod)
	if a == nil {
		return ctx, Step{trace.SpanFromContext(context.Background())}
	}
	a.endFilter()
	ctx, span := t.tracer.Start(trace.ContextWithSpan(ctx, a.span), name, options...)
	return ctx, Step{span}
}

// End ends the span of an extension point.
func (s Step) End(status *framework.Status) {
	if !s.span.IsRecording() {
		return
	}
	s.span.SetAttributes(attribute.String("scheduler.status", status.Code().String()))
	if !status.IsSuccess() && status.FailedPlugin() != "" {
		s.span.SetAttributes(attribute.String("scheduler.plugin", status.FailedPlugin()))
	}
	s.fail(status.Code() == framework.Error)
}

// fail ends the span of a step that may have failed.
func (s Step) fail(failed bool) {
	if failed {
		s.span.SetStatus(codes.Error, "")
	}
	s.span.End()
}

// filter begins the span of the Filter plugins. They run for each node, in many goroutines: one span has them all.
func (t *Tracer) filter(ctx context.Context, pod types.UID) {
	if a := t.of(pod); a != nil {
		_, a.filter = t.tracer.Start(trace.ContextWithSpan(ctx, a.span), "Filter")
	}
}
