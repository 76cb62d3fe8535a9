#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures the cost of each plugin in the patched tree, and of Coscheduling with CapacityScheduling: a decision of the
# default profile with and without it, alternating, each in its own process; and calls per node of this project's
# plugins. Prints two Markdown tables. Takes about ten minutes; the machine should be idle otherwise.
#
# Inputs: the tree that apply-patches.sh made; (environment) NODES (5000), DECISIONS (1000) in each run, ROUNDS (6) of a
# run with and one without each plugin. Exit: 0 measured; 1 a run failed and printed the reason.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/stock-and-fork.sh"

NODES=${NODES:-5000} DECISIONS=${DECISIONS:-1000} ROUNDS=${ROUNDS:-6}
use_pinned_go
export GOWORK=off GOFLAGS=''
work=$(mktemp -d "${TMPDIR:-/tmp}/measure-plugins.XXXXXX")
trap 'rm -rf "$work"' EXIT
compile ./plugins "$work/decision" "$ROOT/test/inprocess" "$TREE"
cd "$ROOT/plugins"

# benchmarks BINARY ARGUMENT… prints the lines of the benchmarks, without the number of processors after their names.
benchmarks() {
  "$@" > "$work/log" 2> "$work/errors" || { cat "$work/log" "$work/errors" >&2; fail "${1##*/} failed" "read the output above"; }
  sed -En 's/^Benchmark([^ \t]*[^0-9 \t-])(-[0-9]+)?[ \t]/\1 /p' "$work/log"
}

# decision NAME prints the time of a decision in ns.
decision() {
  benchmarks "$work/decision.test" -test.run='^$' -test.bench="^BenchmarkDecision\$/^$1\$" -test.benchtime="${DECISIONS}x" -nodes="$NODES" |
    awk '{ for (i = 2; i < NF; i++) if ($(i + 1) == "ns/op") print $i }'
}

names=$(benchmarks "$work/decision.test" -test.run='^$' -test.bench='^BenchmarkDecision$' -test.benchtime=1x -nodes=10 |
  awk '{ sub("Decision/", "", $1); if ($1 != "default") print $1 }')

say "$(nproc) cores, $GO_VERSION, $(uname -m), load $(cut -d' ' -f1 /proc/loadavg) at the start; $NODES nodes, $DECISIONS decisions, medians of $ROUNDS rounds"
for ((round = 1; round <= ROUNDS; round++)); do
  for name in $names; do
    # The order alternates, because the second run finds the machine in a different state.
    ((round % 2)) || with=$(decision "$name")
    without=$(decision default)
    ((round % 2 == 0)) || with=$(decision "$name")
    printf '%s %s %s\n' "$name" "$without" "$with"
  done
done > "$work/decisions"

median() { sort -g | awk '{ v[NR] = $1 } END { printf "%.*f", digits, (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }' digits="$1"; }

printf '\n| default profile and | µs per decision | default alone | ratio |\n|---|---:|---:|---:|\n'
for name in $names; do
  rows=$(grep "^$name " "$work/decisions")
  printf '| %s | %s | %s | %s |\n' "${name/#empty/a score plugin that does nothing}" "$(awk '{ print $3 / 1000 }' <<< "$rows" | median 0)" \
    "$(awk '{ print $2 / 1000 }' <<< "$rows" | median 0)" "$(awk '{ print $3 / $2 }' <<< "$rows" | median 3)"
done

printf '\n| plugin | call | ns per node | allocations per node |\n|---|---|---:|---:|\n'
for name in $names; do
  [[ -d $ROOT/plugins/${name,,} ]] || continue
  go test -c -o "$work/calls" "./${name,,}"
  # The number of nodes in an operation is its time per operation divided by its time per node.
  benchmarks "$work/calls" -test.run='^$' -test.bench=. -test.skip=Refresh -test.benchtime=200x | awk -v plugin="$name" '{
    delete value
    for (i = 3; i < NF; i += 2) value[$(i + 1)] = $i
    if (value["ns/node"] > 0) printf "| %s | %s | %.1f | %.2f |\n", plugin, $1, value["ns/node"], value["allocs/op"] * value["ns/node"] / value["ns/op"]
  }'
done

# The collector uses at most one core.
go test -c -o "$work/calls" ./nodeload
benchmarks "$work/calls" -test.run='^$' -test.bench='^BenchmarkRefresh$' -test.cpu=1 -test.benchtime=20x |
  awk '{ for (i = 3; i < NF; i++) if ($(i + 1) == "ms/refresh") printf "\nA refresh of NodeLoad, 5,000 nodes and 5 resources, on one core: %s ms\n", $i }'
