// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// Prometheus is a real Prometheus, the program of the variable PROMETHEUS. It can be killed and started again.
type Prometheus struct {
	// Folder is the directory of its configuration and the files that this names.
	Folder string
	// Flags are further ones of its program.
	Flags            []string
	program, address string
	// stop stops the process, and returns when it has ended; nil while none runs.
	stop func()
}

// NewPrometheus returns a Prometheus that is not started yet. It keeps its port
// over restarts, on a loopback address whose ports no other program takes.
func NewPrometheus(t testing.TB) *Prometheus {
	t.Helper()
	p := &Prometheus{program: Program(t, "PROMETHEUS"), Folder: t.TempDir(), address: FreeAddress(t, "127.0.0.2")}
	t.Cleanup(p.Kill)
	return p
}

// ServeLoads starts a Prometheus, the program of the variable PROMETHEUS, with the load of the fake nodes, at a URL.
func (c *Cluster) ServeLoads(t testing.TB, endpoint string) {
	t.Helper()
	prometheus, err := c.StartPrometheus(t.Context(), Program(t, "PROMETHEUS"), endpoint)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := prometheus.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// FreeAddress returns an address of a host with a port that is free at the moment.
func FreeAddress(t testing.TB, host string) string {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// URL returns its URL.
func (p *Prometheus) URL() string { return "http://" + p.address }

// Series is a series in an answer of Prometheus: of a vector with Value, of a matrix with Values.
type Series struct {
	Metric map[string]string
	Value  Point
	Values []Point
}

// Point has the time in seconds, and the value.
type Point [2]json.Number

// Seconds returns the time.
func (p Point) Seconds() float64 { f, _ := p[0].Float64(); return f } // decoding has checked that it is a number

// Number returns the value.
func (p Point) Number() float64 { f, _ := p[1].Float64(); return f }

// Query returns Prometheus' answer to a query at a time, in seconds.
func (p *Prometheus) Query(t testing.TB, query string, at float64) []Series {
	t.Helper()
	var data struct{ Result []Series }
	p.Ask(t, "query", url.Values{"query": {query}, "time": {fmt.Sprintf("%.3f", at)}}, &data)
	return data.Result
}

// Ask sends a request to Prometheus' API that must succeed, and decodes the data of the answer.
func (p *Prometheus) Ask(t testing.TB, path string, form url.Values, data any) {
	t.Helper()
	response, err := http.Get(p.URL() + "/api/v1/" + path + "?" + form.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s %v: %v %s %s", path, form, err, answer.Status, answer.Error)
	}
}

// LogFile returns the path of its log.
func (p *Prometheus) LogFile() string { return p.file("prometheus.log") }

func (p *Prometheus) file(name string) string { return filepath.Join(p.Folder, name) }

// Configure writes its configuration.
func (p *Prometheus) Configure(t testing.TB, config map[string]any) {
	t.Helper()
	content, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	Write(t, p.file("config.yaml"), string(content))
}

// StartWith starts it with samples of the past, in the format OpenMetrics, and without targets.
func (p *Prometheus) StartWith(t testing.TB, samples string) {
	t.Helper()
	Write(t, p.file("samples"), samples+"# EOF\n")
	if output, err := exec.CommandContext(t.Context(), Program(t, "PROMTOOL"), "tsdb", "create-blocks-from", "openmetrics",
		p.file("samples"), p.file("data")).CombinedOutput(); err != nil {
		t.Fatalf("promtool: %v\n%s", err, output)
	}
	p.Configure(t, map[string]any{})
	p.Start(t)
}

// Start starts it and waits until it answers.
func (p *Prometheus) Start(t testing.TB) {
	t.Helper()
	p.stop = StartServer(t, p.LogFile(), p.URL()+"/-/ready", p.program, append([]string{"--config.file=" + p.file("config.yaml"),
		"--storage.tsdb.path=" + p.file("data"), "--web.listen-address=" + p.address, "--log.level=warn"}, p.Flags...)...)
}

// Kill kills it, like a crash, if it runs.
func (p *Prometheus) Kill() {
	if p.stop != nil {
		p.stop()
		p.stop = nil
	}
}
