#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs test/integration/soak at full size: an API server and etcd with many pods, the time from the start of a scheduler
# to its first binding, stock and ours, and then what ours hold while pods, nodes and gangs come and go. 5,000 nodes need
# about 10 GB of memory and 3 GB in TMPDIR. Fails if the heap, goroutines or files of a scheduler grow after five minutes.
#
# Inputs: the binary of build-binary.sh; (environment) NODES (5000), with 30 pods each; DURATION (1h); ROUNDS (3), how
# often each scheduler is started. Output: _output/soak/, heap profiles. Exit: 0 nothing grows; 1 something does, or a
# run failed and printed the reason.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

use_pinned_go
export RESULTS=$OUTPUT/soak
rm -rf "$RESULTS"
mkdir -p "$RESULTS"
build_server etcd kwok kube-apiserver kube-scheduler
export ETCD=$OUTPUT/tools/etcd KWOK=$OUTPUT/tools/kwok KUBE_APISERVER=$OUTPUT/tools/kube-apiserver
export KUBE_SCHEDULER=$OUTPUT/bin/linux/$HOST_ARCH/kube-scheduler STOCK_SCHEDULER=$OUTPUT/tools/kube-scheduler
GOWORK=off CGO_ENABLED=0 go test -C "$ROOT/test" -count=1 -trimpath -vet=off -v -timeout 0 ./integration/soak \
  -nodes="${NODES:-5000}" -duration="${DURATION:-1h}" -starts="${ROUNDS:-3}"
