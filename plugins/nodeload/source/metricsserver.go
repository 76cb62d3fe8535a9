// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

const (
	// metricsPath is the path that kubectl top also reads.
	metricsPath = "/apis/metrics.k8s.io/v1beta1/nodes"
	// metricsTimeout is the timeout of a request.
	metricsTimeout = 10 * time.Second
)

// MetricsServer asks the resource metrics API for the usage of nodes, in cores and bytes.
type MetricsServer struct {
	client rest.Interface
	// window is the maximum window of a mean.
	window time.Duration
	now    func() time.Time
}

// NewMetricsServer returns a source that asks the API server of a client. window is the shortest window of the
// profile's resources.
func NewMetricsServer(client rest.Interface, window time.Duration) *MetricsServer {
	return &MetricsServer{client: client, window: window, now: time.Now}
}

// MetricsQuery returns the query for a resource of the API: cpu or memory.
func MetricsQuery(name string) Query {
	return Query{Name: name, Label: "name", Value: name, Timestamp: "timestamp"}
}

// Close does nothing: the connections are the client's.
func (m *MetricsServer) Close() {}

// nodeMetrics has the fields of the API's NodeMetricsList that are read.
type nodeMetrics struct {
	Items []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		// Timestamp is the end of the window of the mean, and Window its length.
		Timestamp metav1.Time     `json:"timestamp"`
		Window    metav1.Duration `json:"window"`
		Usage     v1.ResourceList `json:"usage"`
	} `json:"items"`
}

// Ask sends one request for everything. Each row's label is the node's name. The API does not report its own time, so
// the ages of samples are by this process' clock.
func (m *MetricsServer) Ask(ctx context.Context, queries []Query) (Result, error) {
	bounded, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	result := Result{Endpoint: "metrics.k8s.io", Requests: 1, Asked: m.now()}
	// The scheduler's client prefers protobuf.
	answer := m.client.Get().AbsPath(metricsPath).SetHeader("Accept", "application/json").Do(bounded)
	if err := answer.Error(); err != nil {
		return result, fmt.Errorf("%s: %s; next: check that kubectl top nodes works, and that the scheduler may list "+
			"nodes of the API group metrics.k8s.io", metricsPath, clip(err.Error()))
	}
	var list nodeMetrics
	body, _ := answer.Raw()
	if err := json.Unmarshal(body, &list); err != nil {
		return result, errors.New(metricsPath + ": the answer is not a NodeMetricsList; next: check which server " +
			"provides the API group: kubectl get apiservices v1beta1.metrics.k8s.io")
	}
	result.Received, result.Bytes, result.Evaluated = m.now(), int64(len(body)), seconds(result.Asked)
	longest := time.Duration(0)
	for i := range list.Items {
		item := &list.Items[i]
		if item.Window.Duration > longest {
			longest = item.Window.Duration
		}
		for query := range queries {
			usage, known := item.Usage[v1.ResourceName(queries[query].Value)]
			if !known {
				continue
			}
			add := func(kind Kind, value float64) {
				result.Rows = append(result.Rows, Row{Query: query, Kind: kind, Label: item.Metadata.Name, Value: value})
			}
			add(Value, usage.AsApproximateFloat64())
			if !item.Timestamp.IsZero() {
				add(Timestamp, seconds(item.Timestamp.Time))
			}
		}
	}
	if longest > m.window {
		result.warn(fmt.Sprintf("metrics are means over up to %v, but new pods are assumed to be fully included after %v; "+
			"next: set window to %v or more", longest, m.window, longest))
	}
	return result, nil
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }
