#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares the predictors of the plugin Overcommit with each other and with other formulas, in the simulator: the CPU
# that overcommitting pods gain, and the time in which a node has too little. Prints Markdown tables and writes their
# chart. The figures do not depend on the machine.
#
# Inputs: (environment) TRACES, the directory of the recorded traces; without it, the second table is NOT CHECKED.
# Output: docs/overcommit.svg. Exit: 0 measured; 1 a run failed and printed the reason.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

[[ -n ${TRACES:-} || ! -d $ROOT/../shared/traces ]] || TRACES=$ROOT/../shared/traces
use_pinned_go
export TRACES=${TRACES:-} CHART=$ROOT/docs/overcommit.svg
GOWORK=off go test -C "$ROOT/test/inprocess" -count=1 -trimpath -vet=off -timeout 0 -v -run '^TestStudy$' ./overcommit |
  grep -v -e '^=== ' -e '^--- PASS' -e '^PASS' -e '^ok '
