#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Applies what modules.yaml carries, and the series, to every release of Kubernetes 1.23 that can be had as a Go module,
# v1.23.0 to the pinned one: what the patches' Applies-To says must be true.
#
# Inputs: modules.yaml; patches/. Exit: 0 all apply; 1 one does not, or fewer than half of the releases could be had.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/environment.sh"

use_pinned_go
build=$(build_tool kube-scheduler-build)
work=$(mktemp -d "$OUTPUT/.applies.XXXXXX")
trap 'rm -rf "$work"' EXIT
# What the patches change of upstream: not files that one of them makes.
mapfile -t files < <(comm -23 \
  <({ echo vendor/modules.txt; sed -n 's#^--- a/##p' "$PATCHES_DIR"/*.patch; } | sort -u) \
  <(sed -n '\#^--- /dev/null#{ n; s#^+++ b/##p }' "$PATCHES_DIR"/*.patch | sort -u))
export GO111MODULE=on GOWORK=off GOFLAGS=-mod=mod
tried=0 last=${KUBERNETES_VERSION##*.}
for ((patch_release = 0; patch_release <= last; patch_release++)); do
  release=v1.23.$patch_release
  module=$({ go -C "$work" mod download -json "k8s.io/kubernetes@$release" 2> /dev/null || true; } | sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p')
  if [[ -z $module ]]; then
    say "applies: $release is not available from the module proxy"
    continue
  fi
  rm -rf "$work/tree"
  mkdir "$work/tree"
  git -C "$work/tree" init -q
  for file in "${files[@]}"; do
    # The module has nothing of vendor/ but its list; what patches change there, modules.yaml brings.
    [[ $file != vendor/* || -f $module/$file ]] || continue
    mkdir -p "$work/tree/$(dirname "$file")"
    mode=644
    [[ $file != *.sh ]] || mode=755
    install -m "$mode" "$module/$file" "$work/tree/$file"
  done
  git -C "$work/tree" add --all
  git -C "$work/tree" commit -q -m "$release"
  commit=$(git -C "$work/tree" rev-parse HEAD)
  # As environment.sh has it.
  MODULES=none
  [[ $release != "$KUBERNETES_VERSION" ]] || MODULES=
  export MODULES
  "$build" source carry "$MODULES_FILE" "$work/tree" "$commit" refs/heads/modules || exit 1
  git -C "$work/tree" checkout -q modules
  read_series "$build"
  for patch in "${patches[@]}"; do
    git -C "$work/tree" apply "$patch" || fail "${patch##*/} does not apply to $release" "fix the patch (docs/patches.md), or narrow its Applies-To"
  done
  say "applies: $release${MODULES:+, without plugins of other projects}"
  tried=$((tried + 1))
done
((2 * tried > last)) || fail "only $tried releases are available" "check that the module proxy (go env GOPROXY) is reachable"
