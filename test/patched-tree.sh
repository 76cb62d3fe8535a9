#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the patched tree's own tests of the packages that hand-made patches touch. The plugins' packages are the same
# bytes as in plugins/, where they are tested; carried.sh tests modules in vendor/. Then tests the plugins in whole
# schedulers: the patched framework calls them less often, and in another way, than the pristine one of the step unit.
#
# Inputs: the tree that apply-patches.sh made. Exit: 0 passed, and the tree is unchanged; 1 not.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/tree-edits.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/stock-and-fork.sh"

use_pinned_go
read_series "$(build_tool kube-scheduler-build)"
# Packages of staging/ are in vendor/, by symbolic links.
mapfile -t packages < <(printf '%s\n' "${patches[@]}" | grep -v '/0200-plugin-[^/]*$' | xargs sed -n -e 's#^+++ b/\(\(cmd\|pkg\)/.*\)/[^/]*\.go$#./\1#p' \
  -e 's#^+++ b/staging/src/\(.*\)/[^/]*\.go$#./vendor/\1#p' | sort -u)
((${#packages[@]})) || fail "no patch in $PATCHES_DIR touches a package" "make patches"
# Without vet: the current one finds old faults in upstream's code. Compiled like in build-binary.sh, so that common
# packages are compiled once.
in_gopath "$TREE" go test -vet=off -trimpath -tags=selinux,notest "${packages[@]}"
work=$(mktemp -d "${TMPDIR:-/tmp}/patched-tree.XXXXXX")
trap 'rm -rf "$work"' EXIT
use_tree "$work/plugins" "$ROOT/test/inprocess" "$TREE"
# Without the tests of NodeLoad that observe a plugin they create themselves: the tree has its own plugin.
test_with "$work/plugins" "$ROOT/test/inprocess" -count=1 -skip='^TestNodeLoad' ./plugins
# In virtual time, which a channel of the pristine client-go would stop.
GOWORK=off go mod edit -replace "k8s.io/client-go=$TREE/staging/src/k8s.io/client-go" "$work/plugins.mod"
test_with "$work/plugins" "$ROOT/test/inprocess" -count=1 -v ./gangs
# Upstream's tests must leave the tree as the patches made it.
refuse_edits
