#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Simulates OpenB's cluster with the patched scheduler, which needs a third of the time of the pristine one.
#
# Inputs: the tree that apply-patches.sh made; OPENB, the directory of OpenB's lists; RESULTS; arguments are go test's.
# Exit: 0 passed; 1 not.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/stock-and-fork.sh"

use_pinned_go
use_tree "$RESULTS/openb" "$ROOT/test/inprocess" "$TREE"
test_with "$RESULTS/openb" "$ROOT/test/inprocess" -count=1 -timeout 2h -v ./openb "$@"
