// SPDX-License-Identifier: Apache-2.0

package unsynced

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/version"
	discoveryfake "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
	testingclock "k8s.io/utils/clock/testing"
)

const silent = 0

// A minute passes at each report: the server steps the clock when it is asked for the resource.
func TestInformersThatDoNotSync(t *testing.T) {
	const pods, capacities = "/api/v1/pods", "/apis/storage.k8s.io/v1beta1/csistoragecapacities"
	always := func(code int) []int { return []int{code} }
	for _, tt := range []struct {
		name, path string
		// answers are those to the reports; the last one is repeated.
		answers []int
		timeout time.Duration
		// wantExit is the minute of the exit, or 0: the test then ends after ten minutes.
		wantExit int
		wantText []string
	}{
		{"a version that is not served", capacities, always(404), 5 * time.Minute, 6, []string{
			"csistoragecapacities.storage.k8s.io cannot be read in [storage.k8s.io/v1 storage.k8s.io/v1beta1]", "kube-apiserver v1.37.2", "could not find", "--feature-gates=CSIStorageCapacity=false"}},
		{"no permission", pods, always(403), 5 * time.Minute, 6, []string{
			"pods cannot be read in [v1], so nothing is scheduled: a LIST from kube-apiserver v1.37.2 ends with", `{apiGroups: [""], resources: ["pods"], verbs: [get, list, watch]}`}},
		{"no such resource", pods, always(404), 2 * time.Minute, 3, []string{"disable the plugins"}},
		{"no credentials", pods, always(401), 5 * time.Minute, 6, []string{"renew the credentials"}},
		{"a refusal without a limit", pods, always(404), 0, 0, nil},
		{"a server that does not answer", pods, always(silent), 5 * time.Minute, 0, []string{"check kube-apiserver"}},
		{"a busy server", pods, always(429), 5 * time.Minute, 0, nil},
		{"a server that starts", pods, always(503), 5 * time.Minute, 0, nil},
		{"an answer that the reflector cannot use", pods, always(200), 5 * time.Minute, 0, []string{"200 OK", "reflector"}},
		{"refusals that do not follow one another", pods, []int{404, 404, 404, 404, 503, 404}, 5 * time.Minute, 0, nil},
		{"refusals after a silence", pods, []int{silent, 404}, 5 * time.Minute, 7, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			log := plugintest.CaptureLog(t)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			clock := testingclock.NewFakeClock(time.Now())
			var minute int32
			var gauges atomic.Value
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
				if request.URL.Path == "/version" {
					fmt.Fprint(w, `{"gitVersion": "v1.37.2"}`)
					return
				}
				code := http.StatusInternalServerError // for reflectors
				if request.URL.Query().Get("limit") == "1" {
					report := int(atomic.LoadInt32(&minute))
					if report >= len(tt.answers) {
						report = len(tt.answers) - 1
					}
					code = tt.answers[report]
				}
				if code != http.StatusInternalServerError && request.URL.Path == tt.path {
					gauges.Store(unsyncedNow(t))
					if atomic.AddInt32(&minute, 1) == 10 {
						cancel()
					}
					clock.Step(period)
				}
				if code == silent {
					panic(http.ErrAbortHandler)
				}
				w.WriteHeader(code)
			}))
			defer server.Close()
			// net/http repeats a request on a connection that it used before.
			client := kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL, QPS: -1, Transport: &http.Transport{DisableKeepAlives: true}})
			factory := informers.NewSharedInformerFactory(client, 0)
			resource := "pods"
			if tt.path == pods {
				factory.Core().V1().Pods().Informer()
			} else {
				resource = "csistoragecapacities.storage.k8s.io"
				factory.Storage().V1beta1().CSIStorageCapacities().Informer()
			}
			factory.Start(ctx.Done())
			go func() {
				for !clock.HasWaiters() {
					runtime.Gosched()
				}
				clock.Step(period)
			}()
			err := Wait{Client: client, Informers: factory, Timeout: tt.timeout, Clock: clock}.Until(ctx)
			if got := int(atomic.LoadInt32(&minute)); tt.wantExit == 0 && err != nil || tt.wantExit > 0 && (err == nil || got != tt.wantExit) {
				t.Fatalf("minute %d: error %v, want an exit in minute %d", got, err, tt.wantExit)
			}
			for _, want := range tt.wantText {
				if tt.wantExit > 0 && !strings.Contains(err.Error(), want) || !log.Contains(strings.Trim(strconv.Quote(want), `"`)) {
					t.Errorf("error %v, want it and the log to have %q", err, want)
				}
			}
			if got := gauges.Load(); got != resource || unsyncedNow(t) != "" {
				t.Errorf("the gauge was for %q, then for %q, want %q and none", got, unsyncedNow(t), resource)
			}
		})
	}
}

// unsyncedNow returns the resources of the gauge.
func unsyncedNow(t *testing.T) string {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Error(err)
	}
	var resources []string
	for _, family := range families {
		if family.GetName() == "scheduler_informer_unsynced" {
			for _, metric := range family.Metric {
				resources = append(resources, metric.Label[0].GetValue())
			}
		}
	}
	return strings.Join(resources, " ")
}

func TestUntilInformersHaveSynced(t *testing.T) {
	factory := informers.NewSharedInformerFactory(fake.NewSimpleClientset(), 0)
	pods := factory.Core().V1().Pods().Informer()
	stop := make(chan struct{})
	defer close(stop)
	factory.Start(stop)
	wait := Wait{Client: fake.NewSimpleClientset(), Informers: factory, Clock: testingclock.NewFakeClock(time.Now())}
	if err := wait.Until(context.Background()); err != nil || !pods.HasSynced() {
		t.Errorf("error %v, synced: %v", err, pods.HasSynced())
	}
}

func TestOlderServer(t *testing.T) {
	for of, want := range map[string]bool{
		"v1.22.17": true, "v1.22.17-eks-0123": true, "v1.9.0": true, "v1.23.0": false, "v1.23.0-rc.1": false, "v1.37.2": false, "v2.0.0": false, "dev": false, "": false,
	} {
		t.Run(of, func(t *testing.T) {
			log := plugintest.CaptureLog(t)
			client := fake.NewSimpleClientset()
			client.Discovery().(*discoveryfake.FakeDiscovery).FakedServerVersion = &version.Info{GitVersion: of}
			logOlder(client)
			if got := log.Contains(`"The API server is older than this scheduler: not supported" apiServer="` + of + `"`); got != want {
				t.Errorf("logged: %v, want %v", got, want)
			}
		})
	}
}
