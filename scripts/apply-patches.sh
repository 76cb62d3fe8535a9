#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Brings _output/kubernetes from upstream's commit to the patched tree: one commit with the packages of modules.yaml,
# then one commit for each patch, in the order of their names.
#
# The series is applied in a scratch work tree first. The tree itself only changes if all patches apply.
# Inputs: the base that source.sh made; modules.yaml; the patches that make-patches.sh wrote.
# Output: the tree, and that commit as a patch before the others, for any clone of Kubernetes.
# Exit: 0 applied or nothing to do; 1 nothing was changed.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/tree-edits.sh"

SCRATCH=$OUTPUT/.patching

# explain PATCH LOG ends the script with the reason why git could not apply the patch. The scratch tree is still in the
# state before it.
explain() {
  local name=${1##*/} where file line hunk
  if git -C "$SCRATCH" apply --cached --reverse --check "$1" 2> /dev/null; then
    fail "$name: $VERSION, or an earlier step, already contains this change" "git rm -r patches/${name%.patch} (the condition in its Drop-When is met), then make update tree"
  fi
  where=$(sed -n 's/^error: patch failed: //p' "$2" | head -1)
  file=${where%:*} line=${where##*:}
  if [[ -n $where ]]; then
    hunk=$(awk -v file="$file" -v line="$line" '$1 == "diff" { inside = ($0 ~ " b/" file "$") }
      inside && $1 == "@@" { split(substr($2, 2), at, ","); if (at[1] == line) { print; exit } }' "$1")
    where="file $file, hunk $hunk"
  else
    where=$(grep -m1 '^error: ' "$2" || tail -1 "$2")
  fi
  fail "$name does not apply to $VERSION: $where; $TREE is unchanged" \
    "resolve it by hand: git -C $TREE checkout --detach $done_so_far && git -C $TREE am -3 $1  (docs/patches.md, 'Resolve')"
}

need git sha256sum awk
lock
base=$(recorded "base.$VERSION.tree")
[[ -n $base ]] || fail "the source of $VERSION is missing" "make source"
[[ -f $MODULES_FILE ]] || fail "$MODULES_FILE does not exist" "git checkout -- modules.yaml"
use_pinned_go
build=$(build_tool kube-scheduler-build)
read_series "$build"
total=${#patches[@]} series=$(what_is_applied)

# export_modules writes the packages of modules.yaml as a patch, if there are any.
export_modules() {
  local wanted carried patch=$PATCHES_DIR/$MODULES_PATCH
  wanted="$VERSION $(modules_sum)"
  carried=$([[ $(in_tree rev-parse "$modules") == "$base" ]] || echo yes)
  [[ $(cat "$PATCHES_DIR/.modules" 2> /dev/null) != "$wanted" || (-n $carried && ! -f $patch) ]] || return 0
  rm -f "$PATCHES_DIR/.modules" "$patch"
  if [[ -n $carried ]]; then
    export_patch "$TREE" "$modules" > "$patch.new"
    mv "$patch.new" "$patch"
  fi
  printf '%s\n' "$wanted" > "$PATCHES_DIR/.modules"
}

refuse_edits
head=$(recorded applied.head) modules=$(modules_commit)
if [[ $(recorded applied.base) == "$base" && $(recorded applied.series) == "$head $series" ]]; then
  export_modules
  say "patches: the $total patches are applied to $VERSION: skipped"
  exit 0
fi

# Made once for its inputs. The ref exists only if the commit is complete.
if ! in_tree rev-parse --quiet --verify "$modules" > /dev/null; then
  "$build" source carry "$MODULES_FILE" "$TREE" "$base" "$modules" || exit 1
fi
# Unchanged patches at the beginning of the series already are commits, if their base is unchanged too.
start=$modules
read -ra old <<< "$(recorded applied.series)"
if [[ $(recorded applied.base) == "$base" && ${old[0]:-} == "$head" ]]; then
  read -ra new <<< "$head $series"
  same=0
  while [[ -n ${new[same]:-} && ${new[same]} == "${old[same]:-}" ]]; do same=$((same + 1)); done
  if ((same > 1)); then
    start=$(in_tree rev-parse "$head~$((${#old[@]} - same))")
    patches=("${patches[@]:same-2}")
  fi
fi

rm -rf "$SCRATCH"
in_tree worktree prune
# Without a checkout: git reads the few files that patches touch from the index.
in_tree worktree add -q --no-checkout --detach "$SCRATCH" "$start"
cleanup() { rm -rf "$SCRATCH" "$OUTPUT/.patching.log"; in_tree worktree prune; }
trap cleanup EXIT
git -C "$SCRATCH" read-tree HEAD
if ((${#patches[@]})) && ! git -C "$SCRATCH" am -q --keep-non-patch "${patches[@]}" > "$OUTPUT/.patching.log" 2>&1; then
  applied=$(git -C "$SCRATCH" rev-list --count "$start..HEAD")
  done_so_far=$(git -C "$SCRATCH" rev-parse HEAD)
  git -C "$SCRATCH" am -q --quit > /dev/null 2>&1 || true
  git -C "$SCRATCH" read-tree HEAD
  explain "${patches[applied]}" "$OUTPUT/.patching.log"
fi
head=$(git -C "$SCRATCH" rev-parse HEAD)
in_tree update-ref "refs/patched/$VERSION" "$head"

record pending.head "$TREE" "$head"
in_tree checkout -q --detach "$head"
record applied.base "$TREE" "$base"
record applied.head "$TREE" "$head"
record applied.series "$TREE" "$head $series"
git config -f "$TREE/.git/kube-scheduler" --unset pending.head
export_modules
pinned || say "modules: plugins of other projects are left out: modules.yaml is for $KUBERNETES_VERSION"
say "patches: $total patches applied to $VERSION"
# go.work above it does not name the tree.
say "next:    to work in the tree: cd $TREE && export GOWORK=off"
