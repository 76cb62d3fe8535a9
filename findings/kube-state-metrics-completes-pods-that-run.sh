#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# When a pod gave its node back, as kube-state-metrics tells it.
#
# Guess: kube_pod_completion_time is when a pod completed, so every Succeeded or Failed pod has it, no running pod has it,
# and kube_pod_completion_time - kube_pod_status_scheduled_time is how long the pod held its requests.
# Really: it is the latest end among the pod's ordinary containers that are terminated at the moment.
# - A running pod of two containers has it as soon as one of them has ended: the pod still holds all its requests. The
#   series vanishes if that container is restarted.
# - A pod with a sidecar (an init container with restartPolicy: Always) has the end of its last ordinary container. The
#   sidecar ends later, and is not looked at.
# - A pod that kubelet evicted before its containers started is Failed, and has no such series.
# So a history of requests needs kube_pod_status_phase, too.
# Versions: kube-state-metrics v2.18.0.
# Source: kube-state-metrics internal/store/pod.go, createPodCompletionTimeFamilyGenerator; its documentation says
# "Completion time in unix timestamp for a pod".
#
# Needs Go 1.26.9 or newer and a Go module proxy. Exit: 0 as described; 1 something has changed.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export GOWORK=off GOFLAGS=-mod=mod

cat > go.mod <<'MOD'
module finding

go 1.26.0

tool k8s.io/kube-state-metrics/v2

require k8s.io/kube-state-metrics/v2 v2.18.0
MOD

cat > pods.json <<'JSON'
{"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": [
{"metadata": {"namespace": "demo", "name": "half-done", "uid": "a"},
 "spec": {"nodeName": "n", "containers": [{"name": "main"}, {"name": "export"}]},
 "status": {"phase": "Running", "containerStatuses": [
  {"name": "main", "state": {"running": {"startedAt": "2026-11-01T00:00:00Z"}}},
  {"name": "export", "state": {"terminated": {"exitCode": 0, "finishedAt": "2026-11-01T00:01:00Z"}}}]}},
{"metadata": {"namespace": "demo", "name": "with-sidecar", "uid": "b"},
 "spec": {"nodeName": "n", "restartPolicy": "Never", "containers": [{"name": "main"}],
  "initContainers": [{"name": "proxy", "restartPolicy": "Always"}]},
 "status": {"phase": "Succeeded",
  "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 0, "finishedAt": "2026-11-01T00:02:00Z"}}}],
  "initContainerStatuses": [{"name": "proxy", "state": {"terminated": {"exitCode": 0, "finishedAt": "2026-11-01T00:12:00Z"}}}]}},
{"metadata": {"namespace": "demo", "name": "evicted", "uid": "c"},
 "spec": {"nodeName": "n", "containers": [{"name": "main"}]},
 "status": {"phase": "Failed", "reason": "Evicted"}}
]}
JSON

cat > main.go <<'GO'
// Command finding serves a list of pods as an API server does, starts kube-state-metrics on it, and prints its series.
package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
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
	ksm := exec.Command("go", "tool", "k8s.io/kube-state-metrics/v2")
	if len(os.Args) > 1 {
		ksm = exec.Command(os.Args[1])
	}
	ksm.Args = append(ksm.Args, "--apiserver=http://"+api.Addr().String(), "--resources=pods", "--host=127.0.0.1",
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
			if strings.Contains(string(text), `pod="evicted"`) {
				show(string(text))
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

// show prints each pod's phase, and the time of its completion if it has one.
func show(text string) {
	for _, pod := range []string{"half-done", "with-sidecar", "evicted"} {
		phase, completed := "", "none"
		for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
			line := lines.Text()
			fields := strings.Fields(line)
			if !strings.Contains(line, `pod="`+pod+`"`) {
				continue
			}
			if strings.HasPrefix(line, "kube_pod_status_phase{") && fields[1] == "1" {
				phase = strings.Split(strings.Split(line, `phase="`)[1], `"`)[0]
			}
			if strings.HasPrefix(line, "kube_pod_completion_time{") {
				seconds, err := strconv.ParseFloat(fields[1], 64)
				check(err)
				completed = time.Unix(int64(seconds), 0).UTC().Format("15:04:05")
			}
		}
		fmt.Printf("%s: phase %s, kube_pod_completion_time %s\n", pod, phase, completed)
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

go mod tidy 2> /dev/null || go mod tidy
go build -o ksm k8s.io/kube-state-metrics/v2
echo "kube-state-metrics $(go list -m -f '{{.Version}}' k8s.io/kube-state-metrics/v2)"
go run . ./ksm | tee got

diff - got <<'WANT'
half-done: phase Running, kube_pod_completion_time 00:01:00
with-sidecar: phase Succeeded, kube_pod_completion_time 00:02:00
evicted: phase Failed, kube_pod_completion_time none
WANT
