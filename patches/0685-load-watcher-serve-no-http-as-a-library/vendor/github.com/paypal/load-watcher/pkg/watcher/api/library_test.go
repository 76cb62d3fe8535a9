// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/paypal/load-watcher/pkg/watcher"
)

// TestLibraryClientServesNoHTTP creates two clients in one process, like two plugins.
func TestLibraryClientServesNoHTTP(t *testing.T) {
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		const result = `{"metric":{"instance":"node"},"value":[1600000000,"0.5"]}`
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`, result)
	}))
	defer prometheus.Close()
	for i := 0; i < 2; i++ {
		opts := watcher.MetricsProviderOpts{Name: watcher.PromClientName, Address: prometheus.URL}
		client, err := NewLibraryClient(opts)
		if err != nil {
			t.Fatal(err)
		}
		metrics, err := client.GetLatestWatcherMetrics()
		if err != nil || len(metrics.Data.NodeMetricsMap["node"].Metrics) == 0 {
			t.Errorf("client %d: metrics %v, error %v", i, metrics, err)
		}
	}
	request := httptest.NewRequest(http.MethodGet, watcher.BaseUrl, nil)
	if _, pattern := http.DefaultServeMux.Handler(request); pattern != "" {
		t.Errorf("the process serves %s", pattern)
	}
}
