#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures, and prints Markdown tables with medians. What they are computed from, in the format of benchstat, and logs go to
# _output/bench/<NAME>. The machine should be idle otherwise. NAME is one of:
#
#   decisions   a decision in stock Kubernetes and in the patched tree; BENCHMARK (Decision), or Adversary for clusters in
#               which what is kept between decisions may cost more than it saves, with their own NODES, or Heartbeats for
#               those of nodes in a second, an attempt to schedule a pod, and both
#   patches     what each speed patch, 05*, adds to those before it: the shapes that it changes by more than a tenth
#   records     a decision with records (the default) and without, and how long a what-if blocks scheduling
#   plugins     a decision of the default profile with each plugin (empty scores and does nothing) and without; calls per node
#   memory      the live bytes with ten pods on each node, after decisions about pods of many kinds, stock and here
#   cluster     upstream's scheduler_perf, and test/inprocess/schedulerperf/churn.yaml, stock and here; NODES, 500 or 5000
#               or both; WORKLOADS, names of their tests, separated by commas. Needs about 1 GB in /dev/shm
#   schedulers  pods that one, two and three schedulers bind in a second, stock and here
#   queue       how long a pod that fits waits while 5,000 that do not fit are pending, stock and here
#   gangs       gangs here, and in BEFORE, a checkout of an earlier commit with the same programs: SEED (1) of the days,
#               LIMIT (900), the seconds after which a day is cut off, ONLY, a regular expression for attempt, day, server
#   simulate    kube-scheduler-simulate: times and memory; TRACES, a directory with OpenB's lists; ONLY, one for the rows
#   soak        test/integration/soak at full size, for DURATION (1h); needs about 10 GB of memory and 3 GB in TMPDIR
#
# Inputs: the tree and the programs of `make bench NAME=…`; (environment) NODES and PARALLELISM (1), numbers separated by
# commas; SHAPES (.), a regular expression; DECISIONS in each round; ROUNDS.
# Exit: 0 measured; 1 a run failed, or the soak found growth, and printed the reason.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/stock-and-fork.sh"

NAME=${NAME:-decisions} PARALLELISM=${PARALLELISM:-1} SHAPES=${SHAPES:-.}
bench=$OUTPUT/bench/$NAME inprocess=$ROOT/test/inprocess programs=$OUTPUT/bin/linux/$HOST_ARCH

# run LOG COMMAND… runs a benchmark, and writes its output to LOG, without that to stderr, which would divide lines.
run() { "${@:2}" > "$1" 2> "$1.errors" || { cat "$1" "$1.errors" >&2; fail "the benchmark $NAME failed" "read the output above, and $1"; }; }

# format COMMAND… runs test/bench.
format() { "$bench/bench" "$@"; }

# rounds COMMAND SIDE SIDE runs COMMAND SIDE for both, ROUNDS times. The order alternates, because the second run finds the
# machine in a different state.
rounds() {
  local round side sides
  for ((round = 1; round <= ROUNDS; round++)); do
    if ((round % 2)); then sides=("$2" "$3"); else sides=("$3" "$2"); fi
    for side in "${sides[@]}"; do "$1" "$side"; done
  done
}

# decide SIDE measures decisions once.
decide() {
  run "$bench/$1.log" "$bench/$1.test" -test.run='^$' -test.bench="^Benchmark${BENCHMARK:-Decision}\$/^shape=.*($SHAPES)" \
    -test.benchtime="${DECISIONS}x" -test.timeout=0 -nodes="$NODES" -parallelism="$PARALLELISM"
  cat "$bench/$1.log" >> "$bench/$1.txt"
}

decisions() {
  compile_both ./benchmark "$bench"
  rounds decide stock fork
  format table 'shape, nodes, workers' "$bench/stock.txt" "$bench/fork.txt" \
    'µs: ns/op 1000 0 ratio' 'CPU µs: cpu-ns/op 1000 1 ratio' 'allocations: allocs/op 1 0' 'kB: B/op 1000 0 ratio'
}

# The benchmark is compiled at the commit before the first speed patch, and at that of each. The patches are the last
# commits of the tree, in the order of their names.
patches() {
  local names=() name head i round
  trap 'rm -rf "$bench/tree"; git -C "$TREE" worktree prune' EXIT
  git -C "$TREE" worktree prune
  read_series "$(build_tool kube-scheduler-build)"
  head=$(recorded applied.head)
  # shellcheck disable=SC2154
  for ((i = 0; i < ${#patches[@]}; i++)); do
    name=$(basename "${patches[i]}" .patch)
    [[ $name == 05* ]] || continue
    if ((${#names[@]} == 0)); then
      git -C "$TREE" worktree add -q --detach "$bench/tree" "$head~$((${#patches[@]} - i))"
      compile ./benchmark "$bench/before" "$inprocess" "$bench/tree"
      names=(before)
    fi
    names+=("$name")
    git -C "$bench/tree" checkout -q --detach "$head~$((${#patches[@]} - i - 1))"
    say "compiling at $name"
    compile ./benchmark "$bench/$name" "$inprocess" "$bench/tree"
  done
  ((${#names[@]} > 0)) || fail "no patch of the series is a speed patch, 05*" "ls $PATCHES_DIR"
  for ((round = 1; round <= ROUNDS; round++)); do
    for name in "${names[@]}"; do decide "$name"; done
  done
  for ((i = 1; i < ${#names[@]}; i++)); do
    printf '\n### %s\n' "${names[i]}"
    cp "$bench/${names[i - 1]}.txt" "$bench/without.txt"
    cp "$bench/${names[i]}.txt" "$bench/with.txt"
    format table -changed 'shape, nodes, workers' "$bench/without.txt" "$bench/with.txt" 'µs: ns/op 1000 0 ratio' 'kB: B/op 1000 0 ratio'
  done
}

records() {
  local options=$TREE/pkg/scheduler/framework/plugins/shared/records/records.go
  compile ./benchmark "$bench/with" "$inprocess" "$TREE"
  use_tree "$bench/without" "$inprocess" "$TREE"
  sed 's/^var DefaultOptions = Options{.*}$/var DefaultOptions = Options{}/' "$options" > "$bench/records.go"
  ! cmp -s "$options" "$bench/records.go" || fail "$options has no line with DefaultOptions to change" "change $0 with it"
  sed -i "s#{\"Replace\": {#&\"$options\": \"$bench/records.go\", #; s#, }}#}}#" "$bench/without.overlay.json"
  test_with "$bench/without" "$inprocess" -c -o "$bench/without.test" ./benchmark
  rounds decide without with
  format table 'shape, nodes, workers' "$bench/without.txt" "$bench/with.txt" \
    'µs: ns/op 1000 1 ratio' 'CPU µs: cpu-ns/op 1000 1 ratio' 'kB: B/op 1000 1'
  run "$bench/what-if.log" "$bench/with.test" -test.run='^$' -test.bench="^BenchmarkWhatIf\$/^shape=.*($SHAPES)" \
    -test.benchtime=20x -test.count="$ROUNDS" -test.timeout=0 -nodes="$NODES" -parallelism="$PARALLELISM"
  grep ^Benchmark "$bench/what-if.log"
}

# plugin_decision SIDE measures a decision with the plugin $plugin, or alone without it, in a line with its name, too.
plugin_decision() {
  local profile=$plugin
  [[ $1 == with ]] || profile=default
  run "$bench/log" "$bench/decision.test" -test.run='^$' -test.bench="^BenchmarkDecision\$/^$profile\$" \
    -test.benchtime="${DECISIONS}x" -nodes="$NODES"
  sed "s#^BenchmarkDecision/$profile\>#BenchmarkDecision/$plugin#" "$bench/log" >> "$bench/$1.txt"
}

# Each decision is measured in its own process, because every decision adds a pod.
plugins() {
  local plugin names
  compile ./plugins "$bench/decision" "$inprocess" "$TREE"
  run "$bench/log" "$bench/decision.test" -test.run='^$' -test.bench='^BenchmarkDecision$' -test.benchtime=1x -nodes=10
  names=$(sed -En 's#^BenchmarkDecision/([A-Za-z-]*[A-Za-z]).*#\1#p' "$bench/log" | grep -vx default)
  for plugin in $names; do rounds plugin_decision alone with; done
  format table 'default profile and' "$bench/with.txt" "$bench/alone.txt" 'µs per decision: ns/op 1000 0 ratio'

  export GOWORK=off GOFLAGS=''
  printf '\n| plugin | call | ns per node | allocations per node |\n|---|---|---:|---:|\n'
  for plugin in $names; do
    [[ -d $ROOT/plugins/${plugin,,} ]] || continue
    go test -C "$ROOT/plugins" -c -o "$bench/calls.test" "./${plugin,,}"
    run "$bench/$plugin.txt" "$bench/calls.test" -test.run='^$' -test.bench=. -test.skip=Refresh -test.benchtime=200x
    ! grep -q ns/node "$bench/$plugin.txt" || format calls "$plugin" "$bench/$plugin.txt"
  done
  # The collector uses at most one core.
  go test -C "$ROOT/plugins" -c -o "$bench/calls.test" ./nodeload
  run "$bench/refresh.txt" "$bench/calls.test" -test.run='^$' -test.bench='^BenchmarkRefresh$' -test.cpu=1 -test.benchtime=20x
  grep ^Benchmark "$bench/refresh.txt"
}

memory() {
  local side
  compile_both ./benchmark "$bench"
  for side in stock fork; do
    run "$bench/$side.txt" "$bench/$side.test" -test.run='^$' -test.bench='^BenchmarkAtRest$' -test.benchtime=1x -test.timeout=0 \
      -nodes="$NODES"
  done
  format table 'nodes, pods' "$bench/stock.txt" "$bench/fork.txt" 'MB: alive-B 1000000 0 ratio'
}

# Each run is a process group: what it leaves, such as etcd when the test breaks off, ends with it.
end_run() {
  [[ -z ${pid:-} ]] || kill -KILL -- "-$pid" 2> /dev/null || true
  pid=
}

# perf SIDE runs $workload once. An etcd that already runs on this machine is not used: nothing answers at port 0.
perf() {
  local status=0
  set -o monitor
  (cd "$bench" && PATH=$OUTPUT/tools:$PATH TMPDIR=$memory KUBE_INTEGRATION_ETCD_URL=http://127.0.0.1:0 \
    exec "./$1.test" -test.run='^$' -test.bench="^BenchmarkPerfScheduling\$/^${workload//\//\$/^}\$" -test.benchtime=1x \
    -test.timeout=30m -data-items-dir="$memory") > "$memory/log" 2>&1 &
  pid=$!
  set +o monitor
  wait "$pid" || status=$?
  end_run
  if ((status)) || ! format times "$workload" "$memory/log" >> "$bench/$1.txt"; then
    mv "$memory/log" "$bench/log"
    grep -E -A5 '^(panic|---|F[0-9]{4} |    [a-z_]+\.go:)' "$bench/log" >&2 || true
    fail "$workload failed with $1, exit status $status" "read the output above, and $bench/log"
  fi
}

# The same test of upstream's, compiled with stock Kubernetes and with the patched tree. The API server and etcd share the
# machine's processors with the scheduler.
cluster() {
  local pin=$ROOT/build/pins/kubernetes ours=$inprocess/schedulerperf upstream memory workload workloads
  upstream=$(GOWORK=off go -C "$pin" list -m -f '{{.Dir}}' k8s.io/kubernetes)/test/integration/scheduler_perf
  cp -r --no-preserve=mode "$upstream/config" "$bench"
  cp "$ours/departing-pod.yaml" "$bench/config"
  format workloads "$upstream/config/performance-config.yaml" "$ours/churn.yaml" "$bench/config/performance-config.yaml" \
    "$NODES" "${WORKLOADS:-}" > "$bench/workloads"
  mapfile -t workloads < "$bench/workloads"
  build_server etcd kube-apiserver
  generate_openapi "$TREE" "$OUTPUT/version.sh"
  # Without cgo, as the servers are compiled: so they share what is compiled.
  CGO_ENABLED=0 compile_both k8s.io/kubernetes/test/integration/scheduler_perf "$bench" "$pin" "$OUTPUT/upstream/$VERSION"
  memory=$(mktemp -d /dev/shm/bench-cluster.XXXXXX) || fail "/dev/shm, where etcd's data goes, cannot be written to" \
    "mount -t tmpfs tmpfs /dev/shm, then run the same command again"
  # shellcheck disable=SC2064
  trap "end_run; rm -rf '$memory'" EXIT
  for workload in "${workloads[@]}"; do rounds perf stock fork; done
  format table 'test, nodes' "$bench/stock.txt" "$bench/fork.txt" 's until all are bound: ns/op 1000000000 2 ratio' \
    'ms a pod waits, median: wait-p50-ms 1 1 ratio' '99th percentile: wait-p99-ms 1 0 ratio'
  ! grep -q ' [1-9][0-9]* refused' "$bench"/{stock,fork}.txt ||
    say "The API server refused requests, and each then waited for a second: grep refused $bench/{stock,fork}.txt"
}

# servers compiles the benchmarks of test/integration/schedulers, and what they start: an API server, etcd and fake nodes,
# which share the machine's processors with the schedulers.
servers() {
  build_server etcd kwok kube-apiserver kube-scheduler kubectl
  export ETCD=$OUTPUT/tools/etcd KWOK=$OUTPUT/tools/kwok KUBE_APISERVER=$OUTPUT/tools/kube-apiserver KUBECTL=$OUTPUT/tools/kubectl
  GOWORK=off CGO_ENABLED=0 go test -C "$ROOT/test" -trimpath -vet=off -c -o "$bench/schedulers.test" ./integration/schedulers
}

# on_servers BENCHMARK SIDE SCHEDULER runs one of them once.
on_servers() {
  say "benchmark $1: $2"
  KUBE_SCHEDULER=$3 run "$bench/$2.log" "$bench/schedulers.test" -test.run='^$' -test.bench="$1" -test.benchtime=1x -test.timeout=0
  cat "$bench/$2.log" >> "$bench/$2.txt"
}

# on_side SIDE runs $benchmark once, with the scheduler of a side.
on_side() {
  local scheduler=$programs/kube-scheduler
  [[ $1 == fork ]] || scheduler=$OUTPUT/tools/kube-scheduler
  on_servers "$benchmark" "$1" "$scheduler"
}

# stock_and_here BENCHMARK TITLE COLUMN… compares both on these servers.
stock_and_here() {
  local benchmark=$1
  servers
  rounds on_side stock fork
  format table "$2" "$bench/stock.txt" "$bench/fork.txt" "${@:3}"
}

schedulers() {
  stock_and_here Throughput 'qps, schedulers, pools' 'pods a second: pods/s 1 0' '% for API server and etcd: servers-% 1 0' \
    '% for schedulers: schedulers-% 1 0' 'overcommitted nodes: overcommitted-nodes 1 0'
}

queue() {
  stock_and_here Queue nodes 'ms a pod waits, median: wait-p50-ms 1 1 ratio' '99th percentile: wait-p99-ms 1 0 ratio' \
    'longest: wait-max-ms 1 0 ratio' '% for the scheduler: scheduler-% 1 0 ratio' '% for API server and etcd: servers-% 1 0' \
    'writes a second: writes/s 1 0' 'arrived a second: arrived/s 1 1'
}

gangs() {
  local sides=(here) simulators=() side
  declare -A bin=([here]=$programs)
  say "here: $(git -C "$ROOT" rev-parse --short HEAD)"
  if [[ -n ${BEFORE:-} ]]; then
    sides=(before here)
    bin[before]=$BEFORE/_output/bin/linux/$HOST_ARCH
    say "before: $(git -C "$BEFORE" rev-parse --short HEAD)"
  fi
  for side in "${sides[@]}"; do simulators+=("$side=${bin[$side]}/kube-scheduler-simulate"); done
  (cd "$bench" && format gangs "$ROOT/manifests/config/gang.yaml" "${LIMIT:-900}" "${SEED:-1}" "${ONLY:-.}" "${simulators[@]}")
  [[ server =~ ${ONLY:-.} ]] || return 0
  servers
  for side in "${sides[@]}"; do
    on_servers Gang "$side" "${bin[$side]}/kube-scheduler"
    grep ^Benchmark "$bench/$side.txt"
  done
}

simulate() {
  [[ -n ${TRACES:-} || ! -d $ROOT/../shared/traces ]] || TRACES=$ROOT/../shared/traces
  [[ -z ${TRACES:-} ]] || TRACES=$(realpath "$TRACES")
  (cd "$bench" && format simulate "$programs/kube-scheduler-simulate" "$ROOT/manifests/config" "${TRACES:-}" "${ONLY:-.}")
}

soak() {
  build_server etcd kwok kube-apiserver kube-scheduler
  export RESULTS=$bench ETCD=$OUTPUT/tools/etcd KWOK=$OUTPUT/tools/kwok KUBE_APISERVER=$OUTPUT/tools/kube-apiserver
  export KUBE_SCHEDULER=$programs/kube-scheduler STOCK_SCHEDULER=$OUTPUT/tools/kube-scheduler
  GOWORK=off CGO_ENABLED=0 go test -C "$ROOT/test" -count=1 -trimpath -vet=off -v -timeout 0 ./integration/soak \
    -nodes="$NODES" -duration="${DURATION:-1h}" -starts="$ROUNDS"
}

# defaults NODES DECISIONS ROUNDS sets those that are not given.
defaults() { NODES=${NODES:-$1} DECISIONS=${DECISIONS:-$2} ROUNDS=${ROUNDS:-$3}; }
case $NAME in
  decisions | records) defaults 5000 200 6 ;;
  patches) defaults 5000 60 2 ;;
  plugins) defaults 5000 1000 6 ;;
  memory) defaults 15000 - 1 ;;
  cluster) defaults 500 - 3 ;;
  schedulers | queue) defaults 1000 - 3 ;;
  gangs | simulate) defaults - - 1 ;;
  soak) defaults 5000 - 3 ;;
  *) fail "NAME=$NAME cannot be measured" "make bench NAME=decisions, or patches, records, plugins, memory, cluster, schedulers, queue, gangs, simulate, soak" ;;
esac
use_pinned_go
rm -rf "$bench"
mkdir -p "$bench"
go_build bench "$ROOT/test" -o "$bench/bench" ./bench
say "$NAME: $(nproc) cores, $GO_VERSION, $(uname -m), load $(cut -d' ' -f1 /proc/loadavg) at the start; $NODES nodes, $DECISIONS decisions, medians of $ROUNDS rounds"
"$NAME"
