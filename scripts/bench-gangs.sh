#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures gangs, here and at an earlier commit: one large gang, days of 200 gangs at three loads, and how long other pods
# wait. Prints Markdown tables. The first two are of the simulator, of which only the CPU time depends on the machine; the
# last one is of a real API server, and needs an idle one.
#
# Inputs: kube-scheduler and kube-scheduler-simulate of build-binary.sh; (environment) BEFORE, a checkout of an earlier
# commit with the same programs; SEED (1) of the days; LIMIT (900), the seconds after which a day is cut off; ONLY, a
# regular expression for attempt, day and server.
# Output: _output/bench/gangs. Exit: 0 measured; 1 a program failed.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/stock-and-fork.sh"
need awk

bench=$OUTPUT/bench/gangs
rm -rf "$bench"
mkdir -p "$bench"
declare -A bin=([here]=$OUTPUT/bin/linux/$HOST_ARCH)
sides=(here)
say "here: $(git -C "$ROOT" rev-parse --short HEAD)"
if [[ -n ${BEFORE:-} ]]; then
  bin[before]=$BEFORE/_output/bin/linux/$HOST_ARCH
  sides=(before here)
  say "before: $(git -C "$BEFORE" rev-parse --short HEAD)"
fi
wanted() { [[ $1 =~ ${ONLY:-.} ]]; }

# nodes COUNT prints a snapshot of nodes with 32 cores.
nodes() {
  awk -v nodes="$1" 'BEGIN {
    print "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":["
    resources = "{\"cpu\":\"32\",\"memory\":\"128Gi\",\"pods\":\"110\"}"
    for (i = 0; i < nodes; i++) {
      printf "%s{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"node-%05d\",\"labels\":{\"kubernetes.io/hostname\":\"node-%05d\"}},", i ? ",\n" : "", i, i
      printf "\"status\":{\"capacity\":%s,\"allocatable\":%s,\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}", resources, resources
    }
    print "\n]}"
  }'
}

# day CORES LOAD SEED prints a trace of a day: 200 gangs of 2, 4, … 512 pods with 2 cores each, and as many single pods
# with 4, 8 or 12 cores as make LOAD percent of CORES. Pods run for 30 to 90 minutes. Each fourth gang of at most 64 pods
# has a priority; who is evicted comes again.
day() {
  awk -v cores="$1" -v load="$2" -v seed="$3" '
    function draw(below) { state = (state * 16807) % 2147483647; return state % below }
    BEGIN {
      state = seed * 7919 + 1
      left = cores * 86400 * load / 100
      for (i = 0; i < 200; i++) {
        size = 2 ^ (1 + i % 9); lasts = 1800 + draw(3600)
        left -= size * 2 * lasts
        printf "%09.3f,gang-%d,%d,2,4Gi,%d,%d,gang-%d,Job/gang-%d\n", draw(864000) / 10, i, size, lasts, i % 4 == 0 && size <= 64 ? 1000 : 0, i, i
      }
      for (; left > 0; i++) {
        need = 4 * (1 + draw(3)); lasts = 1800 + draw(3600)
        left -= need * lasts
        printf "%09.3f,single-%d,1,%d,%dGi,%d,0,,Job/single-%d\n", draw(864000) / 10, i, need, 2 * need, lasts, i
      }
    }' | sort | sed '1i time,name,count,cpu,memory,duration,priority,gang,owner'
}

# simulate SIDE NAME ARGUMENTS… runs the simulator, writes NAME.SIDE.csv, and sets cpu to its seconds of CPU.
simulate() {
  local name=$2.$1
  "$(type -P time)" -o "$bench/$name.time" -f %U timeout --signal=INT "${LIMIT:-900}" "${bin[$1]}/kube-scheduler-simulate" \
    --config "$ROOT/manifests/config/gang.yaml" --output "$bench/$name.csv" "${@:3}" > "$bench/$name.log" 2>&1 ||
    [[ -s $bench/$name.csv ]] || fail "kube-scheduler-simulate ${*:3}: $(tail -n 3 "$bench/$name.log")" "read $bench/$name.log"
  cpu=$(tail -n 1 "$bench/$name.time")
}

# figure NAME FIGURE prints a figure of a run.
figure() { awk -F, -v name="$2" '{ gsub(/"/, "") } $1 == name && $4 == "mean" { print $5 }' "$bench/$1.csv"; }

if wanted attempt; then
  nodes 5000 > "$bench/5000.json"
  say '| a gang of 1,000, 5,000 nodes | attempts | CPU s |'
  say '|---|---:|---:|'
  for fillers in 4000 4001; do
    printf 'time,name,count,cpu,memory,gang\n0,filler,%d,32,1Gi,\n' "$fillers" > "$bench/alone.csv"
    { cat "$bench/alone.csv"; echo '10,gang,1000,32,1Gi,gang'; } > "$bench/gang.csv"
    for side in "${sides[@]}"; do
      simulate "$side" alone --snapshot "$bench/5000.json" --trace "$bench/alone.csv" --for 11s
      alone=$cpu
      simulate "$side" gang --snapshot "$bench/5000.json" --trace "$bench/gang.csv" --for 11s
      say "| $side, $((5000 - fillers)) free | $(($(figure "gang.$side" attempts) - fillers)) | $(awk -v a="$cpu" -v b="$alone" 'BEGIN { printf "%.1f", a - b }') |"
    done
  done
fi
if wanted day; then
  nodes 300 > "$bench/300.json"
  printf '\n'
  say '| a day, 300 nodes | time to a full gang, s: p50 | p99 | gangs incomplete | CPU allocated, % | evicted | core-seconds held | CPU s | cut off |'
  say '|---|---:|---:|---:|---:|---:|---:|---:|---:|'
  for load in 70 85 95; do
    day 9600 "$load" "${SEED:-1}" > "$bench/day-$load.trace.csv"
    for side in "${sides[@]}"; do
      simulate "$side" "day-$load" --snapshot "$bench/300.json" --trace "$bench/day-$load.trace.csv" --for 30h
      row="| $load % load, $side"
      for name in gang_complete_p50_seconds gang_complete_p99_seconds gangs_incomplete 'allocation_percent{resource=cpu}' preemptions gang_held_core_seconds; do
        row+=" | $(figure "day-$load.$side" "$name")"
      done
      say "$row | $cpu | $(grep -q 'and not judged: interrupted' "$bench/day-$load.$side.log" && printf yes) |"
    done
  done
fi
if wanted server; then
  use_pinned_go
  build_server etcd kwok kube-apiserver kubectl
  export ETCD=$OUTPUT/tools/etcd KWOK=$OUTPUT/tools/kwok KUBE_APISERVER=$OUTPUT/tools/kube-apiserver KUBECTL=$OUTPUT/tools/kubectl
  GOWORK=off CGO_ENABLED=0 go test -C "$ROOT/test" -trimpath -vet=off -c -o "$bench/schedulers.test" ./integration/schedulers
  cd "$ROOT/test/integration/schedulers"
  for side in "${sides[@]}"; do
    KUBE_SCHEDULER=${bin[$side]}/kube-scheduler "$bench/schedulers.test" -test.run='^$' -test.bench=Gang -test.benchtime=1x -test.timeout=0 > "$bench/server.$side.log" 2>&1 ||
      { cat "$bench/server.$side.log" >&2; fail "the benchmark of $side failed" "read the output above"; }
    say "$side: $(grep '^Benchmark' "$bench/server.$side.log" | cut -f3- | tr -s ' \t' ' ')"
  done
fi
