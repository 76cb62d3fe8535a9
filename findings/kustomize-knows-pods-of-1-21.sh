#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How kustomize treats the fields of a pod that are newer than Kubernetes 1.21.
#
# Guess: namePrefix renames an object and what refers to it (PriorityClass, PersistentVolumeClaim, ...), and a patch
# merges a list of the pod as `kubectl patch` does, by the key that the API documents. So resourceClaims, GA since
# 1.34, and schedulingGates, GA since 1.30, behave as volumes and containers do.
# Really: kustomize has the schema of Kubernetes 1.21 and a list of references of its own.
# - namePrefix renames a ResourceClaimTemplate, PodGroup and RuntimeClass, and leaves the old names in the pod, which
#   then waits for a claim that nobody creates.
# - A patch that adds a gate or a claim replaces the whole list: the gate of a quota controller is gone, and the pod is
#   scheduled without its consent. `kubectl patch` adds to the same lists.
# No warning is printed. `kubectl apply -k` of 1.37 contains these versions. nameReference in a file of
# `configurations` and a file of `openapi` teach kustomize what it lacks.
# Versions: sigs.k8s.io/kustomize/api and kyaml v0.21.1 (kustomize 5.8.1, kubectl 1.37.2).
# Source: kustomize api/internal/konfig/builtinpluginconsts/namereference.go; kyaml/openapi/kubernetesapi (v1_21_2).
#
# Needs Go 1.26 or newer and a Go module proxy. Exit: 0 as described; 1 something has changed.
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
	k8s.io/apimachinery v0.37.2
	sigs.k8s.io/kustomize/api v0.21.1
	sigs.k8s.io/kustomize/kyaml v0.21.1
	sigs.k8s.io/yaml v1.6.0
)
MOD

cat > objects.yaml <<'YAML'
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: kata}
handler: kata
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
spec: {}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}}
---
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: gang}
---
apiVersion: v1
kind: Pod
metadata: {name: worker}
spec:
  priorityClassName: high
  runtimeClassName: kata
  schedulingGroup: {podGroupName: gang}
  schedulingGates: [{name: example.com/quota}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]
  containers: [{name: main, image: example.com/worker}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
YAML

cat > patch.yaml <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: worker}
spec:
  schedulingGates: [{name: example.com/image}]
  resourceClaims: [{name: nic, resourceClaimName: fast}]
  containers: [{name: log, image: example.com/log}]
YAML

cat > main.go <<'GO'
package main

import (
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// build returns the pod of objects.yaml after a kustomization, and the names of some other objects.
func build(kustomization string) (*corev1.Pod, []byte, []string) {
	var names []string
	disk := filesys.MakeFsInMemory()
	for name, data := range map[string][]byte{
		"kustomization.yaml": []byte("resources: [objects.yaml]\n" + kustomization),
		"objects.yaml":       must(os.ReadFile("objects.yaml")),
		"patch.yaml":         must(os.ReadFile("patch.yaml")),
	} {
		if err := disk.WriteFile(name, data); err != nil {
			panic(err)
		}
	}
	result := must(krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, "."))
	for _, object := range result.Resources() {
		switch object.GetKind() {
		case "RuntimeClass", "PodGroup", "ResourceClaimTemplate":
			names = append(names, object.GetName())
			continue
		case "PriorityClass", "PersistentVolumeClaim", "DeviceClass":
			continue
		}
		pod, data := corev1.Pod{}, must(object.AsYAML())
		if err := yaml.UnmarshalStrict(data, &pod); err != nil {
			panic(err)
		}
		return &pod, must(yaml.YAMLToJSON(data)), names
	}
	panic("no pod")
}

func lists(pod *corev1.Pod) string {
	var gates, claims []string
	for _, gate := range pod.Spec.SchedulingGates {
		gates = append(gates, gate.Name)
	}
	for _, claim := range pod.Spec.ResourceClaims {
		claims = append(claims, claim.Name)
	}
	return fmt.Sprint("gates ", gates, " claims ", claims, " containers ", len(pod.Spec.Containers))
}

func main() {
	fmt.Println("namePrefix: blue-")
	pod, _, names := build("namePrefix: blue-\n")
	fmt.Println("  objects", names)
	fmt.Println("  pod priority class", pod.Spec.PriorityClassName)
	fmt.Println("  pod volume claim", pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName)
	fmt.Println("  pod runtime class", *pod.Spec.RuntimeClassName)
	fmt.Println("  pod group", *pod.Spec.SchedulingGroup.PodGroupName)
	fmt.Println("  pod claim template", *pod.Spec.ResourceClaims[0].ResourceClaimTemplateName)
	fmt.Println("patch")
	pod, _, _ = build("patches: [{path: patch.yaml}]\n")
	fmt.Println("  kustomize:", lists(pod))
	_, before, _ := build("")
	var patched corev1.Pod
	patch := must(yaml.YAMLToJSON(must(os.ReadFile("patch.yaml"))))
	after := must(strategicpatch.StrategicMergePatch(before, patch, corev1.Pod{}))
	if err := yaml.UnmarshalStrict(after, &patched); err != nil {
		panic(err)
	}
	fmt.Println("  kubectl patch:", lists(&patched))
}
GO

cat > expected <<'TXT'
namePrefix: blue-
  objects [blue-kata blue-one-gpu blue-gang]
  pod priority class blue-high
  pod volume claim blue-data
  pod runtime class kata
  pod group gang
  pod claim template one-gpu
patch
  kustomize: gates [example.com/image] claims [nic] containers 2
  kubectl patch: gates [example.com/image example.com/quota] claims [nic gpu] containers 2
TXT

go run . > output 2> log || { cat log; exit 1; }
go list -m k8s.io/api sigs.k8s.io/kustomize/api sigs.k8s.io/kustomize/kyaml
cat output
diff -u expected output || { echo "kustomize treats the newer fields of a pod in another way now" >&2; exit 1; }
