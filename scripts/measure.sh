#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Times the steps to an image, with an empty and with a full module cache, and the loop of a plugin author: edit one
# file of a plugin, build a new kube-scheduler.tar, and see pods placed. Prints a table. Takes about 20 minutes.
#
# Inputs: a checkout, which is copied to a temporary directory; COLD=no skips the run with an empty module cache.
# Exit: 0 measured; 1 a step failed, and said why.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

use_pinned_go
work=$(mktemp -d "${TMPDIR:-/tmp}/measure.XXXXXX")
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$ROOT"
mkdir "$work/main"
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$work/main"
export SOURCE=module ARCH=$HOST_ARCH ARCHES=$HOST_ARCH OUTPUT=$work/main/_output
unset UPSTREAM VERSION_SUFFIX REGISTRY GOFLAGS UPSTREAM_VERSION_FILE MODULES_FILE PATCHES_DIR

# timed NAME COMMAND… runs the command, and adds a row.
timed() {
  local name=$1 begin end
  shift
  begin=$(date +%s%N)
  "$@" > "$work/log" 2>&1 || { cat "$work/log" >&2; fail "$name failed" "read the output above"; }
  end=$(date +%s%N)
  printf '%-52s %7s s\n' "$name" "$(((end - begin) / 1000000000)).$((((end - begin) / 100000000) % 10))"
}

steps() {
  timed "$1: patches" bash "$work/main/scripts/make-patches.sh"
  timed "$1: source, from modules" bash "$work/main/scripts/source.sh"
  timed "$1: tree" bash "$work/main/scripts/apply-patches.sh"
  timed "$1: binary" bash "$work/main/scripts/build-binary.sh"
  timed "$1: image" bash "$work/main/scripts/build-image.sh"
}

say "$(nproc) cores, $GO_VERSION, $(uname -m), load $(cut -d' ' -f1 /proc/loadavg) at the start"
if [[ ${COLD:-yes} == yes ]]; then
  warm_modules=$(go env GOMODCACHE) warm_builds=$(go env GOCACHE)
  export GOMODCACHE=$work/modules GOCACHE=$work/builds
  steps 'empty caches'
  export GOMODCACHE=$warm_modules GOCACHE=$warm_builds
  rm -rf "$OUTPUT"
fi
steps 'full module cache'
timed 'nothing changed: make image' make -C "$work/main" image
timed 'servers for make run, and a first run' make -C "$work/main" run
# edit ROUND makes a change that the compiler cannot ignore.
edit() { printf '\nconst round%s = %s\n' "$1" "$1" >> "$work/main/plugins/myscoreplugin/score.go"; }
for round in 1 2 3; do
  edit "$round"
  timed "loop $round: plugin edited, make image" make -C "$work/main" image
  grep -q '^image: .*kube-scheduler.tar$' "$work/log" || fail "the loop made no new image" "cat $work/log"
done
for round in 4 5 6; do
  edit "$round"
  timed "loop $round: plugin edited, pods placed by make run" make -C "$work/main" run
  grep -q '^binary: .*/kube-scheduler$' "$work/log" || fail "the loop made no new binary" "cat $work/log"
  ! grep '^tools: ' "$work/log" || fail "the loop built a server again" "cat $work/log"
done
