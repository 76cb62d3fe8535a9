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

// metricsPath is what kubectl top reads, too.
const metricsPath = "/apis/metrics.k8s.io/v1beta1/nodes"

// metricsTimeout bounds a request.
const metricsTimeout = 10 * time.Second

// MetricsServer asks the resource metrics API for what nodes use, in cores and bytes.
type MetricsServer struct {
	client rest.Interface
	// window is the longest that a mean may be over.
	window time.Duration
	now    func() time.Time
}

// NewMetricsServer makes a source of the API server that a client is of. window is the least of the windows by which
// pods are accounted for.
func NewMetricsServer(client rest.Interface, window time.Duration) *MetricsServer {
	return &MetricsServer{client: client, window: window, now: time.Now}
}

// MetricsQuery asks for one of the resources that the API has: cpu or memory.
func MetricsQuery(name string) Query { return Query{Name: name, Value: name, Timestamp: "timestamp"} }

// Close does nothing: the connections are the client's.
func (m *MetricsServer) Close() {}

// nodeMetrics is what is read of the API's NodeMetricsList.
type nodeMetrics struct {
	Items []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		// Timestamp is the end of the time that the mean is over, and Window how long that was.
		Timestamp metav1.Time     `json:"timestamp"`
		Window    metav1.Duration `json:"window"`
		Usage     v1.ResourceList `json:"usage"`
	} `json:"items"`
}

// Ask is Client.Ask with one request for everything. Each row's label is the node's name. The API does not say what
// time it is there, so the times of samples are held against this process' clock.
func (m *MetricsServer) Ask(ctx context.Context, _ string, queries []Query, row Row) (Result, error) {
	bounded, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	result := Result{Endpoint: "metrics.k8s.io", Requests: 1, Asked: m.now()}
	// The client of a scheduler prefers protobuf.
	answer := m.client.Get().AbsPath(metricsPath).SetHeader("Accept", "application/json").Do(bounded)
	if err := answer.Error(); err != nil {
		return result, fmt.Errorf("%s: %s; next: see that kubectl top nodes works, and that the scheduler may list "+
			"nodes of the API group metrics.k8s.io", metricsPath, clip(err.Error()))
	}
	var list nodeMetrics
	body, _ := answer.Raw()
	if err := json.Unmarshal(body, &list); err != nil {
		return result, errors.New(metricsPath + ": the answer is no NodeMetricsList; next: see what serves the API " +
			"group: kubectl get apiservices v1beta1.metrics.k8s.io")
	}
	result.Received, result.Bytes, result.Evaluated = m.now(), int64(len(body)), seconds(result.Asked)
	longest := time.Duration(0)
	for i := range list.Items {
		item := &list.Items[i]
		if item.Window.Duration > longest {
			longest = item.Window.Duration
		}
		for slot := range queries {
			usage, known := item.Usage[v1.ResourceName(queries[slot].Value)]
			if !known {
				continue
			}
			row(slot, Value, []byte(item.Metadata.Name), usage.AsApproximateFloat64())
			result.Series++
			if !item.Timestamp.IsZero() {
				row(slot, Timestamp, []byte(item.Metadata.Name), seconds(item.Timestamp.Time))
				result.Series++
			}
		}
	}
	if longest > m.window {
		result.warn(fmt.Sprintf("metrics are means over up to %v, and new pods are taken to show in full after %v; "+
			"next: set window to %v or more", longest, m.window, longest))
	}
	return result, nil
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }
