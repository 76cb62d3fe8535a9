#!/usr/bin/env bash
# Starts a local control plane with fake nodes and the scheduler that was built, creates pods, and prints where each went.
#
# Inputs: NODES, PODS, CONFIG, KEEP (yes: leave it running until Ctrl-C); binaries that build-binary.sh made. Exit: that of kube-scheduler-run: 0 all pods were placed.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

config=${CONFIG:-$ROOT/manifests/config/my-scheduler.yaml}
[[ -f $config ]] || fail "CONFIG=$config is not there" "ls manifests/config; make run CONFIG=manifests/config/my-scheduler.yaml"
use_pinned_go
ARCH=$HOST_ARCH bash "$ROOT/scripts/build-binary.sh" cmd/kube-apiserver
run=$(build_tool kube-scheduler-run)
etcd=$(build_server etcd go.etcd.io/etcd/server/v3)
kwok=$(build_server kwok sigs.k8s.io/kwok/cmd/kwok)
keep=()
[[ ${KEEP:-} != yes ]] || keep=(--keep)
exec "$run" --kube-apiserver "$OUTPUT/bin/linux/$HOST_ARCH/kube-apiserver" --kube-scheduler "$OUTPUT/bin/linux/$HOST_ARCH/kube-scheduler" \
  --etcd "$etcd" --kwok "$kwok" --config "$config" --nodes "${NODES:-5}" --pods "${PODS:-10}" "${keep[@]}"
