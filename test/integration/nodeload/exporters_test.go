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

// exporterCPUs is how many CPUs an exporter says that its node has. It has nothing to do with those of the API's node:
// what is measured is the share that is busy.
const exporterCPUs = 4

// exporters are what Prometheus scrapes: one for each node, with series of node_exporter and of NVIDIA's, and a gauge
// of our own. The test says what they say.
type exporters struct {
	server *httptest.Server
	of     map[string]*exporter
}

// exporter is that of one node.
type exporter struct {
	mutex sync.Mutex
	// node is the name of the node.
	node string
	// instance is what it is scraped as.
	instance string
	// busy is the share of its CPUs that is busy since since; idleSeconds and busySeconds are what had been counted
	// then, by each of the CPUs.
	busy                     float64
	since                    time.Time
	idleSeconds, busySeconds float64
	fault                    fault
}

// fault is what is wrong with an exporter; the zero value is nothing.
type fault struct {
	// down closes each connection without an answer.
	down bool
	// pressure is what the gauge is instead of the busy share, as a line of the text format has it.
	pressure string
	// instance renames the exporter: the label that would else be that of the target.
	instance string
	// again exposes every series once more with these labels, such as job="other": what a second exporter or a second
	// scrape of the same one would do.
	again string
	// clock is how far its clock is off. It sends timestamps then, which else are Prometheus' own.
	clock time.Duration
}

// newExporters starts an exporter for each node, with its CPUs idle but for a tenth. An instance is what
// node_exporter's usually are: an address of the node, and a port.
func newExporters(t *testing.T, instances map[string]string) *exporters {
	t.Helper()
	e := &exporters{of: map[string]*exporter{}}
	began := time.Now()
	for node, instance := range instances {
		e.of[node] = &exporter{node: node, instance: instance, busy: 0.1, since: began}
	}
	e.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		exporter, known := e.of[strings.TrimPrefix(r.URL.Path, "/metrics/")]
		if !known {
			http.NotFound(w, r)
			return
		}
		exporter.serve(w)
	}))
	e.server.Config.ErrorLog = log.New(io.Discard, "", 0) // it would log each connection that is cut
	e.server.Start()
	t.Cleanup(e.server.Close)
	return e
}

// address is where they are scraped, each at /metrics/NODE.
func (e *exporters) address() string { return e.server.Listener.Addr().String() }

// load sets the share of the CPUs that is busy on some nodes, 0 to 1.
func (e *exporters) load(busy float64, nodes ...string) {
	for _, node := range nodes {
		exporter := e.of[node]
		exporter.mutex.Lock()
		exporter.count(time.Now())
		exporter.busy = busy
		exporter.mutex.Unlock()
	}
}

// breaks makes something be wrong with the exporters of some nodes; with the zero fault they work again.
func (e *exporters) breaks(fault fault, nodes ...string) {
	for _, node := range nodes {
		exporter := e.of[node]
		exporter.mutex.Lock()
		exporter.fault = fault
		exporter.mutex.Unlock()
	}
}

// count brings the counters up to now.
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
		// The server closes the connection and says nothing.
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
		series = append(series, e.series(e.fault.again, now)...)
	}
	fmt.Fprintln(w, strings.Join(series, "\n"))
}

// serveResources serves what kubelet says of a node that uses its CPUs as the exporter says. Half as large a share of
// the memory is in use, so one is not taken for the other.
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

// series gives the lines of all series, with more labels than they have themselves.
func (e *exporter) series(labels string, now time.Time) []string {
	const memory = 64 << 30
	pressure := e.fault.pressure
	if pressure == "" {
		pressure = fmt.Sprint(e.busy)
	}
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
	line(pressureSeries, "", pressure)
	// As NVIDIA's exporter says it, with the node in a label of its own.
	line("DCGM_FI_DEV_GPU_UTIL", fmt.Sprintf("gpu=\"0\",Hostname=%q", e.node), fmt.Sprint(100*e.busy))
	return lines
}
