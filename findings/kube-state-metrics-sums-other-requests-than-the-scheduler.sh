#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A pod's CPU request, as kube-state-metrics sums it and as a scheduler of 1.37 counts it.
#
# Guess: kube_pod_container_resource_requests, summed over a pod's containers, is what the scheduler counts on the node.
# Only init containers are special, and those have series of their own.
# Really, with features that are on by default in 1.37:
# - A pod that requests at its own level (spec.resources) and not in its containers has no series at all, so it weighs
#   nothing on a dashboard. Beside containers' requests, only these are summed.
# - A sidecar counts for the pod's whole life, and its series is in kube_pod_init_container_resource_requests next to
#   those of ordinary init containers. Adding that family is wrong as well; only kube_pod_init_container_info has the
#   label restart_policy that tells them apart.
# - A pod whose larger request cannot be met on its node (a resize that is Infeasible) has the larger request there, and
#   the allocated one in the scheduler.
# The help text names a better metric, kube_pod_resource_requests; schedulers serve kube_pod_resource_request.
# Versions: kube-state-metrics v2.18.0, k8s.io/component-helpers v0.37.2.
# Source: kube-state-metrics internal/store/pod.go; k8s.io/component-helpers resource/helpers.go (PodRequests), which the
# scheduler calls; the name is in Kubernetes' pkg/scheduler/metrics/resources/resources.go.
#
# Needs Go 1.26.9 or newer and a Go module proxy. Exit: 0 as described; 1 something has changed.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export GOWORK=off GOFLAGS=-mod=mod

mkdir ksm
cat > ksm/go.mod <<'MOD'
module ksm

go 1.26.0

tool k8s.io/kube-state-metrics/v2

require k8s.io/kube-state-metrics/v2 v2.18.0
MOD
cat > go.mod <<'MOD'
module finding

go 1.26.7

require (
	k8s.io/api v0.37.2
	k8s.io/component-helpers v0.37.2
)
MOD

cat > pods.json <<'JSON'
{"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": [
{"metadata": {"namespace": "demo", "name": "pod-level", "uid": "a"},
 "spec": {"nodeName": "n", "resources": {"requests": {"cpu": "2"}}, "containers": [{"name": "main"}]},
 "status": {"phase": "Running"}},
{"metadata": {"namespace": "demo", "name": "both-levels", "uid": "b"},
 "spec": {"nodeName": "n", "resources": {"requests": {"cpu": "2"}}, "containers": [{"name": "main", "resources": {"requests": {"cpu": "500m"}}}]},
 "status": {"phase": "Running"}},
{"metadata": {"namespace": "demo", "name": "with-sidecar", "uid": "c"},
 "spec": {"nodeName": "n", "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
  "initContainers": [{"name": "proxy", "restartPolicy": "Always", "resources": {"requests": {"cpu": "250m"}}},
   {"name": "prepare", "resources": {"requests": {"cpu": "500m"}}}]},
 "status": {"phase": "Running"}},
{"metadata": {"namespace": "demo", "name": "infeasible", "uid": "d"},
 "spec": {"nodeName": "n", "containers": [{"name": "main", "resources": {"requests": {"cpu": "64"}}}]},
 "status": {"phase": "Running", "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
  "containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "1"}, "resources": {"requests": {"cpu": "1"}},
   "state": {"running": {}}}]}}
]}
JSON

cat > main.go <<'GO'
// Command finding serves a list of pods as an API server does, starts kube-state-metrics on it, and prints its series.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
)

func main() {
	pods, err := os.ReadFile("pods.json")
	check(err)
	api, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go http.Serve(api, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/version":
			io.WriteString(w, `{"major": "1", "minor": "35", "gitVersion": "v1.35.0"}`)
		case r.URL.Query().Get("watch") != "":
			// Nothing changes.
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case r.URL.Path == "/api/v1/pods":
			w.Write(pods)
		default:
			http.NotFound(w, r)
		}
	}))
	series, telemetry := free(), free()
	ksm := exec.Command("./ksm/ksm", "--apiserver=http://"+api.Addr().String(), "--resources=pods", "--host=127.0.0.1",
		"--port="+series, "--telemetry-host=127.0.0.1", "--telemetry-port="+telemetry)
	log, err := os.Create("log")
	check(err)
	ksm.Stdout, ksm.Stderr = log, log
	check(ksm.Start())
	defer ksm.Process.Kill()
	for end := time.Now().Add(time.Minute); ; {
		answer, err := http.Get("http://127.0.0.1:" + series + "/metrics")
		if err == nil {
			text, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			if strings.Contains(string(text), `pod="infeasible"`) {
				show(pods, string(text))
				return
			}
		}
		if time.Now().After(end) {
			said, _ := os.ReadFile("log")
			fmt.Printf("no series after a minute: %v\n%s\n", err, said)
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// show prints the CPU of each pod in the two families, and in the scheduler.
func show(list []byte, text string) {
	var pods corev1.PodList
	check(json.Unmarshal(list, &pods))
	for i := range pods.Items {
		pod := &pods.Items[i]
		sums := map[string]float64{}
		for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
			family, labels, _ := strings.Cut(lines.Text(), "{")
			if strings.Contains(labels, `pod="`+pod.Name+`"`) && strings.Contains(labels, `resource="cpu"`) {
				value, err := strconv.ParseFloat(strings.Fields(labels)[1], 64)
				check(err)
				sums[family] += value
			}
		}
		requests := resource.PodRequests(pod, resource.PodResourcesOptions{UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true})
		fmt.Printf("%s: containers %v, init containers %v, scheduler %v\n", pod.Name, sums["kube_pod_container_resource_requests"],
			sums["kube_pod_init_container_resource_requests"], requests.Cpu().AsApproximateFloat64())
	}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if help, found := strings.CutPrefix(lines.Text(), "# HELP kube_pod_container_resource_requests "); found {
			fmt.Println("help:", help[strings.Index(help, "It is recommended"):])
		}
	}
}

// free returns a port that is free at the moment.
func free() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	defer listener.Close()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
GO

(cd ksm && go mod tidy 2> /dev/null && go build -o ksm k8s.io/kube-state-metrics/v2)
go mod tidy 2> /dev/null
echo "kube-state-metrics $(cd ksm && go list -m -f '{{.Version}}' k8s.io/kube-state-metrics/v2), component-helpers $(go list -m -f '{{.Version}}' k8s.io/component-helpers)"
go run . | tee got

diff - got <<'WANT'
pod-level: containers 0, init containers 0, scheduler 2
both-levels: containers 0.5, init containers 0, scheduler 2
with-sidecar: containers 1, init containers 0.75, scheduler 1.25
infeasible: containers 64, init containers 0, scheduler 1
help: It is recommended to use the kube_pod_resource_requests metric exposed by kube-scheduler instead, as it is more precise.
WANT
