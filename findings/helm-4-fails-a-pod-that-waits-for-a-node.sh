#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How long Helm 4 waits for a pod that no node fits yet.
#
# Guess: a Pending pod is in progress until the timeout of the wait is over, as with Helm 3. The scheduler retries, and
# an autoscaler needs minutes for a node.
# Really: Helm 4 waits with kstatus, as Flux does. As soon as the pod is older than 15 seconds and its PodScheduled
# condition has the reason Unschedulable, its status is Failed, and the watcher looks again after 15 seconds.
# Helm takes Failed as final: whatever the timeout (40 seconds here), the wait for a bare pod ends in an error after 15
# seconds. Helm 4 with --wait=legacy waits until the timeout.
# The 15 seconds count from the creation, not from the condition: a pod that waited at a scheduling gate for an hour, in
# progress all that time, fails with its first unsuccessful attempt. The reason decides, so a pod that a scheduler
# reports with SchedulerError stays in progress, as does a Deployment all of whose pods are unschedulable, until its
# progressDeadlineSeconds.
# Versions: helm.sh/helm/v4 v4.3.2 with github.com/fluxcd/cli-utils v1.2.2.
# Source: cli-utils pkg/kstatus/status/core.go (ScheduleWindow, podConditions), pkg/kstatus/watcher
# (object_status_reporter.go, unschedulable.go); helm pkg/kube/statuswait.go, statusObserver.
# The API server here is a stand-in that has one pod.
#
# Needs Go 1.26 or newer and a Go module proxy; compiles Helm. Exit: 0 as described; 1 something has changed.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export GOWORK=off GOFLAGS=-mod=mod

cat > go.mod <<'MOD'
module finding

go 1.26.0

require (
	github.com/fluxcd/cli-utils v1.2.2
	helm.sh/helm/v4 v4.3.2
	k8s.io/apimachinery v0.37.2
	k8s.io/cli-runtime v0.37.2
)
MOD

cat > main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

type fields = map[string]any

// pending returns a pod of the given age that was not scheduled for the given reason.
func pending(reason string, age time.Duration) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: fields{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": fields{
			"name": "training", "namespace": "default", "uid": "1", "resourceVersion": "2",
			"creationTimestamp": time.Now().Add(-age).UTC().Format(time.RFC3339),
		},
		"status": fields{
			"phase":      "Pending",
			"conditions": []any{fields{"type": "PodScheduled", "status": "False", "reason": reason}},
		},
	}}
}

func compute(what string, object *unstructured.Unstructured) {
	result, err := status.Compute(object)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s: %s\n", what, result.Status)
}

// server answers as an API server with one pending pod does. It streams no initial events, as one before 1.27.
func server(reason string) *httptest.Server {
	pod := pending(reason, 0).Object
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer := func(code int, value fields) {
			w.WriteHeader(code)
			_ = json.NewEncoder(w).Encode(value)
		}
		switch path := r.URL.Path; {
		case path == "/api":
			answer(200, fields{"kind": "APIVersions", "versions": []string{"v1"}})
		case path == "/apis":
			answer(200, fields{"kind": "APIGroupList", "apiVersion": "v1", "groups": []fields{}})
		case path == "/api/v1":
			answer(200, fields{"kind": "APIResourceList", "groupVersion": "v1", "resources": []fields{
				{"name": "pods", "kind": "Pod", "namespaced": true, "verbs": []string{"get", "list", "watch"}},
			}})
		case strings.HasSuffix(path, "/pods") && r.URL.Query().Get("sendInitialEvents") == "true":
			answer(422, fields{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422})
		case strings.HasSuffix(path, "/pods") && r.URL.Query().Get("watch") != "":
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case strings.HasSuffix(path, "/pods"):
			answer(200, fields{
				"kind": "PodList", "apiVersion": "v1", "metadata": fields{"resourceVersion": "2"}, "items": []any{pod},
			})
		case strings.HasSuffix(path, "/pods/training"):
			answer(200, pod)
		default:
			answer(404, fields{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404})
		}
	}))
}

func wait(reason string, strategy kube.WaitStrategy, timeout time.Duration) {
	api := server(reason)
	defer api.CloseClientConnections()
	flags := genericclioptions.NewConfigFlags(false)
	flags.APIServer = &api.URL
	client := kube.New(flags)
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: training, namespace: default}\n"
	list, err := client.Build(strings.NewReader(pod), false)
	if err != nil {
		panic(err)
	}
	waiter, err := client.GetWaiter(strategy)
	if err != nil {
		panic(err)
	}
	start := time.Now()
	err = waiter.Wait(list, timeout)
	took := time.Since(start)
	fmt.Printf("%s, %s, timeout %s: until the timeout: %t, about 15 s: %t, failed: %t\n", strategy, reason, timeout,
		took >= timeout, took > 12*time.Second && took < 22*time.Second, strings.Contains(fmt.Sprint(err), "status: Failed"))
}

func main() {
	compute("Unschedulable, 10 s old", pending("Unschedulable", 10*time.Second))
	compute("Unschedulable, 20 s old", pending("Unschedulable", 20*time.Second))
	compute("SchedulingGated, 1 h old", pending("SchedulingGated", time.Hour))
	compute("SchedulerError, 1 h old", pending("SchedulerError", time.Hour))
	compute("Deployment with 0 of 1 pods, 1 h old", &unstructured.Unstructured{Object: fields{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": fields{
			"name": "web", "namespace": "default", "generation": int64(1),
			"creationTimestamp": time.Now().Add(-time.Hour).UTC().Format(time.RFC3339),
		},
		"spec": fields{"replicas": int64(1), "progressDeadlineSeconds": int64(7200)},
		"status": fields{
			"observedGeneration": int64(1), "replicas": int64(1), "updatedReplicas": int64(1), "unavailableReplicas": int64(1),
			"conditions": []any{fields{"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"}},
		},
	}})
	wait("Unschedulable", kube.StatusWatcherStrategy, 40*time.Second)
	wait("SchedulingGated", kube.StatusWatcherStrategy, 24*time.Second)
	wait("Unschedulable", kube.LegacyStrategy, 24*time.Second)
}
GO

cat > expected <<'TXT'
Unschedulable, 10 s old: InProgress
Unschedulable, 20 s old: Failed
SchedulingGated, 1 h old: InProgress
SchedulerError, 1 h old: InProgress
Deployment with 0 of 1 pods, 1 h old: InProgress
watcher, Unschedulable, timeout 40s: until the timeout: false, about 15 s: true, failed: true
watcher, SchedulingGated, timeout 24s: until the timeout: true, about 15 s: false, failed: false
legacy, Unschedulable, timeout 24s: until the timeout: true, about 15 s: false, failed: false
TXT

go run . > output 2> log || { cat log; exit 1; }
go list -m helm.sh/helm/v4 github.com/fluxcd/cli-utils
cat output
diff -u expected output || { echo "Helm waits for pending pods in another way now" >&2; exit 1; }
