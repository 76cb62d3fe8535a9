#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the scheduler, starts it on a local control plane with fake nodes, creates pods, and prints the node of each.
#
# Inputs: NODES, PODS, CONFIG; MANIFEST (files with more pods, nodes and custom objects), LOG (a text: prints the lines
#   of the scheduler's log that contain it), EXTENDER (the configuration of an extender to start, or none),
#   EXTENDER_PROFILE (the profile that the extender serves), TIMEOUT (the time limit for placing all pods), KEEP (yes:
#   everything runs until Ctrl-C), and those of make binary.
# Exit: that of kube-scheduler-run: 0 if all pods are placed as expected.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

config=${CONFIG:-$ROOT/manifests/config/my-scheduler.yaml}
# need_file NAME FILE NEXT ends the script if FILE is not a file.
need_file() {
  [[ -e $2 ]] || fail "$1$2 does not exist" "$3"
  [[ -f $2 ]] || fail "$1$2 is not a file" "$3"
}
need_file CONFIG= "$config" "ls manifests/config; make run CONFIG=manifests/config/my-scheduler.yaml"
[[ ${NODES:-5} =~ ^[1-9][0-9]*$ && ${PODS:-10} =~ ^[0-9]+$ ]] ||
  fail "NODES=${NODES:-5} PODS=${PODS:-10} are not numbers of nodes and pods" "make run NODES=5 PODS=10"
[[ ${TIMEOUT:-1m} =~ ^([0-9]+[hms])+$ ]] || fail "TIMEOUT=${TIMEOUT:-} is not a duration" "make run TIMEOUT=5m"
# Spaces separate the names of files, as in make.
for manifest in ${MANIFEST:-}; do
  need_file 'MANIFEST: ' "$manifest" "ls manifests/examples/run, then pass a file that exists"
done
[[ ${EXTENDER:-none} == none ]] ||
  need_file EXTENDER= "$EXTENDER" "pass a scheduler configuration that exists, or EXTENDER=none"
build=(make --no-print-directory -C "$ROOT" binary)
# The servers are built from the tree. They start while the scheduler is built.
patches_applied || make --no-print-directory -C "$ROOT" tree
use_pinned_go
servers=(kube-apiserver etcd kwok)
# Prometheus takes a minute more to build.
if grep -q NodeLoad "$config" && grep -Eq 'http://(127\.|localhost|\[::1\])' "$config"; then servers+=(prometheus); fi
# At most two builds run at a time, because upstream's generator for kube-apiserver takes a CPU for a minute.
# shellcheck disable=SC2016 # For the shells inside.
printf '%s\n' "${servers[@]}" |
  xargs -P 2 -n 1 bash -c 'source "$1/scripts/environment.sh" && use_pinned_go && build_server "$2"' run.sh "$ROOT" || exit 1
run=$(build_tool kube-scheduler-run)
# CRDs and RBAC that plugins need.
crds=$OUTPUT/crds
rm -rf "$crds"
mkdir -p "$crds"
"$(build_tool kube-scheduler-build)" source crds "$MODULES_FILE" "$crds"
more=(--objects "$crds" --objects "$ROOT/manifests/crds" --objects "$ROOT/manifests/rbac")
for manifest in ${MANIFEST:-}; do more+=(--manifest "$manifest"); done
[[ -z ${LOG:-} ]] || more+=(--show-log "$LOG")
[[ ${KEEP:-} != yes ]] || more+=(--keep)
[[ -z ${EXTENDER:-} ]] || more+=(--extender-config "$EXTENDER")
[[ ${servers[*]} != *prometheus ]] || more+=(--prometheus "$OUTPUT/tools/prometheus")
[[ -z ${EXTENDER_PROFILE:-} ]] || more+=(--extender-profile "$EXTENDER_PROFILE")
# The program decides from the configuration whether to start an extender. It is built here if it may be needed.
if [[ ${EXTENDER:-} != none ]] && { [[ -n ${EXTENDER:-} ]] || grep -q extenders "$config"; }; then
  extender=$(build_tool scheduler-extender extender)
  more+=(--scheduler-extender "$extender" --default-extender-config "$ROOT/manifests/config/extender-plugins.yaml")
fi
exec "$run" --kube-apiserver "$OUTPUT/tools/kube-apiserver" --kube-scheduler "$OUTPUT/bin/linux/$HOST_ARCH/kube-scheduler" \
  --etcd "$OUTPUT/tools/etcd" --kwok "$OUTPUT/tools/kwok" --config "$config" --nodes "${NODES:-5}" --pods "${PODS:-10}" \
  --timeout "${TIMEOUT:-1m}" "${more[@]}" -- "${build[@]}"
