// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

// faultRefresh is the refresh interval of the scheduler in these
// tests, and faultAge the maximum age of its measurements.
const (
	faultRefresh = time.Second
	faultAge     = 5 * time.Second
)

// everyResource are the resources of the scheduler.
var everyResource = []string{"cpu", "memory", "pressure"}

// faulty is a stand with one scheduler, which must survive all faults.
type faulty struct {
	*stand
	scheduler *localcluster.Scheduler
	process   int
}

func TestFaults(t *testing.T) {
	t.Parallel()
	s := &faulty{stand: newStand(t, &sharedByFaults)}
	s.scheduler = s.startScheduler(t, "kube-scheduler", s.configuration(t, "faults",
		profile(corev1.DefaultSchedulerName, s.args(faultRefresh, faultAge, builtIn("cpu"), builtIn("memory"), pressure()))))
	s.process = s.Processes()["kube-scheduler"]
	s.awaitFresh(t, s.scheduler, everyResource...)
	s.place(t, s.newPods(1, "", "100m"))

	t.Run("Prometheus is killed", s.killedPrometheus)
	// It is the last one because Prometheus finds the samples of a node's second exporter for minutes after its end.
	t.Run("exporters", s.exporterFaults)
}

// killedPrometheus stops all measurements. Broken answers, tokens and certificates are in the unit tests of package
// source.
func (s *faulty) killedPrometheus(t *testing.T) {
	s.prometheus.Kill()
	for _, resource := range everyResource {
		s.awaitMarks(t, resource, s.nodes, "too_old")
	}
	page := s.mustPage(t, s.scheduler)
	t.Logf("the source is %s: %s", page.state, page.problem)
	if page.state != "Down" || page.problem == "" {
		t.Errorf("the source is %q because of %q, want Down and a reason", page.state, page.problem)
	}
	s.awaitEvent(t, "NodeLoadMetricsDown")
	s.place(t, s.newPods(1, "", "100m"))
	s.prometheus.Start(t)
	s.awaitFresh(t, s.scheduler, everyResource...)
	s.works(t)
}

// reasons are the possible reasons why a resource of a node is missing, by resource.
type reasons map[string][]string

// all returns the same reasons for every resource.
func all(of ...string) reasons {
	these := reasons{}
	for _, resource := range everyResource {
		these[resource] = of
	}
	return these
}

// exporterFaults are different faults of some exporters, all at the same time.
func (s *faulty) exporterFaults(t *testing.T) {
	// gone has the possible reasons after an exporter has died: the mean ends at another time than the raw samples.
	gone := all("no_series", "no_timestamp", "too_old")
	otherPort := func(instance string) string { return strings.Replace(instance, ":9100", ":9101", 1) }
	tests := []struct {
		name string
		// fault returns the fault of the exporter of a node with an instance.
		fault func(instance string) fault
		// missed are the resources that are then missing, and why.
		missed reasons
		// lasts reports whether Prometheus still finds the old samples for minutes.
		lasts bool
	}{
		// The built-in queries merge the series of one instance; equal ones of two count as one.
		{"have another job with other values", func(string) fault { return fault{again: `job="other"`} },
			reasons{"pressure": {"ambiguous"}}, false},
		{"are two on one node", func(instance string) fault { return fault{again: fmt.Sprintf("instance=%q", otherPort(instance))} },
			all("ambiguous"), false},
		{"die", func(string) fault { return fault{down: true} }, gone, false},
		{"are called by another name", func(instance string) fault { return fault{instance: "renamed-" + instance} }, gone, false},
		{"have a clock that is an hour ahead", func(string) fault { return fault{clock: time.Hour} }, gone, false},
		{"have a clock that is an hour behind", func(string) fault { return fault{clock: -time.Hour} }, gone, false},
		// Prometheus looks back for five minutes and finds such samples, but they are too old for us and for a mean
		// over ten seconds. A series cannot go back in time, so another port makes it a new series.
		{"have a clock that is two minutes behind", func(instance string) fault {
			return fault{clock: -2 * time.Minute, instance: otherPort(instance)}
		}, reasons{"pressure": {"too_old", "no_series"}, "cpu": gone["cpu"], "memory": gone["memory"]}, true},
	}
	s.awaitFresh(t, s.scheduler, everyResource...)
	const each = 3
	victims, healthy := s.nodes[:each*len(tests)], s.nodes[each*len(tests):]
	for i, test := range tests {
		for _, node := range victims[each*i : each*(i+1)] {
			s.exporters.breaks(test.fault(s.instances[node]), node)
		}
	}
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, resource := range everyResource {
				s.awaitMarks(t, resource, victims[each*i:each*(i+1)], test.missed[resource]...)
			}
			s.place(t, s.newPods(1, "", "100m"))
		})
	}
	t.Run("exporters without a fault are measured", func(t *testing.T) {
		for _, resource := range everyResource {
			s.awaitMarks(t, resource, healthy)
		}
	})
	s.exporters.breaks(fault{}, victims...)
	for i, test := range tests {
		if test.lasts {
			continue
		}
		t.Run(test.name+" no more", func(t *testing.T) {
			for _, resource := range everyResource {
				s.awaitMarks(t, resource, victims[each*i:each*(i+1)])
			}
		})
	}
	t.Run("pods are placed by load again", s.works)
}

// awaitMarks waits until each of the nodes lacks a measurement of a
// resource for one of the reasons; without reasons, until each has one.
func (s *faulty) awaitMarks(t *testing.T, resource string, nodes []string, reasons ...string) {
	t.Helper()
	what := fmt.Sprintf("%d nodes, %s the first, to miss %s because of %q", len(nodes), nodes[0], resource, reasons)
	s.await(t, what, func() error {
		page, err := s.page(s.scheduler)
		if err != nil {
			return err
		}
		marks := page.marks(corev1.DefaultSchedulerName, resource)
		for _, node := range nodes {
			reason, marked := marks[node]
			if marked != (len(reasons) > 0) || marked && !slices.Contains(reasons, reason) {
				return fmt.Errorf("%s: %q (%d nodes are marked)", node, reason, len(marks))
			}
		}
		return nil
	})
}

// awaitEvent waits for an event about the source's state.
func (s *faulty) awaitEvent(t *testing.T, reason string) {
	t.Helper()
	s.await(t, "the event "+reason, func() error {
		events, err := s.Client().EventsV1().Events(metav1.NamespaceSystem).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("%d others", len(events.Items))
	})
}

// works waits until pods are placed by the measurements, and checks that the process is still the same.
func (s *faulty) works(t *testing.T) {
	t.Helper()
	s.await(t, "a pod to be placed by what is measured", func() error {
		was := s.sum(t, s.scheduler, fallbacks)
		s.place(t, s.newPods(1, "", "100m"))
		state, is := s.mustPage(t, s.scheduler).state, s.sum(t, s.scheduler, fallbacks)
		return cluster.Unless(state == "Fresh" && was == is,
			"the source is %q; fallback cycles: %v before, %v after", state, was, is)
	})
	if process := s.Processes()["kube-scheduler"]; process != s.process {
		t.Errorf("the scheduler has restarted: its process is %d, and was %d", process, s.process)
	}
}
