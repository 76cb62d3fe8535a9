// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// exporterCPUs is the number of CPUs of a node according to its exporter. It is
// independent of the CPUs of the API's node: only the busy share is measured.
const exporterCPUs = 4

// exporters are the targets that Prometheus scrapes: one for each node, with series of node_exporter and of NVIDIA's
// exporter, and a gauge of our own. The test sets their values.
type exporters struct {
	server *httptest.Server
	of     map[string]*exporter
}

// exporter is the exporter of one node.
type exporter struct {
	mutex sync.Mutex
	// node is the name of the node.
	node string
	// busy is the busy share of its CPUs since the time since; idleSeconds
	// and busySeconds are the counters of each CPU at that time.
	busy                     float64
	since                    time.Time
	idleSeconds, busySeconds float64
	fault                    fault
}

// fault is a fault of an exporter; the zero value is none.
type fault struct {
	// down closes each connection without an answer.
	down bool
	// instance renames the exporter: it replaces the target's label.
	instance string
	// again exposes every series a second time with these labels, such as
	// job="other", like a second exporter, whose machine is idle when this one is busy.
	again string
	// clock is the error of its clock. It then sends timestamps; otherwise Prometheus sets them.
	clock time.Duration
}

// newExporters starts the exporters of targets, with a tenth of their CPUs busy.
func newExporters(t *testing.T, targets []target) *exporters {
	t.Helper()
	e := &exporters{of: map[string]*exporter{}}
	began := time.Now()
	for _, target := range targets {
		e.of[target.exporter] = &exporter{node: target.exporter, busy: 0.1, since: began}
	}
	e.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		exporter, known := e.of[strings.TrimPrefix(r.URL.Path, "/metrics/")]
		if !known {
			http.NotFound(w, r)
			return
		}
		exporter.serve(w)
	}))
	e.server.Config.ErrorLog = log.New(io.Discard, "", 0) // it would log each closed connection
	e.server.Start()
	t.Cleanup(e.server.Close)
	return e
}

// address returns the host and port of the exporters, each at /metrics/NODE.
func (e *exporters) address() string { return e.server.Listener.Addr().String() }

// load sets the busy share of the CPUs of some nodes, 0 to 1.
func (e *exporters) load(busy float64, nodes ...string) {
	for _, node := range nodes {
		exporter := e.of[node]
		exporter.mutex.Lock()
		exporter.count(time.Now())
		exporter.busy = busy
		exporter.mutex.Unlock()
	}
}

// breaks sets the fault of the exporters of some nodes; with the zero fault they work again.
func (e *exporters) breaks(fault fault, nodes ...string) {
	for _, node := range nodes {
		exporter := e.of[node]
		exporter.mutex.Lock()
		exporter.fault = fault
		exporter.mutex.Unlock()
	}
}

// count updates the counters to the current time.
func (e *exporter) count(now time.Time) {
	seconds := now.Sub(e.since).Seconds()
	e.idleSeconds += seconds * (1 - e.busy)
	e.busySeconds += seconds * e.busy
	e.since = now
}

func (e *exporter) serve(w http.ResponseWriter) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.fault.down {
		// The server closes the connection without an answer.
		panic(http.ErrAbortHandler)
	}
	now := time.Now()
	e.count(now)
	var labels string
	if e.fault.instance != "" {
		labels = fmt.Sprintf("instance=%q", e.fault.instance)
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	series := e.series(labels, now)
	if e.fault.again != "" {
		other := &exporter{node: e.node, busy: 1 - e.busy, idleSeconds: e.busySeconds, busySeconds: e.idleSeconds, fault: e.fault}
		series = append(series, other.series(e.fault.again, now)...)
	}
	fmt.Fprintln(w, strings.Join(series, "\n"))
}

// serveResources serves kubelet's resource metrics for a node that uses its CPUs as the exporter says. The memory in
// use is half as large a share, to tell the two apart.
func (e *exporter) serveResources(w http.ResponseWriter, capacity corev1.ResourceList) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	now := time.Now()
	e.count(now)
	for name, value := range map[string]float64{
		"node_cpu_usage_seconds_total":  e.busySeconds * capacity.Cpu().AsApproximateFloat64(),
		"node_memory_working_set_bytes": e.busy / 2 * capacity.Memory().AsApproximateFloat64(),
	} {
		fmt.Fprintf(w, "%s %f %d\n", name, value, now.UnixMilli())
	}
}

// series returns the lines of all series, with additional labels.
func (e *exporter) series(labels string, now time.Time) []string {
	const memory = 64 << 30
	var when string
	if e.fault.clock != 0 {
		when = fmt.Sprintf(" %d", now.Add(e.fault.clock).UnixMilli())
	}
	var lines []string
	line := func(name, own, value string) {
		all := strings.Trim(own+","+labels, ",")
		lines = append(lines, fmt.Sprintf("%s{%s} %s%s", name, all, value, when))
	}
	for cpu := range exporterCPUs {
		for mode, seconds := range map[string]float64{"idle": e.idleSeconds, "user": e.busySeconds, "system": 0, "iowait": 0} {
			line("node_cpu_seconds_total", fmt.Sprintf("cpu=\"%d\",mode=%q", cpu, mode), fmt.Sprint(seconds))
		}
	}
	line("node_time_seconds", "", fmt.Sprintf("%.3f", float64(now.Add(e.fault.clock).UnixMilli())/1000))
	line("node_memory_MemTotal_bytes", "", fmt.Sprint(memory))
	line("node_memory_MemAvailable_bytes", "", fmt.Sprint(memory*(1-e.busy)))
	line(pressureSeries, "", fmt.Sprint(e.busy))
	// As in NVIDIA's exporter, with the node in a separate label.
	line("DCGM_FI_DEV_GPU_UTIL", fmt.Sprintf("gpu=\"0\",Hostname=%q", e.node), fmt.Sprint(100*e.busy))
	return lines
}
