#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes the current commit of _output/kubernetes as a step of the series: a folder of patches/.
#
# Inputs: PATCH, the folder's name (0400-what-it-does); a commit of yours in the tree. Output: patches/PATCH.
# Exit: 0 written; 1 nothing was changed: the message or the name is invalid, another patch has that name, the folder has
# edits that are not in the tree, or one of your commits below is in no patch.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

PATCH=${PATCH:-} PATCH=${PATCH%.patch}
[[ -n $PATCH && $PATCH != */* ]] || fail "PATCH is not the name of a patch" "make export-patch PATCH=0400-what-it-does"
[[ $PATCH != 0200-plugin-* ]] || fail "$PATCH is made from plugins/" "edit plugins/, then make tree"
lock
use_pinned_go
build=$(build_tool kube-scheduler-build)
work=$(mktemp -d "$OUTPUT/.patches.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/steps" "$work/none"
# folder COMMIT NAME writes a commit as a folder of $work/steps.
folder() { export_patch "$TREE" "$1" | "$build" patches export "$work/steps" "$2" || exit; }
# made_sum prints the sum of the patch that is made from the folder as it is.
made_sum() {
  MODULES='' "$build" patches make --kubernetes "$KUBERNETES_VERSION" --modules "$MODULES_FILE" "$SERIES_DIR" "$ROOT/plugins" "$work/series" > /dev/null || exit
  sha256sum < "$work/series/$PATCH.patch" | cut -d' ' -f1
}
[[ $(git -C "$TREE" log -1 --format=%ce) != build@localhost ]] ||
  fail "the current commit of $TREE is one of the series, not yours" "git -C $TREE add -A && git -C $TREE commit, then make export-patch PATCH=$PATCH"
[[ $(git -C "$TREE" log -1 --format=%P) != *' '* ]] ||
  fail "the current commit of $TREE is a merge, which a patch cannot be" "git -C $TREE rebase, then make export-patch PATCH=$PATCH"
folder HEAD "$PATCH"
"$build" patches lint "$work/steps" "$work/none" > /dev/null || exit

target=$SERIES_DIR/$PATCH made=$work/steps/$PATCH
if [[ -e $target ]] && ! diff -r "$target" "$made" > /dev/null; then
  [[ $(head -n 1 "$target/message") == "$(head -n 1 "$made/message")" ]] ||
    fail "patches/$PATCH is another patch: $(head -n 1 "$target/message")" \
      "choose another number; or rm -r $target first, if this patch replaces it"
  # What the tree is made from, or an earlier export wrote, may be replaced. Edits of the folder may not.
  sum=$(made_sum)
  [[ " $(recorded applied.series) $(recorded "exported.$PATCH.sum") " == *" $sum "* ]] ||
    fail "patches/$PATCH has edits that are not in the tree" \
      "take them into the tree: git -C $TREE checkout --detach $(recorded applied.head), then make tree  |  discard them: git checkout -- patches/$PATCH && git clean -fd patches/$PATCH"
fi
# The next step returns to the series: commits between it and this commit must already be in patches.
missing=()
for ((commit = 1; ; commit++)); do
  below=$(git -C "$TREE" rev-parse -q --verify "HEAD~$commit") || break
  # Upstream's commit, and commits of apply-patches.sh, end the search.
  [[ $below != "$(recorded "base.$VERSION.tree")" && $(git -C "$TREE" log -1 --format=%ce "$below") != build@localhost ]] || break
  folder "$below" below
  found=
  for step in "$SERIES_DIR"/*/; do
    ! diff -r "$step" "$work/steps/below" > /dev/null || found=yes
  done
  [[ -n $found ]] || missing=("$below" "${missing[@]}")
done
if ((${#missing[@]})); then
  fail "${#missing[@]} of your commits below this one are not in any patch: $(git -C "$TREE" log --no-walk=unsorted --format='%h %s' "${missing[@]}" | paste -sd, | sed 's/,/, /g')" \
    "git -C $TREE checkout --detach ${missing[0]}, export that first, then come back: git -C $TREE checkout --detach $(git -C "$TREE" rev-parse HEAD)"
fi
export_patch "$TREE" HEAD | "$build" patches export "$SERIES_DIR" "$PATCH" || exit
record "exported.$PATCH.sum" "$TREE" "$(made_sum)"
say "patches: $PATCH written from $(git -C "$TREE" rev-parse --short HEAD)"
edited=$(git -C "$TREE" status --porcelain --untracked-files=normal | wc -l)
((edited == 0)) || say "note:    $edited files of the tree have uncommitted changes, which are not in the patch: git -C $TREE status"
say "next:    git -C $TREE checkout --detach $(recorded applied.head); make update tree"
