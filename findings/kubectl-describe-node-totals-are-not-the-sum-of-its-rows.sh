#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The CPU requests that `kubectl describe node` prints while pods are resized in place.
#
# Guess: "Allocated resources" is the sum of the pods above it, and is the number with which the scheduler decides
# whether another pod fits.
# Really: the row of a pod has the larger of what is asked for and what kubelet has allocated, without a resize that is
# infeasible, as the scheduler counts. The totals below it are sums of the specs alone. Two pods on a node of 16 CPU,
# one with an infeasible resize from 2 to 64, one on its way from 8 to 2: the rows say 2 and 8, the total says 66 (412%).
# The scheduler counts 10, and places a pod of 6 CPU on this "full" node. With the second pod alone the total says 2,
# and a pod of 9 CPU does not fit on a node with 14 CPU "free".
# Versions: k8s.io/kubectl v0.37.2.
# Source: k8s.io/kubectl pkg/describe/describe.go: describeNodeResource sets UseStatusResources,
# getPodsTotalRequestsAndLimits does not; k8s.io/kubernetes v1.37.2 pkg/scheduler/framework/types.go sets it.
# The scheduler's decisions are read there, not run here.
#
# Needs Go 1.26 or newer and a Go module proxy; compiles kubectl. Exit: 0 as described; 1 something has changed.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export GOWORK=off GOFLAGS=-mod=mod

cat > go.mod <<'MOD'
module finding

go 1.26.0

require (
	k8s.io/api v0.37.2
	k8s.io/client-go v0.37.2
	k8s.io/kubectl v0.37.2
	sigs.k8s.io/yaml v1.6.0
)
MOD

cat > main.go <<'GO'
package main

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubectl/pkg/describe"
	"sigs.k8s.io/yaml"
)

const pod = `
metadata: {name: %[1]s, namespace: default}
spec: {nodeName: node-1, containers: [{name: main, resources: {requests: {cpu: %[2]q}}}]}
status:
  phase: Running
  conditions: [%[4]s]
  containerStatuses: [{name: main, allocatedResources: {cpu: %[3]q}, resources: {requests: {cpu: %[3]q}}}]
`

func parse[T any](text string) *T {
	value := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), value); err != nil {
		panic(err)
	}
	return value
}

func main() {
	client := fake.NewSimpleClientset(
		parse[corev1.Node]("{metadata: {name: node-1}, status: {allocatable: {cpu: '16', memory: 64Gi, pods: '110'}}}"),
		parse[corev1.Pod](fmt.Sprintf(pod, "grows", "64", "2", "{type: PodResizePending, status: 'True', reason: Infeasible}")),
		parse[corev1.Pod](fmt.Sprintf(pod, "shrinks", "2", "8", "{type: PodResizeInProgress, status: 'True'}")),
	)
	text, err := (&describe.NodeDescriber{Interface: client}).Describe("", "node-1", describe.DescriberSettings{})
	if err != nil {
		panic(err)
	}
	totals := false
	for line := range strings.Lines(text) {
		columns := strings.Fields(line)
		totals = totals || strings.HasPrefix(line, "Allocated resources")
		switch {
		case len(columns) > 3 && columns[0] == "default":
			fmt.Println("pod", columns[1], columns[2], columns[3])
		case totals && len(columns) > 2 && columns[0] == "cpu":
			fmt.Println("total", columns[1], columns[2])
		}
	}
}
GO

cat > expected <<'TXT'
pod grows 2 (12%)
pod shrinks 8 (50%)
total 66 (412%)
TXT

go run . > output 2> log || { cat log; exit 1; }
go list -m k8s.io/kubectl
cat output
diff -u expected output || { echo "kubectl describe node counts resized pods in another way now" >&2; exit 1; }
