// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"kube-scheduler-fork/build/swap/host"
	"kube-scheduler-fork/build/swap/manifest"
	"kube-scheduler-fork/build/swap/swaptest"
)

// statusOf returns the status for a manifest in a cluster, and its text.
func statusOf(t *testing.T, manifest string, client *fake.Clientset) (*Status, string) {
	t.Helper()
	tool := toolFor(t, manifest)
	fakes := &swaptest.FakeRuntime{Runs: time.Now()}
	tool.node.Runtime = &host.Runtime{Containers: fakes, Images: fakes}
	tool.node.Cluster = &host.Cluster{Client: client}
	status, err := tool.Status(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := status.Write(&text); err != nil {
		t.Fatal(err)
	}
	return status, text.String()
}

func TestStatusTellsALeaseThatHolds(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	here := host + "_1"
	leaseFor := func(holder string, ago time.Duration, seconds int32) *fake.Clientset {
		renewed := metav1.NewMicroTime(time.Now().Add(-ago))
		return fake.NewSimpleClientset(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-scheduler"},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &renewed, LeaseDurationSeconds: &seconds}})
	}
	silent := fake.NewSimpleClientset()
	silent.PrependReactor("get", "leases", func(clienttesting.Action) (bool, apiruntime.Object, error) {
		return true, nil, errors.New("connection refused")
	})
	for name, c := range map[string]struct {
		client *fake.Clientset
		led    bool
		says   string
	}{
		"renewed just now":            {leaseFor(here, time.Second, 15), true, "this node holds it, renewed"},
		"by another node":             {leaseFor("cp2_1", time.Second, 15), true, "cp2_1 holds it, renewed"},
		"not for long":                {leaseFor(here, 84*time.Second, 15), false, "expired: no scheduler works; this node held it, and renewed it last 1m24s ago"},
		"not by another node":         {leaseFor("cp2_1", 84*time.Second, 15), false, "expired: no scheduler works; cp2_1 held it"},
		"it holds for longer":         {leaseFor(here, 84*time.Second, 120), true, "this node holds it, renewed"},
		"clocks differ":               {leaseFor(here, 20*time.Second, 15), true, "this node holds it, renewed"},
		"it was given back":           {leaseFor("", time.Second, 1), false, "no scheduler holds it"},
		"no scheduler ever held it":   {fake.NewSimpleClientset(), false, "no scheduler holds it"},
		"the API server is not there": {silent, false, "unknown"},
	} {
		status, text := statusOf(t, swaptest.Stock, c.client)
		if status.led() != c.led || !strings.Contains(text, c.says) {
			t.Errorf("%s: led %v, want %v, and %q in\n%s", name, status.led(), c.led, c.says, text)
		}
	}
}

func TestOnlyASchedulerThatRunsStandsBy(t *testing.T) {
	for _, runs := range []bool{true, false} {
		var text strings.Builder
		if err := (&Status{Running: runs, Health: "ok", Lease: "kube-system/kube-scheduler", Holder: "cp2_1"}).Write(&text); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(text.String(), "this node stands by"); got != runs {
			t.Errorf("it runs: %v, and stands by: %v", runs, got)
		}
	}
}

func TestStatusNamesPodsThatWaitForAProfileThatItServes(t *testing.T) {
	waiting := func(name, scheduler string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: name}, Spec: corev1.PodSpec{SchedulerName: scheduler}}
	}
	_, text := statusOf(t, swaptest.Stock, fake.NewSimpleClientset(waiting("a", "default-scheduler"), waiting("b", "another")))
	if !strings.Contains(text, "pods that wait for default-scheduler: 1, such as x/a; next: kubectl describe pod") || strings.Contains(text, "another") {
		t.Error(text)
	}
}

func TestStatusTellsAHealthySchedulerWithoutALeaseAndANewerAPIServer(t *testing.T) {
	health := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer health.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(health.URL, "http://"), ":")
	stock := strings.NewReplacer("10259", port, "HTTPS", "HTTP").Replace(swaptest.Stock)
	for name, c := range map[string]struct {
		manifest, server string
		stuck, newer     bool
	}{
		"healthy, on 1.37":   {stock, "v1.37.2", true, true},
		"healthy, on 1.23":   {stock, "v1.23.17", true, false},
		"not healthy":        {swaptest.Stock, "v1.23.17", false, false},
		"no lease is needed": {strings.Replace(stock, "    image:", "    - --leader-elect=false\n    image:", 1), "v1.23.17", false, false},
		"of its own release": {strings.Replace(stock, "v1.23.17", "v1.37.2", 1), "v1.37.2", true, false},
	} {
		_, text := statusOf(t, c.manifest, serverOf(c.server, ""))
		if stuck, newer := strings.Contains(text, "no scheduler holds the lease, which /healthz does not see"),
			strings.Contains(text, "the API server is "+c.server+", newer than the scheduler (1.23)"); stuck != c.stuck || newer != c.newer {
			t.Errorf("%s: stuck %v, newer %v:\n%s", name, stuck, newer, text)
		}
	}
}

func TestStatusHasOneNextStepForWhatIsHalfSwapped(t *testing.T) {
	half := swaptest.StockWith("--config=" + manifest.ContainerConfigPath)
	_, text := statusOf(t, half, fake.NewSimpleClientset())
	if !strings.Contains(text, "next: kube-scheduler-swap install") || strings.Contains(text, "next: kube-scheduler-swap rollback") {
		t.Errorf("want one way on:\n%s", text)
	}
}
