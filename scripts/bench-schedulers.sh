#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures how many pods one, two and three schedulers bind in a second on one API server with 1,000 nodes, stock and
# ours, with and without a pool of nodes for each. Prints a table in Markdown with medians; the shares are of one
# processor. The machine should have nothing else to do: API server, etcd and schedulers share its processors.
#
# Inputs: the binary of build-binary.sh; (environment) ROUNDS (3). Output: _output/bench/schedulers/. Exit: 0 measured; 1
# a run failed and printed the reason.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/stock-and-fork.sh"

use_pinned_go
bench=$OUTPUT/bench/schedulers
rm -rf "$bench"
mkdir -p "$bench"
build_server etcd kwok kube-apiserver kube-scheduler
export ETCD=$OUTPUT/tools/etcd KWOK=$OUTPUT/tools/kwok KUBE_APISERVER=$OUTPUT/tools/kube-apiserver
GOWORK=off CGO_ENABLED=0 go test -C "$ROOT/test" -trimpath -vet=off -c -o "$bench/schedulers.test" ./integration/schedulers
for ((round = 1; round <= ${ROUNDS:-3}; round++)); do
  for side in stock fork; do
    scheduler=$OUTPUT/tools/kube-scheduler
    [[ $side == stock ]] || scheduler=$OUTPUT/bin/linux/$HOST_ARCH/kube-scheduler
    say "bench-schedulers: round $round, $side"
    KUBE_SCHEDULER=$scheduler "$bench/schedulers.test" -test.run='^$' -test.bench=Throughput -test.benchtime=1x -test.timeout=0 \
      > "$bench/log" 2>&1 || { cat "$bench/log" >&2; fail "the benchmark of $side failed" "read the output above"; }
    grep '^Benchmark' "$bench/log" >> "$bench/$side.txt"
  done
done
printf '| qps, schedulers, pools | pods a second: stock | fork | %% for API server and etcd: stock | fork | %% for schedulers: stock | fork '
printf '| overcommitted nodes: stock | fork |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n'
medians "$bench/stock.txt" "$bench/fork.txt" 'pods/s 1 0' 'servers-% 1 0' 'schedulers-% 1 0' 'overcommitted-nodes 1 0'
