#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles kube-scheduler and kube-log-runner in the patched tree, through upstream's own make. Its generators, which
# take longer than all the rest, run again only when something that they read has changed.
#
# Inputs: the tree that apply-patches.sh made; ARCH (amd64, arm64), GOFLAGS (passed on), VERSION_SUFFIX; arguments:
#   --check (link once more without the generators, and fail if a byte differs from what was made with them).
# Output: _output/bin/linux/ARCH/. Exit: 0 made or up to date; 1 nothing was changed, or a byte differs (--check).
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
read_series "$build"
[[ $(recorded applied.series) == "$(recorded applied.head) $(what_is_applied)" ]] ||
  fail "$PATCHES_DIR or $MODULES_FILE has changed since the patches were applied" "make tree"

version_file=$OUTPUT/version.sh
write_version_file "$version_file" "$version"

# nothing_to_generate COMMIT: since upstream's generators ran for this commit to the end, only plugins' Go files have
# changed, and none of them is of a package that has types to generate for, or that the packages of such types import.
nothing_to_generate() {
  local plugins=pkg/scheduler/framework/plugins changed path packages=() imports=()
  [[ -n $1 ]] || return 1
  changed=$(in_tree diff --name-only --no-renames "$1" HEAD) || return 1
  [[ -n $changed ]] || return 0
  while IFS= read -r path; do
    [[ $path == "$plugins"/*.go && $path != "$plugins"/apis/* ]] || return 1
    packages+=("${path%/*}")
    imports+=(-e "\"k8s.io/kubernetes/${path%/*}\"")
  done <<< "$changed"
  ! in_tree grep -qF "${imports[@]}" HEAD -- pkg/scheduler/apis "$plugins/apis" &&
    ! in_tree grep -qF -e +k8s: "$1" -- "${packages[@]/%//*.go}" &&
    ! in_tree grep -qF -e +k8s: HEAD -- "${packages[@]/%//*.go}"
}

# make_all [OPTION] makes the targets of ${stale[@]}. In a clean environment: Go's own settings (GOAMD64, GOEXPERIMENT,
# go env -w) would change the bytes. Upstream turns cgo off for all but kubelet and the generators; off for these too,
# they share what is compiled for the others.
make_all() {
  # After Ctrl-C there is nothing to fix: no word is said. It comes to make, to grep and to this script.
  trap 'trap - INT; kill -INT $$' INT
  say "binary: make ${1:+$1 }all WHAT='${stale[*]}' for linux/$ARCH, $version, $GO_VERSION"
  env -i PATH="$PATH" HOME="$OUTPUT/home" TMPDIR="${TMPDIR:-/tmp}" LC_ALL=C TZ=UTC GOTOOLCHAIN=local GOENV=off GOTELEMETRY=off \
    CGO_ENABLED=0 GOFLAGS="${GOFLAGS:-}" KUBE_VERBOSE="${KUBE_VERBOSE:-1}" KUBE_GIT_VERSION_FILE="$version_file" \
    SOURCE_DATE_EPOCH="$(recorded "base.$VERSION.time")" KUBE_BUILD_PLATFORMS="linux/$ARCH" \
    make --no-print-directory -C "$TREE" "$@" all WHAT="${stale[*]}" 2>&1 |
    # Upstream's generators know fewer kinds of types than today's Go has, and say so for each; none is generated for.
    { grep --line-buffered -v 'Making unsupported type entry' || true; } || {
      local status=$?
      ((status != 130 && status != 143)) || exit "$status"
      fail "kube-scheduler cannot be made from $TREE, for the reason above" \
        "fix plugins/ (make test-plugins) or the patch, then run the same command again"
    }
  trap - INT
}
# With this, make takes what the generators make as it is.
without_generators=--old-file=generated_files

# The inputs of the binaries in full; a patch's message is not among them.
inputs=("tree $(in_tree rev-parse 'HEAD^{tree}')" "go $GO_VERSION" "flags ${GOFLAGS:-}" "version $version"
  "time $(recorded "base.$VERSION.time")")
generated=$(recorded generated.commit)
if [[ ${1:-} == --check ]]; then
  inputs+=('generators run')
  generated=
fi
stale=()
for target in "${targets[@]}"; do
  made_with "$BIN/.${target##*/}.inputs" "${inputs[@]}" || stale+=("$target")
done

if ((${#stale[@]} == 0)); then
  say "binary: $version for linux/$ARCH is up to date: skipped"
else
  if nothing_to_generate "$generated"; then
    generators='generators skipped'
    make_all "$without_generators"
  else
    generators='generators run'
    # Until they have run to the end, nothing vouches for what they make.
    git config -f "$TREE/.git/kube-scheduler" --unset generated.commit || true
    make_all
    # Where they changed a file that the patches hold, the next run says so.
    [[ -n $(in_tree status --porcelain) ]] || record generated.commit "$TREE" "$(in_tree rev-parse HEAD)"
  fi
  [[ ${1:-} == --check ]] || inputs+=("$generators")
  mkdir -p "$BIN"
  for target in "${stale[@]}"; do
    name=${target##*/}
    cp "$TREE/_output/local/bin/linux/$ARCH/$name" "$BIN/.$name.new"
    mv "$BIN/.$name.new" "$BIN/$name"
    write_stamp "$BIN/.$name.inputs" "$(printf '%s\n' "${inputs[@]}")" "$name"
    say "binary: $BIN/$name"
  done
fi

if [[ ${1:-} == --check ]]; then
  stale=("${targets[@]}")
  # The go command links again only what is not there.
  for target in "${stale[@]}"; do rm -f "$TREE/_output/local/go/bin/"{,"linux_$ARCH/"}"${target##*/}"; done
  make_all "$without_generators"
  for target in "${stale[@]}"; do
    name=${target##*/}
    cmp "$BIN/$name" "$TREE/_output/local/bin/linux/$ARCH/$name" ||
      fail "$name has other bytes when upstream's generators are skipped" \
        "see what else 'make all' does in $TREE/Makefile, and nothing_to_generate in scripts/build-binary.sh"
  done
  say "binary: the same bytes without the generators"
fi
