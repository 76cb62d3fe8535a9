// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	kubeschedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
)

func TestProbes(t *testing.T) {
	var served int32
	client := fake.NewSimpleClientset()
	client.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return atomic.LoadInt32(&served) == 0, nil, errors.New("not served")
	})
	factory := informers.NewSharedInformerFactory(client, 0)
	factory.Core().V1().Nodes().Informer()
	stop := make(chan struct{})
	defer close(stop)
	factory.Start(stop)
	handler := newHealthzAndMetricsHandler(&kubeschedulerconfig.KubeSchedulerConfiguration{}, factory, func() bool { return false })
	want := func(when string, healthy, ready int) {
		for path, want := range map[string]int{"/healthz": healthy, "/livez": healthy, "/readyz": ready} {
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
			if answer.Code != want {
				t.Errorf("%s %s: %d, want %d", path, when, answer.Code, want)
			}
		}
	}
	want("before the informers have synced", http.StatusOK, http.StatusInternalServerError)
	atomic.StoreInt32(&served, 1)
	factory.WaitForCacheSync(stop)
	want("after that", http.StatusOK, http.StatusOK)
}
