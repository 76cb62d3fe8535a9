#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures the gain of each speed patch with the decision benchmark, compiled at the commit before the first of them and
# at each of their commits, in the order of the series. Prints a Markdown table for each patch, with the shapes whose
# time or memory it changes by more than a tenth. The machine should be idle otherwise.
#
# Inputs: the tree that apply-patches.sh made; (environment) those of bench.sh, but only one number each for NODES and
# PARALLELISM; DECISIONS (60) and ROUNDS (2). Output: _output/bench-patches/. Exit: 0 measured; 1 a run failed and
# printed the reason.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/stock-and-fork.sh"

NODES=${NODES:-5000} PARALLELISM=${PARALLELISM:-1} SHAPES=${SHAPES:-.} DECISIONS=${DECISIONS:-60} ROUNDS=${ROUNDS:-2}
use_pinned_go
bench=$OUTPUT/bench-patches
cleanup() { rm -rf "$bench/tree"; git -C "$TREE" worktree prune; }
trap cleanup EXIT
rm -rf "$bench"
mkdir -p "$bench"
git -C "$TREE" worktree prune

# The patches are the last commits of the tree, in the order of their names.
read_series "$(build_tool kube-scheduler-build)"
names=(before)
head=$(recorded applied.head)
for ((i = 0; i < ${#patches[@]}; i++)); do
  name=${patches[i]##*/}
  [[ $name == 05* ]] || continue
  if ((${#names[@]} == 1)); then
    git -C "$TREE" worktree add -q --detach "$bench/tree" "$head~$((${#patches[@]} - i))"
    compile ./benchmark "$bench/before" "$ROOT/test/inprocess" "$bench/tree"
  fi
  names+=("${name%%-*}")
  git -C "$bench/tree" checkout -q --detach "$head~$((${#patches[@]} - i - 1))"
  say "compiling at ${name%.patch}"
  compile ./benchmark "$bench/${name%%-*}" "$ROOT/test/inprocess" "$bench/tree"
done

say "$(nproc) cores, $GO_VERSION, $(uname -m), load $(cut -d' ' -f1 /proc/loadavg) at the start; $NODES nodes, $DECISIONS decisions, medians of $ROUNDS rounds"
for ((round = 1; round <= ROUNDS; round++)); do
  for name in "${names[@]}"; do
    measure_decisions "$bench/$name"
  done
done

for ((i = 1; i < ${#names[@]}; i++)); do
  printf '\n### %s\n\n' "$(basename "$PATCHES_DIR/${names[i]}"-*.patch)"
  printf '| shape, nodes, workers | µs: without | with | ratio | kB: without | with | ratio |\n|---|---:|---:|---:|---:|---:|---:|\n'
  medians "$bench/${names[i - 1]}.txt" "$bench/${names[i]}.txt" 'ns/op 1000 0 ratio' 'B/op 1000 0 ratio' |
    awk -F'|' '$5 > 1.1 || $5 < 0.9 || $8 > 1.1 || $8 < 0.9'
done
