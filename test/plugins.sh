#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests the plugins against pristine upstream modules, with the pinned Go and exactly upstream's dependencies.
#
# Inputs: plugins/; NAME (one directory of it; all by default); arguments: more flags for go test. Exit: that of go
# test.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/environment.sh"

use_pinned_go
[[ -z ${NAME:-} || -d $ROOT/plugins/${NAME,,} ]] || fail "plugins/${NAME,,} does not exist" "ls plugins; make test-plugins NAME=myscoreplugin"
name=${NAME:-}
GOWORK=off GOFLAGS='' exec go test -C "$ROOT/plugins" "$@" "./${name,,}${name:+/}..."
