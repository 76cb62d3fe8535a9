#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of the modules that patches change: their own, as released, and those that the patches add; with the
# patched code, beside the patched Kubernetes.
#
# Inputs: the tree that apply-patches.sh made; RACE, -race or nothing; RESULTS. Exit: 0 passed; 1 not.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/stock-and-fork.sh"

use_pinned_go
use_tree "$RESULTS/carried" "$ROOT/test/inprocess" "$TREE"
# The packages of those modules that the tree has and that have tests.
mapfile -t tests < <(cd "$RESULTS/carried.modules" && find . -name '*_test.go' -printf '%h\n' | sort -u)
packages=()
for package in "${tests[@]#./}"; do
  [[ ! -d $TREE/vendor/$package ]] || packages+=("$package")
done
((${#packages[@]})) || fail "no test of a module is found" "read what use_tree does in scripts/stock-and-fork.sh"
export CGO_ENABLED=$((${#RACE} > 0))
test_with "$RESULTS/carried" "$ROOT/test/inprocess" ${RACE:+-race} -count=1 -timeout 30m "${packages[@]}"
