// SPDX-License-Identifier: Apache-2.0

package overcommit

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kube-scheduler-fork/test/cluster"
)

// TestQueries sends the scheduler's queries to a real Prometheus whose history has the series of kubelets' cAdvisor, and
// those of kube-state-metrics and of kube-scheduler that know overcommitting pods.
func TestQueries(t *testing.T) {
	t.Parallel()
	const system = 0.125
	// At half an hour, every step is the half of a wave.
	web, over := waves(0.5, 1.5), waves(0.375, 0.125)
	at, ended := origin(), -1890
	out := &strings.Builder{}
	for _, m := range []machine{
		{[][]cgroup{podCgroups("web", web, -past, future), podCgroups("over", over, -past, future)}, []string{`instance="10.0.0.1:10250"`}, -past},
		{[][]cgroup{podCgroups("ended", steady(2), -past, ended)}, []string{`instance="10.0.0.2:10250"`}, -past},
		{[][]cgroup{podCgroups("restarted", steady(0.75), -past, -1200, future)}, []string{`job="kubelet",instance="worker-3"`, `job="cadvisor",instance="worker-3"`}, -past},
		{nil, []string{`instance="10.0.0.4:10250"`}, -480},
		{nil, []string{`cluster="east",instance="10.0.0.5:10250"`}, -past},
		{[][]cgroup{podCgroups("busy", steady(1), -past, future)}, []string{`cluster="west",instance="10.0.0.5:10250"`}, -past},
		// At one step there are two samples of the container, and one of the root cgroup.
		{[][]cgroup{podCgroups("new", steady(0.5), -1510, future)}, []string{`instance="10.0.0.6:10250"`}, -1500},
		// The defaults of the Helm chart kube-prometheus-stack.
		{[][]cgroup{podCgroups("no-root", steady(0.25), -past, future), podCgroups("beside", steady(0.5), -past, future)}, []string{`instance="10.0.0.7:10250"`}, never},
	} {
		m.write(out, at, system)
	}
	for pod, to := range map[string]int{"over": future, "ended": ended} {
		write(out, fmt.Sprintf(`kube_pod_container_resource_requests{namespace="team",pod=%q,container="main",resource="overcommit_scheduler_millicpu"}`, pod), at, -past, to, steady(2000))
	}
	write(out, `kube_pod_resource_request{namespace="team",pod="no-root",resource="overcommit.scheduler/millicpu"}`, at, -past, future, steady(250))
	write(out, `node_time_seconds{instance="exporter"}`, at, -past, future, func(i int) float64 { return float64(at) + float64(i) })
	for cpu := range 2 {
		sum, idle := 0.0, waves(0.75, 0.25)
		write(out, fmt.Sprintf(`node_cpu_seconds_total{instance="exporter",cpu="%d",mode="idle"}`, cpu), at, -past, future, func(i int) float64 {
			defer func() { sum += idle(i) * tick }()
			return sum
		})
	}
	p := cluster.NewPrometheus(t)
	p.StartWith(t, out.String())
	expect := func(got map[string][]float64, key string, want float64) {
		// Two jobs have the same values.
		if values := slices.Compact(got[key]); len(values) != 1 || math.Abs(values[0]-want) > 1e-9 {
			t.Errorf("%s has the values %v, want %v", key, values, want)
		}
	}
	for horizon, young := range map[time.Duration]bool{30 * time.Minute: false, time.Hour: true} {
		ordinary := overSteps(horizon, func(i int) float64 { return system + web(i) })
		busy := overSteps(horizon, waves(0.25, 0.75))
		afterwards := overSteps(horizon, steady(system))
		if horizon == time.Hour {
			// The pod ran in 210 s of the window of 300 s, between the samples of 200 s: Prometheus extends the rate of its
			// container by a tick at the begin and by half a tick at the end, but the root cgroup has the whole window.
			afterwards[6] += 2 * (200.0/290 - 215.0/300)
		}
		got := answers(t, p, sentQueries(t, horizon, "Maximum", 3), at)
		for key, want := range map[string]float64{
			"0v 10.0.0.1:10250": mean(ordinary), "0d 10.0.0.1:10250": deviation(ordinary), "1v 10.0.0.1:10250": ordinary[0], "2v team/web": 1.5,
			"0t 10.0.0.1:10250": float64(at), "1t 10.0.0.1:10250": float64(at), "2t team/web": float64(at),
			"0v 10.0.0.2:10250": mean(afterwards), "0d 10.0.0.2:10250": deviation(afterwards), "1v 10.0.0.2:10250": system,
			"0v worker-3": system + 0.75, "0d worker-3": 0, "1v worker-3": system + 0.75, "2v team/restarted": 0.75,
			"0v 10.0.0.6:10250": system + 0.5, "0d 10.0.0.6:10250": 0, "1v 10.0.0.6:10250": system + 0.5,
			"0v 10.0.0.7:10250": 0.5, "0d 10.0.0.7:10250": 0, "1v 10.0.0.7:10250": 0.5,
		} {
			expect(got, key, want)
		}
		// Two clusters: the collector finds that the node has two uses.
		if values := got["0v 10.0.0.5:10250"]; len(values) != 2 || math.Abs(values[0]-values[1]) < 0.5 {
			t.Errorf("%v: the instance of two clusters has the values %v, want that of each", horizon, values)
		}
		if values := got["0v 10.0.0.4:10250"]; (len(values) == 0) != young {
			t.Errorf("%v: with eight minutes of history the mean is %v", horizon, values)
		}
		got = answers(t, p, sentQueries(t, horizon, "NSigma", 1), at)
		expect(got, "0v exporter", mean(busy))
		expect(got, "0d exporter", deviation(busy))
		expect(got, "0t exporter", float64(at))
		if len(got) != 3 {
			t.Errorf("%v without containers: the answers are %v, want three", horizon, got)
		}
	}
}

// overSteps returns the mean use at the steps of a horizon as Prometheus computes it, the newest first: the samples of a
// window are those after its beginning.
func overSteps(horizon time.Duration, use func(int) float64) (uses []float64) {
	step := int(horizon.Seconds()) / 12
	for at := 0; len(uses) < 12; at -= step {
		var during []float64
		for i := at - step + tick; i < at; i += tick {
			during = append(during, use(i))
		}
		uses = append(uses, mean(during))
	}
	return uses
}

func mean(values []float64) (mean float64) {
	for _, value := range values {
		mean += value / float64(len(values))
	}
	return mean
}

func deviation(values []float64) float64 {
	of, squares := mean(values), make([]float64, len(values))
	for i, value := range values {
		squares[i] = (value - of) * (value - of)
	}
	return math.Sqrt(mean(squares))
}

// proxy forwards the scheduler's queries to a Prometheus, and counts them.
type proxy struct {
	*httptest.Server
	mutex sync.Mutex
	sent  map[string]int
}

// newProxy returns a proxy; without a Prometheus, one with empty answers.
func newProxy(t *testing.T, prometheus string) *proxy {
	t.Helper()
	p, forward := &proxy{sent: map[string]int{}}, &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		to, err := url.Parse(prometheus)
		if err != nil {
			t.Error(err)
		}
		r.SetURL(to)
	}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		form, err := url.ParseQuery(string(body))
		if query := form.Get("query"); err == nil && strings.Contains(query, "nodeload_term") {
			p.mutex.Lock()
			p.sent[query]++
			p.mutex.Unlock()
		}
		if prometheus == "" {
			fmt.Fprint(w, `{"status": "success", "data": {"resultType": "vector", "result": []}}`)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

// queries returns the number of times that each query was sent.
func (p *proxy) queries() map[string]int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return maps.Clone(p.sent)
}

// sentQueries returns the queries that --validate-config sends, each once.
func sentQueries(t *testing.T, horizon time.Duration, predictor string, want int) map[string]int {
	t.Helper()
	p := newProxy(t, "")
	config := configuration(t, "", p.URL, fmt.Sprintf("horizon: %v, predictor: %s", horizon, predictor), "")
	// Without series it finds errors.
	output, _ := exec.CommandContext(t.Context(), cluster.Program(t, "KUBE_SCHEDULER"), "--config="+config, "--validate-config").CombinedOutput()
	sent := p.queries()
	for query, count := range sent {
		if count != 1 {
			t.Errorf("the query was sent %d times: %s", count, query)
		}
	}
	if len(sent) != want {
		t.Fatalf("%d queries were sent, want %d; next: see what the scheduler says:\n%s", len(sent), want, output)
	}
	return sent
}

// answers returns the values of Prometheus' answers, each by its term and its node or pod.
func answers(t *testing.T, p *cluster.Prometheus, queries map[string]int, at int64) map[string][]float64 {
	t.Helper()
	found := map[string][]float64{}
	for query := range queries {
		for _, series := range p.Query(t, query, float64(at)) {
			name := series.Metric["instance"]
			if pod := series.Metric["pod"]; pod != "" {
				name = series.Metric["namespace"] + "/" + pod
			}
			key := series.Metric["nodeload_term"] + " " + name
			found[key] = append(found[key], series.Value.Number())
		}
	}
	return found
}
