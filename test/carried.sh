#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of the modules that patches change, their released ones and those that the patches add, with the
# patched code and the patched Kubernetes.
#
# Inputs: the tree that apply-patches.sh made; RACE, -race or nothing; RESULTS. Exit: 0 passed; 1 not.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/stock-and-fork.sh"

use_pinned_go
use_tree "$RESULTS/carried" "$ROOT/test/inprocess" "$TREE"
# It wants CoschedulingArgs to have the module's type, which 0645 leaves out.
rm -f "$RESULTS/carried.modules/sigs.k8s.io/scheduler-plugins/apis/config/scheme/scheme_test.go"
read_series "$(build_tool kube-scheduler-build)"
packages=()
while read -r module; do
  grep -qF "+++ b/vendor/$module/" "${patches[@]}" || continue
  # Packages in the tree that have tests.
  tests=$(cd "$RESULTS/carried.modules" && find "$module" -name '*_test.go' -printf '%h\n' | sort -u)
  [[ -n $tests ]] || fail "$module has no tests" "read what use_tree does in scripts/stock-and-fork.sh"
  for package in $tests; do
    [[ ! -d $TREE/vendor/$package ]] || packages+=("$package")
  done
done < <(cat "$RESULTS/carried.modules/list" 2> /dev/null)
if ((${#packages[@]} == 0)); then
  say "carried: no patch changes a vendored module; nothing to test"
  exit
fi
export CGO_ENABLED=$((${#RACE} > 0))
test_with "$RESULTS/carried" "$ROOT/test/inprocess" ${RACE:+-race} -count=1 -timeout 30m "${packages[@]}"
