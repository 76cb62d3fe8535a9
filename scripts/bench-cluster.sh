#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares stock Kubernetes with the patched tree end to end: upstream's own test/integration/scheduler_perf, where a
# scheduler, an API server and etcd place pods, compiled with each of them, with the same Go and flags, alternating; and
# one test of ours, test/inprocess/schedulerperf/churn.yaml. Prints a table in Markdown with medians: how long it takes
# from the first measured pod's creation until all are bound, and how long a pod waits from the moment when the
# scheduler sees it until it is bound. What it is computed from, in the format that benchstat reads, goes to
# _output/bench-cluster/stock.txt and fork.txt. The machine should have nothing else to do: the API server and etcd
# share its processors with the scheduler.
#
# The times are read from the log, in microseconds; upstream's test itself samples once a second. It sets the level of
# the log to 4, on both sides alike. Three things are changed in upstream's configuration, also on both sides: the
# namespaces of the pods are created, because the scheduler would log three errors for each pod; the API server does
# without priority and fairness, which would refuse many requests of the test's one client, each for a second; and no
# metrics are collected, because the test breaks off where one has counted nothing (Preemption).
#
# Inputs: the tree (build-binary.sh); (environment) NODES (500), 500 or 5000 or both,
# separated by commas; WORKLOADS, names of tests in upstream's config/performance-config.yaml, and Churn, separated by
# commas; ROUNDS (3) of each. Preemption with 5000 nodes is left out unless it is named: it never ends in 1.23. Needs
# about 1 GB in /dev/shm, for etcd's data and the log. Exit: 0 measured; 1 a run failed, and said why.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/stock-and-fork.sh"

usual=SchedulingBasic,SchedulingPodAntiAffinity,TopologySpreading,SchedulingPreferredPodAffinity
usual+=,MixedSchedulingBasePod,Unschedulable,Preemption,Churn
NODES=${NODES:-500} WORKLOADS=${WORKLOADS:-} ROUNDS=${ROUNDS:-3}
use_pinned_go
bench=$OUTPUT/bench-cluster
rm -rf "$bench"
mkdir -p "$bench"

pin=$ROOT/build/pins/kubernetes ours=$ROOT/test/inprocess/schedulerperf config=$bench/config/performance-config.yaml
upstream=$(GOWORK=off go -C "$pin" list -m -f '{{.Dir}}' k8s.io/kubernetes)/test/integration/scheduler_perf
cp -r --no-preserve=mode "$upstream/config" "$bench"
cp "$ours/departing-pod.yaml" "$bench/config"
# Pods whose namespace is not named are in namespace-N, where N is the number of the operation.
sed -e '/^  featureGates:/d' \
  -e 's/^  workloadTemplate:/&\n  - opcode: createNamespaces\n    prefix: namespace\n    count: 10/' \
  -e 's/^- name: .*/&\n  metricsCollectorConfig: {}\n  featureGates:\n    APIPriorityAndFairness: false/' \
  -e 's/namespace: sched-setup/namespace: namespace-8/' -e 's/namespace: sched-test/namespace: namespace-9/' \
  "$upstream/config/performance-config.yaml" "$ours/churn.yaml" > "$config"
# TEST/WORKLOAD, a line each.
all=$(awk '/^- name: / { test = $3 } /^  - name: / { print test "/" $3 }' "$config")
names=$(awk '/^- name: / { print $3 }' "$config" | xargs)

runs=()
for nodes in ${NODES//,/ }; do
  for test in $(tr ',' ' ' <<< "${WORKLOADS:-$usual}"); do
    [[ -n $WORKLOADS || $test/$nodes != Preemption/5000 ]] || continue
    found=$(grep -E "^$test/${nodes}Nodes(/|\$)" <<< "$all") ||
      fail "upstream's scheduler_perf has no test $test with $nodes nodes" \
        "make bench-cluster WORKLOADS=SchedulingBasic,Preemption NODES=500; there are: $names"
    mapfile -t -O ${#runs[@]} runs <<< "$found"
  done
done

build_server etcd kube-apiserver
generate_openapi "$TREE" "$OUTPUT/version.sh"
# Without cgo, as the servers are compiled: so they share what is compiled.
CGO_ENABLED=0 compile_both k8s.io/kubernetes/test/integration/scheduler_perf "$bench" "$pin" \
  "$OUTPUT/upstream/$VERSION"

memory=$(mktemp -d /dev/shm/bench-cluster.XXXXXX) ||
  fail "/dev/shm, where etcd's data goes, cannot be written to" \
    "mount -t tmpfs tmpfs /dev/shm, then run the same command again"
pid=
# Each run is a process group: what it leaves, such as etcd when the test breaks off, ends with it.
end() {
  [[ -z $pid ]] || kill -KILL -- "-$pid" 2> /dev/null || true
  pid=
}
trap 'end; rm -rf "$memory"' EXIT

# Prints a line as Go's benchmarks do. The measured pods are those that are created last; or all in arrival-N.
times() {
  awk -v name="$1" '
    function seconds(time,    part) { split(time, part, ":"); return part[1] * 3600 + part[2] * 60 + part[3] }
    function since(start,    time) { time = seconds($2) - start; return time < 0 ? time + 86400 : time }
    / Creating [0-9]+ pods in namespace / {
      last = namespace; namespace = $NF; gsub(/"/, "", namespace)
      if (last !~ /^arrival-/ || namespace !~ /^arrival-/) pods = total = elapsed = bound = 0
      pods += $6; total += elapsed; elapsed = 0; created = seconds($2)
    }
    / "Add event for unscheduled pod" / { seen[$NF] = seconds($2) }
    / "Successfully bound pod to node" / {
      pod = $0; sub(/.* pod=/, "pod=", pod); sub(/" .*/, "\"", pod)
      if (index(pod, "pod=\"" namespace "/") == 1) { elapsed = since(created); wait[++bound] = since(seen[pod]) }
    }
    / resp=429$/ { refused++ }
    END {
      if (!bound || bound != pods) { printf "%d of %d measured pods are bound\n", bound, pods > "/dev/stderr"; exit 1 }
      for (i = 2; i <= bound; i++) {
        for (j = i; j > 1 && wait[j] < wait[j - 1]; j--) { swap = wait[j]; wait[j] = wait[j - 1]; wait[j - 1] = swap }
      }
      printf "BenchmarkPerfScheduling/%s 1 %.0f ns/op %.3f wait-p50-ms %.3f wait-p99-ms %d refused\n", name,
        (total + elapsed) * 1e9, wait[int((bound + 1) / 2)] * 1000, wait[int(bound * 0.99 + 0.999)] * 1000, refused
    }' "$memory/log"
}

# run SIDE TEST/WORKLOAD. An etcd that already runs on this machine is not used: nothing answers at port 0.
run() {
  local pattern=${2//\//\$/^} status=0
  set -o monitor
  (cd "$bench" && PATH=$OUTPUT/tools:$PATH TMPDIR=$memory KUBE_INTEGRATION_ETCD_URL=http://127.0.0.1:0 \
    exec "./$1.test" -test.run='^$' -test.bench="^BenchmarkPerfScheduling\$/^$pattern\$" -test.benchtime=1x \
    -test.timeout=30m -data-items-dir="$memory") > "$memory/log" 2>&1 &
  pid=$!
  set +o monitor
  wait "$pid" || status=$?
  end
  if ((status)) || ! times "$2" >> "$bench/$1.txt"; then
    mv "$memory/log" "$bench/log"
    grep -E -A5 '^(panic|---|F[0-9]{4} |    [a-z_]+\.go:)' "$bench/log" >&2 || true
    fail "$2 failed with $1, exit status $status" "read the output above, and $bench/log"
  fi
}

load=$(cut -d' ' -f1 /proc/loadavg)
say "$(nproc) cores, $GO_VERSION, $(uname -m), load $load at the start; medians of $ROUNDS rounds"
for ((round = 1; round <= ROUNDS; round++)); do
  for workload in "${runs[@]}"; do
    # The second one finds another machine than the first one.
    if ((round % 2)); then sides=(stock fork); else sides=(fork stock); fi
    for side in "${sides[@]}"; do run "$side" "$workload"; done
  done
done

printf '\n| test, nodes | s until all are bound: stock | fork | ratio | ms a pod waits, median: stock | fork | ratio '
printf '| 99th percentile: stock | fork | ratio |\n'
printf '|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n'
medians "$bench/stock.txt" "$bench/fork.txt" 'ns/op 1000000000 2 ratio' 'wait-p50-ms 1 1 ratio' 'wait-p99-ms 1 0 ratio'
if grep -q ' [1-9][0-9]* refused' "$bench"/{stock,fork}.txt; then
  say "The API server refused requests, and each then waited for a second: grep refused $bench/{stock,fork}.txt"
fi
