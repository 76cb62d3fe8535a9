#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs what needs nothing but Go: every check, and with the race detector the unit tests of plugins/, of the extender, and of
# what local control planes are started and observed with.
#
# Inputs: the whole checkout; CI=true makes a check that cannot run a failure. Exit: 0 all passed; 1 the first that failed.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/environment.sh"

say '-- checks'
bash "$ROOT/scripts/verify.sh"

use_pinned_go
race=()
if command -v "$(go env CC)" > /dev/null; then race=(-race); else say 'NOT CHECKED: data races (no C compiler; apt-get install gcc libc6-dev)'; fi
# Without vet: go vet has just made these checks and more, and go test would make them anew for each package that is imported.
# All with the same flags, as they import mostly the same.
flags=(-trimpath -vet=off "${race[@]}")
say '-- unit tests of plugins/, against pristine upstream'
NAME='' bash "$ROOT/test/plugins.sh" "${flags[@]}" | { grep --line-buffered -v 'no test files' || true; }
say '-- unit tests of the extender, and of what local control planes are started and observed with'
export GOWORK=off GOFLAGS='' CGO_ENABLED=${race:+1}
go test -C "$ROOT/build/extender" -count=1 "${flags[@]}" .
go test -C "$ROOT/build" -count=1 "${flags[@]}" ./localcluster/observations ./localcluster/supervisor
