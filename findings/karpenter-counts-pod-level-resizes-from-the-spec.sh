#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The CPU of a pod that is resized in place, as Karpenter and as a kube-scheduler of 1.37 count it.
#
# Guess: Karpenter simulates the scheduler. Both sum a pod with PodRequests of k8s.io/component-helpers and with
# UseStatusResources, so they agree on how much of a node is free, also while a pod is resized.
# Really: they agree as long as the containers have the requests. With requests of the pod as a whole (pod-level
# resources; their resize is beta and on since 1.36) Karpenter 1.15 counts the spec alone.
# - A resize to 64 CPU that kubelet calls infeasible: the scheduler goes on with the allocated 2, Karpenter with 64.
# - A resize from 8 to 2 that kubelet has not done yet: the scheduler counts 8, Karpenter 2. A pod of 6 CPU then stays
#   Pending, on a node where Karpenter sees room for it.
# The option InPlacePodLevelResourcesVerticalScalingEnabled makes the difference, in later releases of the library.
# Versions: sigs.k8s.io/karpenter v1.15.0 with the component-helpers of its go.mod (v0.35.0); component-helpers v0.37.2
# with the options of kube-scheduler 1.37.2.
# Source: karpenter pkg/utils/resources/resources.go (Ceiling); k8s.io/kubernetes pkg/scheduler/framework/types.go
# (CalculateResource) and pkg/features/kube_features.go; component-helpers resource/helpers.go (PodRequests).
# What the two do with these sums is read in their source, not run here.
#
# Needs Go 1.26.9 or newer and a Go module proxy. Exit: 0 as described; 1 something has changed.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export GOWORK=off GOFLAGS=-mod=mod
mkdir karpenter scheduler

cat > karpenter/go.mod <<'MOD'
module finding

go 1.26.9

require (
	k8s.io/api v0.36.1
	sigs.k8s.io/karpenter v1.15.0
	sigs.k8s.io/yaml v1.6.0
)
MOD

cat > scheduler/go.mod <<'MOD'
module finding

go 1.26.0

require (
	k8s.io/api v0.37.2
	k8s.io/component-helpers v0.37.2
	sigs.k8s.io/yaml v1.6.0
)
MOD

cat > karpenter/sum.go <<'GO'
package main

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/karpenter/pkg/utils/resources"
)

const who = "karpenter"

func requests(pod *corev1.Pod) corev1.ResourceList { return resources.RequestsForPods(pod) }
GO

cat > scheduler/sum.go <<'GO'
package main

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
)

const who = "scheduler"

func requests(pod *corev1.Pod) corev1.ResourceList {
	return resource.PodRequests(pod, resource.PodResourcesOptions{
		UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true,
	})
}
GO

cat > main.go <<'GO'
package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const (
	infeasible = "[{type: PodResizePending, status: 'True', reason: Infeasible}]"
	inProgress = "[{type: PodResizeInProgress, status: 'True'}]"
	container  = `
spec: {containers: [{name: main, resources: {requests: {cpu: %[1]q}}}]}
status:
  containerStatuses: [{name: main, allocatedResources: {cpu: %[2]q}, resources: {requests: {cpu: %[2]q}}}]
  conditions: %[3]s
`
	pod = `
spec: {resources: {requests: {cpu: %[1]q}}, containers: [{name: main}]}
status: {allocatedResources: {cpu: %[2]q}, resources: {requests: {cpu: %[2]q}}, conditions: %[3]s}
`
)

func count(what, format, wanted, allocated, conditions string) {
	var resized corev1.Pod
	if err := yaml.UnmarshalStrict([]byte(fmt.Sprintf(format, wanted, allocated, conditions)), &resized); err != nil {
		panic(err)
	}
	counted := requests(&resized)
	fmt.Printf("%s, spec %s, allocated %s, %s: %s counts %s\n",
		what, wanted, allocated, resized.Status.Conditions[0].Type, who, counted.Cpu())
}

func main() {
	count("container", container, "64", "2", infeasible)
	count("container", container, "2", "8", inProgress)
	count("pod level", pod, "64", "2", infeasible)
	count("pod level", pod, "2", "8", inProgress)
}
GO

cat > expected <<'TXT'
container, spec 2, allocated 8, PodResizeInProgress: karpenter counts 8
container, spec 2, allocated 8, PodResizeInProgress: scheduler counts 8
container, spec 64, allocated 2, PodResizePending: karpenter counts 2
container, spec 64, allocated 2, PodResizePending: scheduler counts 2
pod level, spec 2, allocated 8, PodResizeInProgress: karpenter counts 2
pod level, spec 2, allocated 8, PodResizeInProgress: scheduler counts 8
pod level, spec 64, allocated 2, PodResizePending: karpenter counts 64
pod level, spec 64, allocated 2, PodResizePending: scheduler counts 2
TXT

for program in karpenter scheduler; do
  cp main.go "$program/"
  (cd "$program" && go run . 2> log) > "$program.txt" || { cat "$program/log"; exit 1; }
  (cd "$program" && go list -m all | grep -E '^(sigs.k8s.io/karpenter|k8s.io/component-helpers) ')
done
LC_ALL=C sort karpenter.txt scheduler.txt > output
cat output
diff -u expected output || { echo "Karpenter or the scheduler counts a resized pod in another way now" >&2; exit 1; }
