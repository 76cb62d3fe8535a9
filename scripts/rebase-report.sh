#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints a table in Markdown: how each patch of the series applies to another release of Kubernetes. Changes nothing but
# adds the source of UPSTREAM to the repository of _output/kubernetes.
#
# Inputs: patches/, plugins/; (environment) UPSTREAM, a release of Kubernetes 1.23; or CHECKOUT, a git checkout of another release,
# whose current commit counts; the tree that apply-patches.sh made, for 3-way merges. Exit: 0 printed; 1 not.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

objects() { git -C "$1" rev-parse --path-format=absolute --git-path objects; }

need git
[[ -z ${CHECKOUT:-} || -z ${UPSTREAM:-} ]] || fail "both UPSTREAM and CHECKOUT are given" "leave out one of them"
use_pinned_go
build=$(build_tool kube-scheduler-build)
[[ -n ${CHECKOUT:-} ]] || { bash "$ROOT/scripts/make-patches.sh" && bash "$ROOT/scripts/source.sh"; } >&2 || exit
[[ -d $TREE/.git ]] || fail "there is no patched tree, which 3-way merges need" "make tree"
repositories=("$(objects "$TREE")")
if [[ -n ${CHECKOUT:-} ]]; then
  commit=$(git -C "$CHECKOUT" rev-parse --quiet --verify 'HEAD^{commit}') ||
    fail "CHECKOUT=$CHECKOUT is not a git checkout" "git clone --depth 1 --branch v1.24.0 https://github.com/kubernetes/kubernetes.git"
  git -C "$CHECKOUT" cat-file -e "$commit:pkg/scheduler" 2> /dev/null ||
    fail "CHECKOUT=$CHECKOUT is not a checkout of Kubernetes: it has no pkg/scheduler" "name the directory of a checkout of Kubernetes"
  repositories+=("$(objects "$CHECKOUT")")
  name=$(git -C "$CHECKOUT" describe --tags --always "$commit")
else
  commit=$(recorded "base.$VERSION.tree") name=$VERSION
fi
exec "$build" patches report "$SERIES_DIR" "$ROOT/plugins" "$commit" "$name" "${repositories[@]}"
