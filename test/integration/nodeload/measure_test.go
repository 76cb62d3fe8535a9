// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kube-scheduler-fork/test/cluster"
)

// What the other tests stand on: loads that the exporters are told are what Prometheus answers, and the proxy does to
// the answers what it says it does.
func TestPrometheusAnswersWhatTheExportersAreToldAndTheProxyWhatTheTestWants(t *testing.T) {
	t.Parallel()
	var nodes []*corev1.Node
	for i := range 20 {
		nodes = append(nodes, newNode(i))
	}
	s := newMeasuredStand(t, nodes)
	hot, mute := s.nodes[:10], s.nodes[10]
	s.exporters.load(0.9, hot...)
	s.exporters.breaks(fault{pressure: "NaN"}, mute)
	ask := func(query string) (map[string]float64, float64, error) { return s.ask(t, query) }

	s.await(t, "the loads", func() error {
		cpu, _, err := ask(`1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[5s]))`)
		if err != nil {
			return err
		}
		pressure, _, err := ask(pressureSeries)
		if err != nil {
			return err
		}
		for i, node := range s.nodes {
			instance, want := s.instances[node], 0.1
			if i < len(hot) {
				want = 0.9
			}
			if got, known := cpu[instance]; !known || math.Abs(got-want) > 0.1 {
				return fmt.Errorf("%s: CPU %v (%t), want %v", node, got, known, want)
			}
			if got, known := pressure[instance]; !known || math.IsNaN(got) != (node == mute) || got > want+1e-9 {
				return fmt.Errorf("%s: pressure %v (%t), want %v", node, got, known, want)
			}
		}
		return nil
	})

	s.proxy.behave(shifts(time.Hour, time.Hour))
	s.await(t, "times that are an hour ahead", func() error {
		times, evaluated, err := ask("timestamp(" + pressureSeries + ")")
		if err != nil {
			return err
		}
		ahead := time.Now().Add(time.Hour)
		for _, got := range []float64{evaluated, times[s.instances[mute]]} {
			if at := time.Unix(int64(got), 0); at.Sub(ahead).Abs() > cluster.Patience {
				return fmt.Errorf("evaluated at %f, scraped at %f, want about %s", evaluated, times[s.instances[mute]], ahead)
			}
		}
		return nil
	})
	s.proxy.rotateToken("another")
	if _, _, err := ask("up"); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("with a token that is not valid any more: %v", err)
	}
	s.write(t, "token", "another")
	s.proxy.behave(answers100MB)
	if series, _, err := ask("up"); err != nil || len(series) != 1 {
		t.Errorf("100 MB: %d nodes, %v", len(series), err)
	}
	s.proxy.behave(passes)
	next := s.proxy.rotateCertificate(t)
	s.proxy.server.CloseClientConnections()
	if _, _, err := ask("up"); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("with an authority that is not trusted: %v", err)
	}
	s.write(t, "ca.crt", string(next))
	s.prometheus.Kill()
	if _, _, err := ask("up"); err == nil || !strings.Contains(err.Error(), "EOF") {
		t.Errorf("without Prometheus: %v", err)
	}
	s.prometheus.Start(t)
	if _, _, err := ask("up"); err != nil {
		t.Error(err)
	}
}

// ask asks Prometheus by the proxy, with the files that the scheduler would use, and gives the values by the label
// instance and the time of the answer.
func (s *stand) ask(t *testing.T, query string) (map[string]float64, float64, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(cluster.Read(t, s.file("ca.crt"))))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.proxy.url()+"/api/v1/query",
		strings.NewReader(url.Values{"query": {query}}.Encode()))
	if err != nil {
		return nil, 0, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Authorization", "Bearer "+cluster.Read(t, s.file("token")))
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, 0, fmt.Errorf("%s", response.Status)
	}
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, 0, err
	}
	values, evaluated := map[string]float64{}, 0.0
	for _, row := range answer.Data.Result {
		if values[row.Metric["instance"]], err = strconv.ParseFloat(row.Value[1].(string), 64); err != nil {
			return nil, 0, err
		}
		evaluated = row.Value[0].(float64)
	}
	return values, evaluated, nil
}
