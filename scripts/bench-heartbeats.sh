#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares the cost of heartbeats of nodes in stock Kubernetes and in the patched tree: the CPU time of those of a second,
# of an attempt to schedule a pod, and of both, alternating. Prints a Markdown table with medians.
#
# Inputs: the tree that apply-patches.sh made; (environment) NODES (5000), with a heartbeat every 10 s each; ROUNDS (5).
# Exit: 0 measured; 1 a run failed and printed the reason.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/stock-and-fork.sh"

use_pinned_go
bench=$OUTPUT/bench/heartbeats
rm -rf "$bench"
compile_both ./benchmark "$bench"
for ((round = 1; round <= ${ROUNDS:-5}; round++)); do
  if ((round % 2)); then order=(stock fork); else order=(fork stock); fi
  for side in "${order[@]}"; do
    "$bench/$side.test" -test.run='^$' -test.bench='^BenchmarkHeartbeats$' -test.benchtime=40x -test.timeout=0 \
      -nodes="${NODES:-5000}" -running=300 > "$bench/log" 2>&1 ||
      { cat "$bench/log" >&2; fail "the benchmark of $side failed" "read the output above"; }
    grep '^Benchmark' "$bench/log" >> "$bench/$side.txt"
  done
done
printf '| shape, nodes, CPU time of | CPU µs: stock | fork | ratio | kB: stock | fork | ratio |\n'
printf '|---|---:|---:|---:|---:|---:|---:|\n'
medians "$bench/stock.txt" "$bench/fork.txt" 'cpu-ns/op 1000 0 ratio' 'B/op 1000 0 ratio'
