// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"kube-scheduler-fork/build/swap/swaptest"
)

func TestASchedulerThatKubeletIsAboutToStartIsNotBroken(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	const never = time.Hour
	for name, c := range map[string]struct {
		// written and made are the ages of the manifest and the sandbox; starts is the time until the container runs.
		written, made, starts time.Duration
		broken                bool
		least, most           time.Duration
	}{
		"it runs":                                  {time.Second, time.Hour, 0, false, 0, 0},
		"the manifest was just written":            {2 * time.Second, time.Hour, 15 * time.Second, false, 15 * time.Second, 16 * time.Second},
		"kubelet was late":                         {40 * time.Second, 2 * time.Second, 30 * time.Second, false, 30 * time.Second, 31 * time.Second},
		"nothing was changed for long":             {time.Hour, time.Hour, never, true, worksTime, worksTime + time.Second},
		"it was just written, and does not start":  {2 * time.Second, time.Hour, never, true, 43 * time.Second, 44 * time.Second},
		"its sandbox is new, and it does not work": {time.Hour, 0, never, true, restartTime, restartTime + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, _ := nodeWith(nil)
				manifest := swaptest.Put(t, filepath.Join(t.TempDir(), "kube-scheduler.yaml"), swaptest.Stock)
				swaptest.Passed(t, manifest, c.written)
				began := time.Now()
				n.Runtime = &Runtime{Containers: &swaptest.FakeRuntime{Created: began.Add(-c.made), Runs: began.Add(c.starts)}}
				pod := swaptest.PodWith(t, "--secure-port="+address.Port())
				pod.Container().LivenessProbe = nil
				if err := n.Broken(context.Background(), pod, manifest); (err != nil) != c.broken {
					t.Errorf("broken: %v, want %v", err, c.broken)
				}
				if took := time.Since(began); took < c.least || took > c.most {
					t.Errorf("it took %s, want between %s and %s", took, c.least, c.most)
				}
			})
		})
	}
}
