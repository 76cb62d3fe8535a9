#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares ways to schedule by load, as the step load-trace does, and Trimaran's plugins beside them.
#
# Inputs: modules.yaml, PROMETHEUS, RESULTS; arguments are go test's. Exit: 0 passed; 1 not.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/environment.sh"

use_pinned_go
test_with_modules "$RESULTS" loadtrace -count=1 -timeout 30m -v "$@"
