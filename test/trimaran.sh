#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares strategies for scheduling by load, like the step load-trace, and also Trimaran's plugins, in the patched
# tree.
#
# Inputs: the tree that apply-patches.sh made, with Trimaran; PROMETHEUS, RESULTS; arguments are go test's.
# Exit: 0 passed; 1 not.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/stock-and-fork.sh"

use_pinned_go
[[ -d $TREE/vendor/sigs.k8s.io/scheduler-plugins/pkg/trimaran ]] ||
  fail "the tree lacks Trimaran's plugins for the comparison" "make add-module MODULE=sigs.k8s.io/scheduler-plugins@v0.23.10 PLUGINS=TargetLoadPacking,LoadVariationRiskBalancing"
use_tree "$RESULTS/trimaran" "$ROOT/test/inprocess" "$TREE"
test_with "$RESULTS/trimaran" "$ROOT/test/inprocess" -count=1 -timeout 30m -v ./loadtrace "$@"
