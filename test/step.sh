#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs one step of steps.mk, and records its time and result for test.sh.
#
# Usage: step.sh NAME COMMAND…; inputs: RESULTS, the directory for the records; CLEAR, which clears a line of the
#   terminal. Exit: that of the command.
set -o nounset -o pipefail
name=$1 began=$(date +%s) status=0 verdict=ok
shift
# Variables of the make that runs the steps; the project's own make must not inherit its options.
unset MAKEFLAGS MFLAGS MAKELEVEL
printf '%s== %s\n' "$CLEAR" "$name"
echo "$began" > "$RESULTS/$name.began"
"$@" < /dev/null 2>&1 | tee "$RESULTS/$name.log" || status=$?
((status == 0)) || verdict=FAILED
rm "$RESULTS/$name.began"
took=$(($(date +%s) - began))
printf '%3d min %2d s  %-6s  %s\n' $((took / 60)) $((took % 60)) "$verdict" "$name" | tee -a "$RESULTS/times"
exit "$status"
