// SPDX-License-Identifier: Apache-2.0

package traces

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sort"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// kept stores the spans that have ended.
type kept struct{ spans []*sdktrace.SpanSnapshot }

func (k *kept) ExportSpans(_ context.Context, spans []*sdktrace.SpanSnapshot) error {
	k.spans = append(k.spans, spans...)
	return nil
}

func (k *kept) Shutdown(context.Context) error { return nil }

// tree returns a line for each span: its parent's name, its own, and its attributes except those of the pod.
func (k *kept) tree() []string {
	names := map[trace.SpanID]string{}
	for _, span := range k.spans {
		names[span.SpanContext.SpanID()] = span.Name
	}
	var lines []string
	for _, span := range k.spans {
		var attributes []string
		for _, a := range span.Attributes {
			if key := string(a.Key); !strings.HasPrefix(key, "k8s.namespace") && !strings.HasPrefix(key, "k8s.pod") {
				attributes = append(attributes, strings.TrimPrefix(key, "scheduler.")+"="+a.Value.Emit())
			}
		}
		sort.Strings(attributes)
		parent := names[span.Parent.SpanID()]
		lines = append(lines, strings.TrimSpace(parent+">"+span.Name+" "+strings.Join(attributes, " ")))
	}
	return lines
}

// plugins is a Framework whose extension points return these statuses, and success by default.
type plugins struct {
	framework.Framework
	statuses map[string]*framework.Status
	// seen has the span in the context of each extension point.
	seen map[string]trace.SpanID
}

func (p *plugins) run(ctx context.Context, point string) *framework.Status {
	p.seen[point] = trace.SpanContextFromContext(ctx).SpanID()
	return p.statuses[point]
}

func (p *plugins) RunPreFilterPlugins(ctx context.Context, _ *framework.CycleState, _ *v1.Pod) *framework.Status {
	return p.run(ctx, "PreFilter")
}

func (p *plugins) RunPostFilterPlugins(ctx context.Context, _ *framework.CycleState, _ *v1.Pod, _ framework.NodeToStatusMap) (*framework.PostFilterResult, *framework.Status) {
	return nil, p.run(ctx, "PostFilter")
}

func (p *plugins) RunPreScorePlugins(ctx context.Context, _ *framework.CycleState, _ *v1.Pod, _ []*v1.Node) *framework.Status {
	return p.run(ctx, "PreScore")
}

func (p *plugins) RunScorePlugins(ctx context.Context, _ *framework.CycleState, _ *v1.Pod, _ []*v1.Node) (framework.PluginToNodeScores, *framework.Status) {
	return nil, p.run(ctx, "Score")
}

func (p *plugins) RunReservePluginsReserve(ctx context.Context, _ *framework.CycleState, _ *v1.Pod, _ string) *framework.Status {
	return p.run(ctx, "Reserve")
}

func (p *plugins) RunReservePluginsUnreserve(ctx context.Context, _ *framework.CycleState, _ *v1.Pod, _ string) {
	p.run(ctx, "Unreserve")
}

func (p *plugins) RunPermitPlugins(ctx context.Context, _ *framework.CycleState, _ *v1.Pod, _ string) *framework.Status {
	return p.run(ctx, "Permit")
}

type waitingPod struct{ framework.WaitingPod }

func (p *plugins) GetWaitingPod(types.UID) framework.WaitingPod {
	if _, waits := p.statuses["WaitOnPermit"]; waits {
		return waitingPod{}
	}
	return nil
}

func (p *plugins) WaitOnPermit(ctx context.Context, _ *v1.Pod) *framework.Status {
	return p.run(ctx, "WaitOnPermit")
}

func (p *plugins) RunPreBindPlugins(ctx context.Context, _ *framework.CycleState, _ *v1.Pod, _ string) *framework.Status {
	return p.run(ctx, "PreBind")
}

func (p *plugins) RunBindPlugins(ctx context.Context, _ *framework.CycleState, _ *v1.Pod, _ string) *framework.Status {
	return p.run(ctx, "Bind")
}

func (p *plugins) RunPostBindPlugins(ctx context.Context, _ *framework.CycleState, _ *v1.Pod, _ string) {
	p.run(ctx, "PostBind")
}

type extender struct {
	framework.Extender
	err error
}

func (e *extender) Name() string { return "https://user:secret@extender/scheduler" }

func (e *extender) Filter(_ *v1.Pod, nodes []*v1.Node) ([]*v1.Node, extenderv1.FailedNodesMap, extenderv1.FailedNodesMap, error) {
	return nodes, nil, nil, e.err
}

func (e *extender) Prioritize(*v1.Pod, []*v1.Node) (*extenderv1.HostPriorityList, int64, error) {
	return nil, 1, e.err
}

func (e *extender) ProcessPreemption(*v1.Pod, map[string]*extenderv1.Victims, framework.NodeInfoLister) (map[string]*extenderv1.Victims, error) {
	return nil, e.err
}

func (e *extender) Bind(*v1.Binding) error { return e.err }

// schedule makes the calls of the scheduler for a pod, in its order.
func schedule(t *Tracer, fwk framework.Framework, extender framework.Extender, pod *v1.Pod, attempt int) {
	ctx, state := context.Background(), framework.NewCycleState()
	t.Next(&framework.QueuedPodInfo{PodInfo: framework.NewPodInfo(pod), Attempts: attempt})
	node, search := "", t.Begin(ctx, pod, "default-scheduler")
	passed := fwk.RunPreFilterPlugins(search, state, pod).IsSuccess()
	if passed && extender != nil {
		_, _, _, err := extender.Filter(pod, nil)
		passed = err == nil
	}
	if passed && fwk.RunPreScorePlugins(search, state, pod, nil).IsSuccess() {
		fwk.RunScorePlugins(search, state, pod, nil)
		if extender != nil {
			extender.Prioritize(pod, nil)
		}
		node = "n1"
	}
	t.Searched(pod, node, 3, 2)
	if node == "" {
		fwk.RunPostFilterPlugins(ctx, state, pod, nil)
		if extender != nil {
			extender.ProcessPreemption(pod, nil, nil)
		}
		t.Failed(pod, true)
		return
	}
	reserved := fwk.RunReservePluginsReserve(ctx, state, pod, node).IsSuccess()
	status := fwk.RunPermitPlugins(ctx, state, pod, node)
	if reserved && (status.IsSuccess() || status.Code() == framework.Wait) && fwk.WaitOnPermit(ctx, pod).IsSuccess() &&
		fwk.RunPreBindPlugins(ctx, state, pod, node).IsSuccess() && bind(ctx, fwk, extender, pod, node) {
		fwk.RunPostBindPlugins(ctx, state, pod, node)
		return
	}
	fwk.RunReservePluginsUnreserve(ctx, state, pod, node)
	t.Failed(pod, false)
}

func bind(ctx context.Context, fwk framework.Framework, extender framework.Extender, pod *v1.Pod, node string) bool {
	if extender == nil {
		return fwk.RunBindPlugins(ctx, nil, pod, node).IsSuccess()
	}
	return extender.Bind(&v1.Binding{ObjectMeta: pod.ObjectMeta}) == nil
}

func TestSpansOfAttempts(t *testing.T) {
	pod := st.MakePod().Namespace("shop").Name("web-0").UID("uid").Obj()
	pod.Annotations = map[string]string{"password": "secret"}
	const (
		found     = "attempt=2 k8s.node.name=n1 nodes.evaluated=3 nodes.feasible=2 profile=default-scheduler"
		requested = " extender=https://extender/scheduler"
	)
	for name, test := range map[string]struct {
		statuses map[string]*framework.Status
		extender framework.Extender
		want     []string
		// red are the spans with the status of an error.
		red []string
	}{
		"a pod that is bound": {want: []string{
			"Attempt>PreFilter status=Success", "Attempt>Filter", "Attempt>PreScore status=Success", "Attempt>Score status=Success",
			"Attempt>Reserve status=Success", "Attempt>Permit status=Success", "Attempt>PreBind status=Success", "Attempt>Bind status=Success",
			"Attempt>PostBind", ">Attempt " + found + " result=Bound",
		}},
		"PreFilter rejects it": {
			statuses: map[string]*framework.Status{
				"PreFilter": framework.NewStatus(framework.UnschedulableAndUnresolvable, "secret").WithFailedPlugin("VolumeBinding"),
			},
			want: []string{
				"Attempt>PreFilter plugin=VolumeBinding status=UnschedulableAndUnresolvable",
				"Attempt>PostFilter status=Success", ">Attempt attempt=2 profile=default-scheduler result=Unschedulable",
			},
		},
		"with an extender": {
			extender: &extender{}, statuses: map[string]*framework.Status{"Permit": framework.NewStatus(framework.Wait), "WaitOnPermit": nil},
			want: []string{
				"Attempt>PreFilter status=Success", "Attempt>Filter", "Attempt>Extender filter" + requested, "Attempt>PreScore status=Success",
				"Attempt>Score status=Success", "Attempt>Extender prioritize" + requested, "Attempt>Reserve status=Success",
				"Attempt>Permit status=Wait", "Attempt>WaitOnPermit status=Success", "Attempt>PreBind status=Success",
				"Attempt>Extender bind" + requested, "Attempt>PostBind", ">Attempt " + found + " result=Bound",
			},
		},
		"an extender that fails": {
			extender: &extender{err: errors.New("secret")},
			want: []string{
				"Attempt>PreFilter status=Success", "Attempt>Filter", "Attempt>Extender filter" + requested,
				"Attempt>PostFilter status=Success", "Attempt>Extender preempt" + requested,
				">Attempt attempt=2 profile=default-scheduler result=Unschedulable",
			},
			red: []string{"Extender filter", "Extender preempt"},
		},
		"a binding that fails": {
			statuses: map[string]*framework.Status{"Bind": framework.AsStatus(errors.New("secret"))},
			want: []string{
				"Attempt>PreFilter status=Success", "Attempt>Filter", "Attempt>PreScore status=Success", "Attempt>Score status=Success",
				"Attempt>Reserve status=Success", "Attempt>Permit status=Success", "Attempt>PreBind status=Success",
				"Attempt>Bind status=Error", "Attempt>Unreserve", ">Attempt " + found + " result=Error",
			},
			red: []string{"Bind", "Attempt"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			spans := &kept{}
			tracer := New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)), nil)
			plugins := &plugins{statuses: test.statuses, seen: map[string]trace.SpanID{}}
			if test.extender != nil {
				test.extender = tracer.Extender(test.extender)
			}
			schedule(tracer, &Framework{plugins, tracer}, test.extender, pod, 2)
			if got := spans.tree(); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
			var red []string
			for _, span := range spans.spans {
				if span.StatusCode != 0 {
					red = append(red, span.Name)
				}
				if strings.HasPrefix(span.Name, "Extender") != (span.SpanKind == trace.SpanKindClient) {
					t.Errorf("%s has the kind %v", span.Name, span.SpanKind)
				}
				if own, called := plugins.seen[span.Name]; called && own != span.SpanContext.SpanID() {
					t.Errorf("the plugins of %s got a context with another span", span.Name)
				}
			}
			if !reflect.DeepEqual(red, test.red) {
				t.Errorf("errors: %v, want %v", red, test.red)
			}
			if text := fmt.Sprintf("%+v", spans.tree()) + fmt.Sprint(spans.spans[0].StatusMessage); strings.Contains(text, "secret") {
				t.Errorf("spans contain a text of an error or of the pod: %s", text)
			}
			root := spans.spans[len(spans.spans)-1]
			if !has(root, "k8s.namespace.name", "shop") || !has(root, "k8s.pod.name", "web-0") || !has(root, "k8s.pod.uid", "uid") {
				t.Errorf("the attempt names its pod as %v", root.Attributes)
			}
			if len(tracer.attempts) != 0 {
				t.Error("the attempt is kept after its end")
			}
		})
	}
}

func has(span *sdktrace.SpanSnapshot, key, value string) bool {
	for _, a := range span.Attributes {
		if a == attribute.String(key, value) {
			return true
		}
	}
	return false
}

func TestGang(t *testing.T) {
	spans := &kept{}
	tracer := New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)), nil)
	pod := st.MakePod().Name("p").UID("uid").Obj()
	ctx, end := tracer.Gang(context.Background(), "shop/job", 3)
	for attempt := 0; attempt < 2; attempt++ {
		tracer.Next(&framework.QueuedPodInfo{PodInfo: framework.NewPodInfo(pod), Attempts: 2})
		tracer.Begin(ctx, pod, "p")
	}
	end("unschedulable")
	tracer.Failed(pod, true)
	// The second attempt ends after its parent, like one that binds its pod.
	want := []string{
		"Gang>Attempt attempt=2 profile=p result=Repeated", ">Gang gang.pods=3 gang=shop/job result=unschedulable",
		"Gang>Attempt attempt=2 profile=p result=Unschedulable",
	}
	if got := spans.tree(); !reflect.DeepEqual(got, want) || len(tracer.attempts) != 0 {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	tracer = nil
	tracer.Next(&framework.QueuedPodInfo{})
	tracer.Failed(pod, true)
	if child, end := tracer.Gang(ctx, "shop/job", 3); child != ctx {
		t.Error("a nil tracer has changed the context")
	} else {
		end("placed")
	}
}

func TestAttemptThatIsNotSampled(t *testing.T) {
	spans := &kept{}
	tracer := New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithSampler(sdktrace.NeverSample())), nil)
	plugins := &plugins{seen: map[string]trace.SpanID{}}
	schedule(tracer, &Framework{plugins, tracer}, tracer.Extender(&extender{}), st.MakePod().Name("p").UID("uid").Obj(), 1)
	if len(spans.spans) != 0 || len(tracer.attempts) != 0 {
		t.Errorf("%d spans, and %d attempts are kept", len(spans.spans), len(tracer.attempts))
	}
}

// discard is a processor without a cost.
type discard struct{}

func (discard) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (discard) OnEnd(s sdktrace.ReadOnlySpan)                   { s.Snapshot() }
func (discard) Shutdown(context.Context) error                  { return nil }
func (discard) ForceFlush(context.Context) error                { return nil }

// BenchmarkAttempt measures the cost of the spans of a pod that is bound by plugins that do nothing.
func BenchmarkAttempt(b *testing.B) {
	for name, sampler := range map[string]sdktrace.Sampler{"sampled": sdktrace.AlwaysSample(), "not sampled": sdktrace.NeverSample()} {
		b.Run(name, func(b *testing.B) {
			tracer := New(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(discard{}), sdktrace.WithSampler(sampler)), nil)
			pod := st.MakePod().Name("p").UID("uid").Obj()
			fwk := &Framework{&plugins{seen: map[string]trace.SpanID{}}, tracer}
			b.ReportAllocs()
			for i := 0; i < b.N; i++ {
				schedule(tracer, fwk, nil, pod, 1)
			}
		})
	}
}
