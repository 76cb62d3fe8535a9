#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures kube-scheduler-simulate on generated clusters and traces, and on OpenB's. Prints a Markdown table: times are
# of the whole command, and CPU time is that of all of its processes. The machine should be idle otherwise.
#
# Inputs: kube-scheduler-simulate of build-binary.sh; (environment) TRACES, a directory with OpenB's lists; ONLY, a
# regular expression for the rows. Output: the table; the commands' output is in _output/bench/simulate.
# Exit: 0 measured; 1 a command failed and printed the reason.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
need awk

[[ -n ${TRACES:-} || ! -d $ROOT/../shared/traces ]] || TRACES=$ROOT/../shared/traces
program=$OUTPUT/bin/linux/$HOST_ARCH/kube-scheduler-simulate
bench=$OUTPUT/bench/simulate
rm -rf "$bench"
mkdir -p "$bench"
cd "$bench"

# nodes COUNT PODS prints a snapshot with so many nodes in three zones, of three sizes, and pods on each node.
nodes() {
  awk -v nodes="$1" -v pods="$2" 'BEGIN {
    print "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":["
    for (i = 0; i < nodes; i++) {
      size = 8 * 2 ^ (i % 3)
      resources = sprintf("{\"cpu\":\"%d\",\"memory\":\"%dGi\",\"pods\":\"110\"}", size, 4 * size)
      printf "%s{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"node-%05d\",\"labels\":{\"kubernetes.io/hostname\":\"node-%05d\",", i ? ",\n" : "", i, i
      printf "\"topology.kubernetes.io/zone\":\"zone-%d\",\"disk\":\"%s\"}},\"status\":{\"capacity\":%s,\"allocatable\":%s,", int(i / 3) % 3, i % 4 ? "hdd" : "ssd", resources, resources
      printf "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}"
      for (j = 0; j < pods; j++) {
        printf ",\n{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"default\",\"name\":\"old-%05d-%d\",\"labels\":{\"app\":\"app-%d\"},", i, j, (i * pods + j) % 500
        printf "\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"app-%d\",\"uid\":\"app-%d\",\"controller\":true}]},", (i * pods + j) % 500, (i * pods + j) % 500
        printf "\"spec\":{\"nodeName\":\"node-%05d\",\"containers\":[{\"name\":\"main\",\"image\":\"app:%d\",\"resources\":{\"requests\":{\"cpu\":\"%dm\",\"memory\":\"%dMi\"}}}]},", i, j, 100 + j * 50, 256 + j * 128
        printf "\"status\":{\"phase\":\"Running\"}}"
      }
    }
    print "\n]}"
  }'
}

# basic COUNT prints a trace of equal pods that stay.
basic() {
  awk -v pods="$1" 'BEGIN {
    print "time,name,cpu,memory"
    for (i = 0; i < pods; i++) printf "%.2f,pod-%d,100m,256Mi\n", i / 100, i
  }'
}

# mixed COUNT prints a trace of pods of six sizes: plain ones, with a node selector, with one or two spread constraints,
# with affinity to a zone, and with anti-affinity to a host.
mixed() {
  awk -v pods="$1" 'BEGIN {
    spread = "{\"maxSkew\":%d,\"topologyKey\":\"%s\",\"whenUnsatisfiable\":\"%s\",\"labelSelector\":{\"matchLabels\":{\"app\":\"%s\"}}}"
    term = "{\"topologyKey\":\"%s\",\"labelSelector\":{\"matchLabels\":{\"app\":\"%s\"}}}"
    for (i = 0; i < pods; i++) {
      app = sprintf("%d-%d", i % 6, int(i / 240)); more = ""
      if (i % 6 == 1) more = "\"nodeSelector\":{\"disk\":\"ssd\"},"
      if (i % 6 == 2) more = "\"topologySpreadConstraints\":[" sprintf(spread, 1, "topology.kubernetes.io/zone", "DoNotSchedule", app) "],"
      if (i % 6 == 3) more = "\"topologySpreadConstraints\":[" sprintf(spread, 2, "topology.kubernetes.io/zone", "DoNotSchedule", app) "," sprintf(spread, 3, "kubernetes.io/hostname", "ScheduleAnyway", app) "],"
      if (i % 6 == 4) more = "\"affinity\":{\"podAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[" sprintf(term, "topology.kubernetes.io/zone", app) "]}},"
      if (i % 6 == 5) more = "\"affinity\":{\"podAntiAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[" sprintf(term, "kubernetes.io/hostname", app) "]}},"
      printf "{\"time\":\"%.2fs\",\"pod\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"pod-%d\",\"labels\":{\"app\":\"%s\"}},\"spec\":{%s", i / 100, i, app, more
      printf "\"containers\":[{\"name\":\"main\",\"image\":\"app\",\"resources\":{\"requests\":{\"cpu\":\"%dm\",\"memory\":\"%dMi\"}}}]}}}\n", 50 * (1 + i % 5), 128 * (1 + i % 7)
    }
  }'
}

# day COUNT prints a trace of a day: more pods arrive at noon, and each runs up to two hours.
day() {
  awk -v pods="$1" 'BEGIN {
    print "time,name,cpu,memory,duration"
    random = 1
    for (i = 0; i < pods; i++) {
      at = 86400 * (i / pods + 0.05 * sin(6.283185307 * i / pods))
      random = (random * 16807) % 2147483647
      printf "%.3f,pod-%d,%dm,%dMi,%d\n", at, i, 250 * (1 + random % 8), 512 * (1 + random % 6), 60 + random % 7140
    }
  }'
}

# once NAME ARGUMENTS... runs the program, and sets seconds, cpu and peak: MB of the process, of the runs that it starts,
# and the most of all at the same time.
once() {
  local name=$1 pid=0 parent=0 child=0 sum=0
  shift
  "$(type -P time)" -o "$name.time" -f '%e %U %S' "$program" "$@" > "$name.txt" 2> "$name.err" &
  local timed=$!
  while kill -0 "$timed" 2> /dev/null; do
    { read -r pid < "/proc/$timed/task/$timed/children"; } 2> /dev/null || true
    read -r parent child sum < <(memory "${pid:-0}" "$parent" "$child" "$sum")
    sleep 0.2
  done
  wait "$timed" || fail "kube-scheduler-simulate $*: $(tail -n 3 "$name.err")" "read $bench/$name.err"
  read -r seconds cpu < <(awk '{ printf "%s %.1f\n", $1, $2 + $3 }' "$name.time")
  peak="$parent + $child, at once $sum MB"
}

# memory PID PARENT CHILD SUM prints the figures again, with what the processes have now.
memory() {
  local status=("/proc/$1/status") children=() child
  mapfile -t children < <(cat "/proc/$1/task/"*/children 2> /dev/null | tr " " "\n")
  for child in "${children[@]}"; do [[ -z $child ]] || status+=("/proc/$child/status"); done
  { cat "${status[@]}" 2> /dev/null || true; } | awk -v parent="$2" -v child="$3" -v sum="$4" '
    /^Name:/ { process++ }
    /^VmHWM:/ { high = int($2 / 1000); if (process == 1 && high > parent) parent = high; if (process > 1 && high > child) child = high }
    /^VmRSS:/ { now += $2 / 1000 }
    END { print parent, child, int(now > sum ? now : sum) }'
}

row() { printf '| %s | %s | %s |\n' "$@"; }
wanted() { [[ $1 =~ ${ONLY:-.} ]]; }
rate() { awk -v pods="$1" -v seconds="$2" 'BEGIN { printf "%.0f", pods / seconds }'; }
minus() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.1f", a - b }'; }

say "$(nproc) cores, $GO_VERSION, $(uname -m), load $(cut -d' ' -f1 /proc/loadavg) at the start"
printf '\n| | measured | wanted |\n|---|---|---|\n'

nodes 5000 0 > 5000.json
if wanted basic; then
  basic 20000 > basic.csv
  once basic --snapshot 5000.json --trace basic.csv
  row '5,000 nodes, 20,000 basic pods' "$(rate 20000 "$cpu") pods/s a core ($seconds s, CPU $cpu s; peak $peak)" '2,000 pods/s a core'
fi
if wanted mixed; then
  mixed 10000 > mixed.jsonl
  once mixed --snapshot 5000.json --trace mixed.jsonl
  row '5,000 nodes, 10,000 pods of six shapes' "$(rate 10000 "$cpu") pods/s a core ($seconds s, CPU $cpu s; peak $peak)" '1,000 pods/s a core'
fi
if wanted openb && [[ -z ${TRACES:-} ]]; then
  row 'OpenB' 'NOT CHECKED: TRACES is not set' '15 s'
elif wanted openb; then
  awk -F, 'NR == 1 || $4 > 0' "$TRACES/openb_node_list_all_node.csv" > gpus.csv
  # As many pods again from the start of the list as make 10,800, one each second, and none ends within the three hours.
  awk -F, -v OFS=, 'NR == 1 { print; next } { line[NR - 2] = $0 } END {
    for (i = 0; i < 10800; i++) { $0 = line[i % (NR - 1)]; $1 = $1 "-" int(i / (NR - 1)); $9 = $11 = i; $10 = 1000000; print }
  }' "$TRACES/openb_pod_list_default.csv" > arrivals.csv
  once arrivals --snapshot gpus.csv --trace arrivals.csv --for 3h
  row 'OpenB, 10,800 arrivals of which none ends, 1,213 nodes' "$seconds s, CPU $cpu s; peak $peak" '15 s'
  once openb --snapshot "$TRACES/openb_node_list_all_node.csv" --trace "$TRACES/openb_pod_list_default.csv"
  row 'OpenB, its own 149 days with 8,152 pods, 1,523 nodes' "$seconds s, CPU $cpu s; peak $peak" ''
fi
if wanted day; then
  nodes 1000 0 > 1000.json
  day 100000 > day.csv
  once day --snapshot 1000.json --trace day.csv --config stock --config "$ROOT/manifests/config/bin-packing.yaml"
  row 'a day of 100,000 pods, 1,000 nodes, two configurations' "$seconds s, CPU $cpu s; peak $peak" '180 s'
fi
printf '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"500m","memory":"1Gi"}}}]}}\n' > web.json
if wanted load; then
  nodes 15000 10 > 15000.json
  once load fit --snapshot 15000.json --pod web.json --limit 1
  row '15,000 nodes and 150,000 pods, loaded' "$seconds s, CPU $cpu s; peak $peak" '60 s, 2,000 MB'
fi
if wanted fit; then
  once fit1 fit --snapshot 5000.json --pod web.json --limit 1
  before=$seconds
  once fit1000 fit --snapshot 5000.json --pod web.json --limit 1000
  row 'fit of 1,000 pods, 5,000 nodes, after loading' "$(minus "$seconds" "$before") s ($before s for the first one)" '2 s'
fi
if wanted drain; then
  nodes 1000 10 > loaded.json
  once drain drain --each --snapshot loaded.json
  row 'drain of each of 1,000 nodes with 10 pods' "$seconds s with loading, CPU $cpu s" '60 s'
fi
