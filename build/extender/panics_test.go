// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// panickingFilter panics at the node "bad".
type panickingFilter struct{}

func (panickingFilter) Name() string { return "PanickingFilter" }

func (panickingFilter) Filter(_ context.Context, _ *framework.CycleState, _ *corev1.Pod, node *framework.NodeInfo) *framework.Status {
	if node.Node().Name == "bad" {
		panic("out of order")
	}
	return nil
}

// panickingScore panics at the node "bad".
type panickingScore struct{}

func (panickingScore) Name() string { return "PanickingScore" }

func (panickingScore) Score(_ context.Context, _ *framework.CycleState, _ *corev1.Pod, node string) (int64, *framework.Status) {
	if node == "bad" {
		panic("out of order")
	}
	return 100, nil
}

func (panickingScore) ScoreExtensions() framework.ScoreExtensions { return nil }

// TestPluginThatPanics fails its request as a whole, and nothing else: the next one is answered.
func TestPluginThatPanics(t *testing.T) {
	f := newFixture(t, enabling("name: PanickingFilter", "name: PanickingScore"), generous, bareNode("good"), bareNode("bad"))
	ask := func(names ...string) extenderv1.ExtenderArgs {
		return extenderv1.ExtenderArgs{Pod: newPod(), NodeNames: &names}
	}
	for range 2 {
		var filtered extenderv1.ExtenderFilterResult
		f.post(t, "filter", ask("good", "bad"), &filtered)
		if !strings.Contains(filtered.Error, "panicked") || filtered.NodeNames != nil {
			t.Errorf("filter: %+v, want nothing but an error", filtered)
		}
		var failure errorBody
		if status := f.post(t, "prioritize", ask("good", "bad"), &failure); status != http.StatusInternalServerError || !strings.Contains(failure.Error, "panicked") {
			t.Errorf("prioritize: %d %+v", status, failure)
		}
		filtered = extenderv1.ExtenderFilterResult{}
		f.post(t, "filter", ask("good"), &filtered)
		if filtered.Error != "" || filtered.NodeNames == nil || len(*filtered.NodeNames) != 1 {
			t.Errorf("filter without the bad node: %+v", filtered)
		}
	}
}

func TestNegativeWeightIsRefused(t *testing.T) {
	profile, err := LoadProfile(writeFile(t, "config.yaml", enabling("{name: Labelled, weight: 3}", "{name: Other, weight: -2}")), "", testPlugins(t))
	if err != nil {
		t.Fatal(err)
	}
	_, err = newDecider(profile, connections{factory: newInformerFactory(nil)})
	if err == nil || !strings.Contains(err.Error(), "Other has the weight -2") {
		t.Errorf("got %v, want an error that names the plugin and its weight", err)
	}
}

// TestBodyThatNeverComes is announced to requests that are refused without it. None may keep its connection.
func TestBodyThatNeverComes(t *testing.T) {
	for _, request := range []string{"GET /healthz", "GET /filter", "POST /nothing", "POST /filter"} {
		t.Run(request, func(t *testing.T) {
			f := newFixture(t, byDiskType, generous, diskNode("a", "ssd"))
			options := Options{Limits: Limits{RequestTimeout: soon}}
			server := httptest.NewUnstartedServer(nil)
			server.Config = options.server(NewHandler(f.decider, nil, generous))
			// The header does come, however late.
			server.Config.ReadHeaderTimeout = long
			server.Start()
			defer server.Close()
			connection, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer connection.Close()
			if err := connection.SetDeadline(time.Now().Add(long)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(connection, request+" HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			// An answer or none: the connection must end.
			if _, err := io.Copy(io.Discard, bufio.NewReader(connection)); err != nil {
				t.Errorf("the connection did not end: %v", err)
			}
		})
	}
}
