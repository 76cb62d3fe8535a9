#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Evicts overcommitting pods of a node whose state at /overcommit is "exceeded": first those of the lowest priority, and
# of these the youngest, until they have asked for as much as the node lacks. PodDisruptionBudgets are respected.
#
# Usage: evict.sh NODE MILLICPU    for {"node":"NODE","state":"exceeded",…,"usableMilliCPU":-MILLICPU}
#
# Cordon the node first, or the pods may come back once the peak is lower. Needs kubectl, and the permission to create
# pods/eviction. Exit: 0 enough pods are evicted; 1 not.
set -o errexit -o nounset -o pipefail
node=$1 lacks=$2

# A line for each container that asks: priority, time of creation, namespace, pod, thousandths of a core.
# shellcheck disable=SC2016
template='{{range .items}}{{$pod := .}}{{range .spec.containers}}{{with .resources.requests}}{{with index . "overcommit.scheduler/millicpu"}}
{{- $pod.spec.priority}} {{$pod.metadata.creationTimestamp}} {{$pod.metadata.namespace}} {{$pod.metadata.name}} {{.}}{{"\n"}}
{{- end}}{{end}}{{end}}{{end}}'
pods=$(kubectl get pods --all-namespaces --field-selector "spec.nodeName=$node,status.phase!=Succeeded,status.phase!=Failed" --output go-template="$template" |
  awk '{ asks[$1 " " $2 " " $3 " " $4] += $5 } END { for (pod in asks) print pod, asks[pod] }' | sort --key 1,1n --key 2,2r)
while ((lacks > 0)) && read -r _ _ namespace name asks; do
  printf '{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"namespace": "%s", "name": "%s"}}' "$namespace" "$name" |
    kubectl create --raw "/api/v1/namespaces/$namespace/pods/$name/eviction" --filename - > /dev/null || continue
  echo "evicted $namespace/$name, which asked for $asks thousandths of a core"
  lacks=$((lacks - asks))
done <<< "$pods"
((lacks <= 0))
