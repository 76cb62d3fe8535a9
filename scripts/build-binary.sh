#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles kube-scheduler and kube-log-runner in the patched tree, through upstream's own make.
#
# Inputs: the tree that apply-patches.sh made; ARCH (amd64, arm64), GOFLAGS (passed on), VERSION_SUFFIX.
# Output: _output/bin/linux/ARCH/. Exit: 0 made or up to date; 1 nothing was changed.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/tree.sh"
source "$(dirname "${BASH_SOURCE[0]}")/stamp.sh"

targets=(cmd/kube-scheduler vendor/k8s.io/component-base/logs/kube-log-runner)
BIN=$OUTPUT/bin/linux/$ARCH

lock
[[ -n $(recorded applied.head) && $(recorded applied.base) == "$(recorded "base.$VERSION.tree")" ]] ||
  fail "the patches are not applied to $VERSION" "make tree"
refuse_edits
use_pinned_go
build=$(build_tool kube-scheduler-build)
version=$(recorded_version "$build") || exit
[[ $(recorded applied.series) == "$(cat "$PATCHES_DIR"/*.patch | sha256sum | cut -d' ' -f1)" ]] ||
  fail "$PATCHES_DIR has changed since the patches were applied" "make tree"

version_file=$OUTPUT/version.sh
write_version_file "$version_file" "$version"

# The inputs of the binaries in full; a patch's message is not among them.
inputs="tree $(in_tree rev-parse 'HEAD^{tree}')
go $GO_VERSION
flags ${GOFLAGS:-}
version $version
time $(recorded "base.$VERSION.time")"
stale=()
for target in "${targets[@]}"; do
  name=${target##*/}
  up_to_date "$BIN/.$name.inputs" "$inputs" "$name" || stale+=("$target")
done
if ((${#stale[@]} == 0)); then
  say "binary: $version for linux/$ARCH is up to date: skipped"
  exit 0
fi

say "binary: make all WHAT='${stale[*]}' for linux/$ARCH, $version, $GO_VERSION"
# A clean environment: Go's own settings (GOAMD64, GOEXPERIMENT, go env -w) would change the bytes. Upstream turns cgo
# off for all but kubelet and the generators; off for these too, they share what is compiled for the others.
env -i PATH="$PATH" HOME="$OUTPUT/home" TMPDIR="${TMPDIR:-/tmp}" LC_ALL=C TZ=UTC GOTOOLCHAIN=local GOENV=off GOTELEMETRY=off \
  CGO_ENABLED=0 GOFLAGS="${GOFLAGS:-}" KUBE_VERBOSE="${KUBE_VERBOSE:-1}" KUBE_GIT_VERSION_FILE="$version_file" \
  SOURCE_DATE_EPOCH="$(recorded "base.$VERSION.time")" KUBE_BUILD_PLATFORMS="linux/$ARCH" \
  make --no-print-directory -C "$TREE" all WHAT="${stale[*]}" 2>&1 |
  # Upstream's generators know fewer kinds of types than today's Go has, and say so for each; none is generated for.
  { grep --line-buffered -v 'Making unsupported type entry' || true; }

mkdir -p "$BIN"
for target in "${stale[@]}"; do
  name=${target##*/}
  cp "$TREE/_output/local/bin/linux/$ARCH/$name" "$BIN/.$name.new"
  mv "$BIN/.$name.new" "$BIN/$name"
  write_stamp "$BIN/.$name.inputs" "$inputs" "$name"
  say "binary: $BIN/$name"
done
