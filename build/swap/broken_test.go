// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// runtimeWith is a container runtime with one pod, whose container starts at a given time.
type runtimeWith struct {
	cri.RuntimeServiceClient
	created, runs time.Time
}

func (r *runtimeWith) ListContainers(context.Context, *cri.ListContainersRequest, ...grpc.CallOption) (
	*cri.ListContainersResponse, error) {
	state := cri.ContainerState_CONTAINER_EXITED
	if !time.Now().Before(r.runs) {
		state = cri.ContainerState_CONTAINER_RUNNING
	}
	return &cri.ListContainersResponse{Containers: []*cri.Container{{Id: "c", PodSandboxId: "s", State: state}}}, nil
}

func (r *runtimeWith) ListPodSandbox(context.Context, *cri.ListPodSandboxRequest, ...grpc.CallOption) (
	*cri.ListPodSandboxResponse, error) {
	return &cri.ListPodSandboxResponse{Items: []*cri.PodSandbox{{Id: "s", CreatedAt: r.created.UnixNano()}}}, nil
}

// passed waits until the manifest is a given age.
func passed(t *testing.T, tool *Tool, since time.Duration) {
	t.Helper()
	info, err := os.Stat(tool.manifest)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(info.ModTime().Add(since)))
}

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
				tool := toolFor(t, stock)
				passed(t, tool, c.written)
				began := time.Now()
				tool.node.runtime = &runtime{containers: &runtimeWith{created: began.Add(-c.made), runs: began.Add(c.starts)}}
				pod := podWith(t, "--secure-port="+address.Port())
				pod.Container().LivenessProbe = nil
				if err := tool.node.broken(context.Background(), pod, tool.manifest); (err != nil) != c.broken {
					t.Errorf("broken: %v, want %v", err, c.broken)
				}
				if took := time.Since(began); took < c.least || took > c.most {
					t.Errorf("it took %s, want between %s and %s", took, c.least, c.most)
				}
			})
		})
	}
}
