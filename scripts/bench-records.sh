#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures the cost of decision records with the decision benchmark in the patched tree, compiled with records (the
# default) and without, alternating; and the time that a what-if blocks scheduling (held-ns/op, for each round). Prints
# a Markdown table with medians. The machine should be idle otherwise.
#
# Inputs: as bench.sh. Exit: 0 measured; 1 a run failed and printed the reason.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/stock-and-fork.sh"

NODES=${NODES:-5000} PARALLELISM=${PARALLELISM:-1} SHAPES=${SHAPES:-.} DECISIONS=${DECISIONS:-200} ROUNDS=${ROUNDS:-6}
use_pinned_go
bench=$OUTPUT/bench-records
rm -rf "$bench"
mkdir -p "$bench"
compile ./benchmark "$bench/with" "$ROOT/test/inprocess" "$TREE"
use_tree "$bench/without" "$ROOT/test/inprocess" "$TREE"
records=$TREE/pkg/scheduler/framework/plugins/shared/records/records.go
sed 's/^var DefaultOptions = Options{.*}$/var DefaultOptions = Options{}/' "$records" > "$bench/records.go"
! cmp -s "$records" "$bench/records.go" || fail "$records has no line with DefaultOptions to change" "change $0 with it"
sed -i "s#{\"Replace\": {#&\"$records\": \"$bench/records.go\", #; s#, }}#}}#" "$bench/without.overlay.json"
test_with "$bench/without" "$ROOT/test/inprocess" -c -o "$bench/without.test" ./benchmark

say "$(nproc) cores, $GO_VERSION, $(uname -m), load $(cut -d' ' -f1 /proc/loadavg) at the start; $DECISIONS decisions, medians of $ROUNDS rounds"
for ((round = 1; round <= ROUNDS; round++)); do
  # The order alternates, because the second run finds the machine in a different state.
  if ((round % 2)); then order=(without with); else order=(with without); fi
  for side in "${order[@]}"; do measure_decisions "$bench/$side"; done
done

printf '\n| shape, nodes, workers | µs: without | with | ratio | CPU µs: without | with | ratio | kB: without | with |\n'
printf '|---|---:|---:|---:|---:|---:|---:|---:|---:|\n'
medians "$bench/without.txt" "$bench/with.txt" 'ns/op 1000 1 ratio' 'cpu-ns/op 1000 1 ratio' 'B/op 1000 1'

"$bench/with.test" -test.run='^$' -test.bench="^BenchmarkWhatIf\$/^shape=.*($SHAPES)" -test.benchtime=20x -test.count="$ROUNDS" \
  -test.timeout=0 -nodes="$NODES" -parallelism="$PARALLELISM" > "$bench/what-if.log" 2>&1 ||
  { cat "$bench/what-if.log" >&2; fail "the benchmark of what-ifs failed" "read the output above"; }
say ""
grep ^Benchmark "$bench/what-if.log"
