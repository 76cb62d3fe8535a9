#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares the scheduler's memory at rest in stock Kubernetes and in the patched tree: the live bytes with ten pods on
# each node, after decisions about pods of many kinds.
#
# Inputs: the tree that apply-patches.sh made; (environment) NODES (15000). Exit: 0 measured; 1 a run failed and printed
# the reason.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/stock-and-fork.sh"

use_pinned_go
bench=$OUTPUT/bench/memory
rm -rf "$bench"
compile_both ./benchmark "$bench"
for side in stock fork; do
  "$bench/$side.test" -test.run='^$' -test.bench='^BenchmarkAtRest$' -test.benchtime=1x -test.timeout=0 \
    -nodes="${NODES:-15000}" > "$bench/$side.txt" 2>&1 ||
    { cat "$bench/$side.txt" >&2; fail "the benchmark of $side failed" "read the output above"; }
done
printf '| nodes, pods | MB: stock | fork | ratio |\n|---|---:|---:|---:|\n'
medians "$bench/stock.txt" "$bench/fork.txt" 'alive-B 1000000 0 ratio'
