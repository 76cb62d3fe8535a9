#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares the cost of a decision in stock Kubernetes and in the patched tree: the same benchmarks, compiled with the
# same Go and flags, alternating. Prints a Markdown table with medians. The benchmarks' output, in the format of
# benchstat, goes to _output/bench/stock.txt and fork.txt. The machine should be idle otherwise.
#
# Inputs: the tree that apply-patches.sh made; (environment) NODES (5000) and PARALLELISM (1), numbers separated by
# commas; SHAPES (.), a regular expression; DECISIONS (200) in each round; ROUNDS (6) of each; BENCHMARK (Decision),
# Adversary for clusters in which what is kept between decisions may cost more than it saves, with their own NODES, or
# Heartbeats for those of nodes in a second, an attempt to schedule a pod, and both.
# Exit: 0 measured; 1 a run failed and printed the reason.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/stock-and-fork.sh"

NODES=${NODES:-5000} PARALLELISM=${PARALLELISM:-1} SHAPES=${SHAPES:-.} DECISIONS=${DECISIONS:-200} ROUNDS=${ROUNDS:-6}
use_pinned_go
bench=$OUTPUT/bench
rm -rf "$bench"
compile_both ./benchmark "$bench"

say "$(nproc) cores, $GO_VERSION, $(uname -m), load $(cut -d' ' -f1 /proc/loadavg) at the start; $DECISIONS decisions, medians of $ROUNDS rounds"
for ((round = 1; round <= ROUNDS; round++)); do
  # The order alternates, because the second run finds the machine in a different state.
  if ((round % 2)); then order=(stock fork); else order=(fork stock); fi
  for side in "${order[@]}"; do measure_decisions "$bench/$side"; done
done

printf '\n| shape, nodes, workers | µs: stock | fork | ratio | CPU µs: stock | fork | ratio | allocations: stock | fork | kB: stock | fork | ratio |\n'
printf '|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n'
medians "$bench/stock.txt" "$bench/fork.txt" 'ns/op 1000 0 ratio' 'cpu-ns/op 1000 0 ratio' 'allocs/op 1 0' 'B/op 1000 0 ratio'
