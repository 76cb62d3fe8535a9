#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs one of the benchmarks of test/integration/schedulers with the stock scheduler and with ours, alternating, on an API
# server, etcd and fake nodes. Prints a table in Markdown with medians; the shares are of one processor. The machine
# should have nothing else to do: API server, etcd and schedulers share its processors.
#
#   Throughput  how many pods one, two and three schedulers bind in a second, with 1,000 nodes, with and without a pool of
#               nodes for each
#   Queue       how long a pod that fits waits while 5,000 pods that do not fit are pending, and pods end; a second row
#               has ours with --requeue-by-freed-node
#
# Inputs: the binary of build-binary.sh; (argument) the benchmark; (environment) ROUNDS (3). Output:
# _output/bench/<benchmark>/. Exit: 0 measured; 1 a run failed and printed the reason.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/stock-and-fork.sh"

sides=(stock fork)
case $1 in
  Throughput)
    header='| qps, schedulers, pools | pods a second: stock | fork | % for API server and etcd: stock | fork | % for schedulers: stock | fork | overcommitted nodes: stock | fork |'
    columns=('pods/s 1 0' 'servers-% 1 0' 'schedulers-% 1 0' 'overcommitted-nodes 1 0')
    ;;
  Queue)
    sides+=(option)
    header='| nodes | ms a pod waits, median: stock | fork | ratio | 99th percentile: stock | fork | ratio | longest: stock | fork | ratio | % for the scheduler: stock | fork | ratio | % for API server and etcd: stock | fork | writes a second: stock | fork | arrived a second: stock | fork |'
    columns=('wait-p50-ms 1 1 ratio' 'wait-p99-ms 1 0 ratio' 'wait-max-ms 1 0 ratio' 'scheduler-% 1 0 ratio' 'servers-% 1 0' 'writes/s 1 0' 'arrived/s 1 1')
    ;;
  *) fail "there is no benchmark $1" 'make bench-schedulers, or make bench-queue' ;;
esac

use_pinned_go
bench=$OUTPUT/bench/${1,,}
rm -rf "$bench"
mkdir -p "$bench"
build_server etcd kwok kube-apiserver kube-scheduler
export ETCD=$OUTPUT/tools/etcd KWOK=$OUTPUT/tools/kwok KUBE_APISERVER=$OUTPUT/tools/kube-apiserver
GOWORK=off CGO_ENABLED=0 go test -C "$ROOT/test" -trimpath -vet=off -c -o "$bench/schedulers.test" ./integration/schedulers
for ((round = 1; round <= ${ROUNDS:-3}; round++)); do
  for side in "${sides[@]}"; do
    flags=
    [[ $side != option ]] || flags=--requeue-by-freed-node
    scheduler=$OUTPUT/tools/kube-scheduler
    [[ $side == stock ]] || scheduler=$OUTPUT/bin/linux/$HOST_ARCH/kube-scheduler
    say "benchmark $1: round $round, $side"
    SCHEDULER_FLAGS=$flags KUBE_SCHEDULER=$scheduler "$bench/schedulers.test" -test.run='^$' -test.bench="$1" -test.benchtime=1x -test.timeout=0 \
      > "$bench/log" 2>&1 || { cat "$bench/log" >&2; fail "the benchmark of $side failed" "read the output above"; }
    grep '^Benchmark' "$bench/log" >> "$bench/$side.txt"
  done
done
say "$header"
tr -dc '|' <<< "$header" | sed 's/|/---:|/g; s/^---:|/|/; s/|---:|/|---|/'
printf '\n'
medians "$bench/stock.txt" "$bench/fork.txt" "${columns[@]}"
[[ $1 != Queue ]] || medians "$bench/stock.txt" "$bench/option.txt" "${columns[@]}" | sed 's/^| [^|]*/&with --requeue-by-freed-node /'
