#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares the placements of stock Kubernetes with those of the patched tree: both run the same generated scenarios with
# one worker, and must produce the same traces. The patched scheduler has the plugins of other projects registered, like
# the command. A scenario with a difference is shrunk, and printed as a Go test.
#
# Inputs: the tree that apply-patches.sh made; (environment) FIRST (1), the first scenario's number; SCENARIOS (100),
# their number; DURATION, such as 1h, runs for that long. Exit: 0 no difference; 1 a difference, or a run failed.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/stock-and-fork.sh"

use_pinned_go
work=$OUTPUT/oracle
compile_both ./oracle "$work"
cd "$work"
if [[ -e $TREE/cmd/kube-scheduler/modules.go ]]; then
  registered=$(sed -n 's/^\tplugin[0-9]* "\(.*\)"$/\1/p' "$TREE/cmd/kube-scheduler/modules.go")
  go tool nm fork.test | sed 's/%2e/./g' > symbols
  for package in ${registered:-that registers plugins}; do
    grep -qF " $package." symbols || fail "the patched scheduler of the comparison is compiled without the package $package" \
      "read what use_tree does in scripts/stock-and-fork.sh"
  done
  say "oracle: $(wc -w <<< "$registered") packages with plugins of other projects are in the patched scheduler"
fi
exec ./stock.test -test.v -test.timeout=0 -test.run='^TestAgainst$' -against="$work/fork.test" \
  -first="${FIRST:-1}" -count="${SCENARIOS:-100}" -duration="${DURATION:-0s}"
