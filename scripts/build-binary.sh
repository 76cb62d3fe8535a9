#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles kube-scheduler and kube-log-runner in the patched tree, through upstream's own make. Its generators, which
# take longer than all the rest, run only when something that they read differs from upstream's release, or from what
# they ran on before, and is not known to be current (plugins/types.sum).
#
# Inputs: the tree that apply-patches.sh made; ARCH (amd64, arm64), GOFLAGS (passed on), VERSION_SUFFIX; arguments:
#   --check (run the generators, and link once more without them: fail if a byte differs), --simulate (compile
#   kube-scheduler-simulate, which no image needs, instead).
# Output: _output/bin/linux/ARCH/. Exit: 0 made or up to date; 1 nothing was changed, or a byte differs (--check).
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/tree-edits.sh"
source "$(dirname "${BASH_SOURCE[0]}")/stamp.sh"

targets=(cmd/kube-scheduler vendor/k8s.io/component-base/logs/kube-log-runner)
[[ ${1:-} != --simulate ]] || targets=(cmd/kube-scheduler-simulate)
BIN=$OUTPUT/bin/linux/$ARCH

lock
patches_applied ||
  fail "the patches are not applied to $VERSION" "make tree"
refuse_edits
use_pinned_go
build=$(build_tool kube-scheduler-build)
version=$(recorded_version "$build") || exit
read_series "$build"
[[ $(recorded applied.series) == "$(recorded applied.head) $(what_is_applied)" ]] ||
  fail "$PATCHES_DIR or $MODULES_FILE has changed since the patches were applied" "make tree"

version_file=$OUTPUT/version.sh
write_version_file "$version_file" "$version" dirty

# directories prints those of the files that it reads the paths of.
directories() { sed 's,/[^/]*$,,' | sort -u; }

# nothing_to_generate COMMIT reports whether upstream's generators have nothing to do, if they had nothing left to do at
# COMMIT: since then, only Go files have changed of packages that have no types to generate for, and that packages with
# such types do not import. The types of plugins' arguments do not count while plugins/types.sum vouches for them.
nothing_to_generate() {
  local types=pkg/scheduler/framework/plugins/apis/config changed packages files typed importers
  changed=$(in_tree diff --name-only --no-renames "$1" HEAD -- '*.go' ':!vendor' 2> /dev/null) || return 1
  [[ ! -d $TREE/$types || $(types_sum "$TREE/$types") != "$(< "$ROOT/plugins/types.sum")" ]] ||
    changed=$(grep -v "^$types/[^/]*\$" <<< "$changed" || true)
  [[ -n $changed ]] || return 0
  packages=$(directories <<< "$changed")
  mapfile -t files <<< "$packages"
  files=("${files[@]/#/:(glob)}")
  files=("${files[@]/%//*.go}")
  typed=$({
    in_tree grep -lE '^// *\+k8s:' -- '*.go' ':!vendor'
    in_tree grep -lE '^// *\+k8s:' "$1" -- "${files[@]}" | sed 's,^[^:]*:,,'
  } | directories)
  importers=$(in_tree grep -lF -f <(sed 's,^staging/src/\(.*\),"\1",; t; s,.*,"k8s.io/kubernetes/&",' <<< "$packages") -- '*.go' ':!*_test.go' ':!vendor' | directories)
  [[ -z $(comm -12 <(printf '%s\n' "$typed") <(printf '%s\n' "$packages" "$importers" | sort -u)) ]]
}

# make_all [OPTION] makes the targets of ${stale[@]}.
make_all() {
  # After Ctrl-C there is nothing to fix, so no error is printed. make, the readers of its output and this script get it.
  trap 'trap - INT; kill -INT $$' INT
  say "binary: make ${1:+$1 }all WHAT='${stale[*]}' for linux/$ARCH, $version, $GO_VERSION"
  # Upstream's list of static programs does not have ours.
  upstream_make "$TREE" "$version_file" "$ARCH" "${GOFLAGS:-}" "$@" KUBE_STATIC_OVERRIDES=kube-scheduler-simulate all WHAT="-v ${stale[*]}" |
    progress binary in_gopath "$TREE" go list -deps -tags=selinux,notest "${stale[@]/#/./}" || {
      local status=$?
      ((status != 130 && status != 143)) || exit "$status"
      fail "${targets[0]#cmd/} cannot be built from $TREE: see the error above" \
        "fix plugins/ (make test-plugins) or the patch, then run the same command again"
    }
  trap - INT
}
# With this option, make does not run the generators.
without_generators=--old-file=generated_files

# All inputs of the binaries; a patch's message is not one.
inputs=("tree $(in_tree rev-parse 'HEAD^{tree}')" "go $GO_VERSION" "flags ${GOFLAGS:-}" "version $version"
  "time $(recorded "base.$VERSION.time")")
generated=$(recorded generated.commit)
# Upstream releases what its generators made.
generated=${generated:-$(recorded "base.$VERSION.tree")}
if [[ ${1:-} == --check ]]; then
  inputs+=('generators run')
  generated=none
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
    record generated.commit "$TREE" "$(in_tree rev-parse HEAD)"
  else
    generators='generators run'
    # Their output is not trusted until they have finished.
    record generated.commit "$TREE" none
    make_all
    # If they changed a file of the series, the next run refuses it as an edit.
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
  # The generators changed no file that the patches hold.
  refuse_edits
  stale=("${targets[@]}")
  # The go command links again only missing binaries.
  for target in "${stale[@]}"; do rm -f "$TREE/_output/local/go/bin/"{,"linux_$ARCH/"}"${target##*/}"; done
  make_all "$without_generators"
  for target in "${stale[@]}"; do
    name=${target##*/}
    cmp "$BIN/$name" "$TREE/_output/local/bin/linux/$ARCH/$name" ||
      fail "$name has other bytes when upstream's generators are skipped" \
        "read what else 'make all' does in $TREE/Makefile, and nothing_to_generate in scripts/build-binary.sh"
  done
  say "binary: the same bytes without the generators"
fi
