// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/paypal/load-watcher/pkg/watcher"
)

// TestLibraryClientWithHangingProvider creates a client while Prometheus accepts requests and answers none. A start
// that waited for the first request of each of the three windows to fail would send more requests.
func TestLibraryClientWithHangingProvider(t *testing.T) {
	made := make(chan struct{})
	var questions int32
	prometheus := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		atomic.AddInt32(&questions, 1)
		<-made
	}))
	defer prometheus.Close()
	defer close(made)
	opts := watcher.MetricsProviderOpts{Name: watcher.PromClientName, Address: prometheus.URL}
	if _, err := NewLibraryClient(opts); err != nil {
		t.Fatal(err)
	}
	if asked := atomic.LoadInt32(&questions); asked > 3 {
		t.Errorf("the start waited for %d requests, although the first was not answered", asked)
	}
}
