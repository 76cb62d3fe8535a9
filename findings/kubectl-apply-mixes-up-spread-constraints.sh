#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How `kubectl apply` changes a pod template with two topology spread constraints over one topology key.
#
# Guess: the identity of a constraint is topologyKey and whenUnsatisfiable, as the API documents (listMapKey), so
# `kubectl apply` can add a soft constraint next to a hard one over the same key, and can remove one of the two.
# Really: client-side apply sends a strategic merge patch, whose key for this list is topologyKey alone.
# - A new maxSkew of the soft constraint, the second in the list, is written into the hard one.
# - Adding the soft constraint changes nothing in the cluster. Each further apply sends the patch again, without effect.
# - Removing one of the two removes both: the pods have no constraint at all.
# Creating both at once, and changing the first of the two, work. kubectl apply --server-side uses both keys (read in
# the tags, not run here).
# Versions: k8s.io/api and k8s.io/apimachinery v0.37.2 (the tags are the same in v0.23.17).
# Source: k8s.io/api core/v1/types.go, PodSpec.TopologySpreadConstraints (patchMergeKey=topologyKey, two listMapKey);
# k8s.io/apimachinery pkg/util/strategicpatch/patch.go, diffListsOfMaps and mergeSliceWithoutSpecialElements.
# kubectl computes the patch with CreateThreeWayMergePatch, and the API server applies it with StrategicMergePatch.
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
	sigs.k8s.io/yaml v1.6.0
)
MOD

cat > main.go <<'GO'
package main

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"
)

const (
	hard   = "{topologyKey: topology.kubernetes.io/zone, maxSkew: 5, whenUnsatisfiable: DoNotSchedule}"
	soft   = "{topologyKey: topology.kubernetes.io/zone, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}"
	softer = "{topologyKey: topology.kubernetes.io/zone, maxSkew: 2, whenUnsatisfiable: ScheduleAnyway}"
	tight  = "{topologyKey: topology.kubernetes.io/zone, maxSkew: 3, whenUnsatisfiable: DoNotSchedule}"
)

func manifest(constraints ...string) []byte {
	return must(yaml.YAMLToJSON([]byte("spec: {topologySpreadConstraints: [" + strings.Join(constraints, ", ") + "]}")))
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// apply prints the constraints of a pod template after an apply of changed, where last is the manifest of the apply
// before and live is what the cluster has.
func apply(what string, last, changed, live []byte) {
	meta := must(strategicpatch.NewPatchMetaFromStruct(corev1.Pod{}))
	patch := must(strategicpatch.CreateThreeWayMergePatch(last, changed, live, meta, true))
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict(must(strategicpatch.StrategicMergePatch(live, patch, corev1.Pod{})), &pod); err != nil {
		panic(err)
	}
	fmt.Printf("%s: patch empty: %t;", what, string(patch) == "{}")
	for _, constraint := range pod.Spec.TopologySpreadConstraints {
		fmt.Printf(" %s %d", constraint.WhenUnsatisfiable, constraint.MaxSkew)
	}
	fmt.Println(" (end)")
}

func main() {
	both := manifest(hard, soft)
	apply("change the hard one", both, manifest(tight, soft), both)
	apply("change the soft one", both, manifest(hard, softer), both)
	apply("add the soft one", manifest(hard), both, manifest(hard))
	apply("apply that again", both, both, manifest(hard))
	apply("remove the hard one", both, manifest(soft), both)
	apply("remove the soft one", both, manifest(hard), both)
}
GO

cat > expected <<'TXT'
change the hard one: patch empty: false; DoNotSchedule 3 ScheduleAnyway 1 (end)
change the soft one: patch empty: false; DoNotSchedule 2 ScheduleAnyway 1 (end)
add the soft one: patch empty: false; DoNotSchedule 5 (end)
apply that again: patch empty: false; DoNotSchedule 5 (end)
remove the hard one: patch empty: false; (end)
remove the soft one: patch empty: false; (end)
TXT

go run . > output 2> log || { cat log; exit 1; }
go list -m k8s.io/api k8s.io/apimachinery
cat output
diff -u expected output || { echo "kubectl apply treats two constraints over one key in another way now" >&2; exit 1; }
