// SPDX-License-Identifier: Apache-2.0

package waitingtime

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

func TestObserve(t *testing.T) {
	pod := st.MakePod().Name("p").Obj()
	pod.Spec.PriorityClassName = "urgent"
	Observe(pod, time.Now().Add(-20*time.Second))
	Observe(st.MakePod().Name("without-class").Obj(), time.Now())
	got := gather(t, legacyregistry.DefaultGatherer)
	if urgent := got["urgent"]; urgent.pods != 1 || urgent.seconds < 20 {
		t.Errorf("urgent: %+v, want 1 pod that waited for 20 s or more", urgent)
	}
	if none := got[noClass]; none.pods != 1 || none.seconds >= 20 {
		t.Errorf("%s: %+v, want 1 pod that waited for less than 20 s", noClass, none)
	}
}

// The first 32 classes keep their own series, and all others share one.
func TestSeriesAreLimited(t *testing.T) {
	h, registry := newHistogram(), metrics.NewKubeRegistry()
	registry.MustRegister(h.seconds)
	observe := func(class int) { h.observe(fmt.Sprint("class-", class), time.Second) }
	for class := 0; class < maxClasses; class++ {
		observe(class)
	}
	plugintest.InParallel(1000, func(i int) { observe(maxClasses + i) })
	observe(0)
	h.observe("", time.Second)

	got := gather(t, registry)
	if len(got) != maxClasses+2 {
		t.Errorf("%d label values, want %d classes, %s and %s", len(got), maxClasses, noClass, otherClasses)
	}
	for class, want := range map[string]uint64{"class-0": 2, "class-31": 1, otherClasses: 1000, noClass: 1} {
		if got[class].pods != want {
			t.Errorf("%s: %d pods, want %d", class, got[class].pods, want)
		}
	}
	for _, label := range []string{noClass, otherClasses} {
		if len(validation.IsDNS1123Subdomain(label)) == 0 {
			t.Errorf("a PriorityClass can have the name %s", label)
		}
	}
}

type waited struct {
	pods    uint64
	seconds float64
}

// gather returns the histogram by label value.
func gather(t *testing.T, gatherer metrics.Gatherer) map[string]waited {
	t.Helper()
	families, err := gatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	classes := map[string]waited{}
	for _, family := range families {
		if family.GetName() != "scheduler_pod_waiting_duration_seconds" {
			continue
		}
		for _, metric := range family.GetMetric() {
			value := metric.GetHistogram()
			classes[metric.GetLabel()[0].GetValue()] = waited{value.GetSampleCount(), value.GetSampleSum()}
		}
	}
	return classes
}
