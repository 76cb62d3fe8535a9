#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests on real components, after building their prerequisites. Ends with the time of each step, the checks
# that cannot run here, and go test's own lines.
#
# Inputs: the whole checkout; TRACES and VULNDB, where steps that need them find their data; TESTS, the target of steps.mk: test (what a newcomer runs; no root), all (what CI runs;
#   root, Debian), long, or steps; JOBS, how many steps at a time; CI=true makes a check that cannot run here a failure.
# Output: _output/test/, the output of each step. Exit: 0 all passed; 1 not.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/environment.sh"

read -ra goals <<< "${TESTS:-test}"
# Tests use this checkout's defaults, not the caller's settings.
unset UPSTREAM MODULES VERSION_SUFFIX SIGN_KEY BUNDLE REGISTRY GOFLAGS CONFIG NODES PODS KEEP MANIFEST LOG EXTENDER EXTENDER_PROFILE TIMEOUT NAME TESTS \
  MAKEFLAGS MFLAGS MAKELEVEL
use_pinned_go
export ARCH=$HOST_ARCH ARCHES=$HOST_ARCH OUTPUT GOWORK=off CGO_ENABLED=0 RACE='' RESULTS=$OUTPUT/test

# The programs that the tests on local control planes start.
export KUBE_SCHEDULER=$OUTPUT/bin/linux/$HOST_ARCH/kube-scheduler STOCK_SCHEDULER=$OUTPUT/tools/kube-scheduler
export KUBE_APISERVER=$OUTPUT/tools/kube-apiserver ETCD=$OUTPUT/tools/etcd KWOK=$OUTPUT/tools/kwok KUBECTL=$OUTPUT/tools/kubectl
# The releases of API servers that newer-servers upgrades to, in this order. Each takes minutes to compile.
newer='1.24.17 1.26.15 1.32.0 1.37.2'
[[ ${goals[*]} != all ]] || newer=${newer##* }
export NEWER_APISERVERS=${NEWER_APISERVERS:-$newer}
export PROMETHEUS=$OUTPUT/tools/prometheus PROMTOOL=$OUTPUT/tools/promtool SCHEDULER_EXTENDER=$OUTPUT/tools/scheduler-extender
export KUBE_STATE_METRICS=$OUTPUT/tools/kube-state-metrics METRICS_SERVER=$OUTPUT/tools/metrics-server NODE_EXPORTER=$OUTPUT/tools/node_exporter DESCHEDULER=$OUTPUT/tools/descheduler
export KUBE_CONTROLLER_MANAGER=$OUTPUT/tools/kube-controller-manager KUBECTL_SCHEDULING=$OUTPUT/bin/linux/$HOST_ARCH/kubectl-scheduling

# Recorded data of production clusters, and the Go vulnerability database, which are not part of the project.
export TRACES=${TRACES:-} VULNDB=${VULNDB:-}

unchecked=()
# The race detector compiles everything a second time, which takes too long for a newcomer's make test.
if [[ ${goals[*]} == test ]]; then
  :
elif command -v "$(go env CC)" > /dev/null && [[ -e /usr/include/stdlib.h ]]; then
  RACE=-race
else
  unchecked+=('data races (apt-get install gcc libc6-dev)')
fi
[[ ${goals[*]} == test ]] || command -v shellcheck > /dev/null || unchecked+=('shell lint (apt-get install shellcheck)')
[[ ${goals[*]} == test ]] || command -v openssl > /dev/null || unchecked+=("the openssl commands of docs/extender.md (apt-get install openssl)")
[[ ${goals[*]} == test ]] || command -v chromium > /dev/null || unchecked+=('pages in a browser (apt-get install chromium)')
not_checked=$(IFS=';'; printf '%s' "${unchecked[*]/#/ }")
((${#unchecked[@]} == 0)) || [[ ${CI:-} != true ]] || fail "CI cannot check:$not_checked" "install what is missing, then run the same command again"
[[ -n ${VULNDB:-} || ${goals[*]} == test ]] || unchecked+=('known vulnerabilities (VULNDB=file:///path/to/vulndb)')

rm -rf "$RESULTS"
mkdir -p "$RESULTS"
: > "$RESULTS/times"
export CLEAR=''
[[ ! -t 1 ]] || CLEAR=$'\r\e[K'

# report prints every 30 seconds which steps run, for how long, and the last line of their output.
report() {
  local file name line end=$'\n'
  # A step may end meanwhile.
  set +o errexit
  trap - ERR
  [[ -z $CLEAR ]] || end=''
  while sleep 30 > /dev/null 2>&1; do
    line=$CLEAR"   $((SECONDS / 60)) min:"
    for file in "$RESULTS"/*.began; do
      [[ -e $file ]] || continue
      name=$(basename "$file" .began)
      line+=" $name $((($(date +%s) - $(< "$file")) / 60)) min ($(tail -n 1 "$RESULTS/$name.log" | cut -c1-60));"
    done
    printf '%s%s' "$line" "$end"
  done
}

cd "$ROOT"
status=0
report &
reporter=$!
disown
trap 'kill $reporter' EXIT
run_steps() { make -f test/steps.mk --no-print-directory --keep-going --jobs="${JOBS:-3}" --output-sync=target "$@"; }
if [[ ${goals[*]} == all ]]; then
  run_steps built && run_steps --old-file={image,tools,servers,controller-manager,node-servers,newer-apiservers,metrics-server,node-exporter,descheduler} all || status=$?
else
  run_steps "${goals[@]}" || status=$?
fi
kill "$reporter"
trap - EXIT
say "$CLEAR== steps, several at a time"
cat "$RESULTS/times"
say "   in all: $((SECONDS / 60)) min $((SECONDS % 60)) s"
((${#unchecked[@]} == 0)) || say "NOT CHECKED:$(IFS=';'; printf '%s' "${unchecked[*]/#/ }")"
if ((status != 0)); then
  # This is printed last, because a truncated log may have only its end.
  while read -r step; do
    say "== $step failed: the end of its output, without what passed"
    grep -vE '^(ok|\?)\s' "$RESULTS/$step.log" | tail --lines=40 || true
  done < <(awk '$5 == "FAILED" { print $6 }' "$RESULTS/times")
  fail "a step failed" "read its output in $RESULTS; again with make test TESTS=<step>"
fi
say "== go test's results"
# Some steps do not run go test.
grep -hE '^(ok|FAIL|panic:)\s' "$RESULTS"/*.log || true
