#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes the current commit of _output/kubernetes as a patch of the series.
#
# Inputs: PATCH, the file's name (0400-what-it-does.patch); a commit of yours in the tree. Output: patches/PATCH.
# Exit: 0 written; 1 nothing was changed: the message or the name is invalid, another patch has that name, or one of
# your commits below is in no patch.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

[[ -n ${PATCH:-} && $PATCH != */* && $PATCH == *.patch ]] || fail "PATCH is not a patch file name" "make export-patch PATCH=0400-what-it-does.patch"
[[ $PATCH != 0200-plugin-* ]] || fail "$PATCH is made from plugins/" "edit plugins/, then make patches"
lock
use_pinned_go
build=$(build_tool kube-scheduler-build)
work=$(mktemp -d "$OUTPUT/.patches.XXXXXX")
trap 'rm -rf "$work"' EXIT
export_patch "$TREE" HEAD > "$work/$PATCH"
"$build" patches lint "$work" > /dev/null || exit

subject() { sed -n '/^Subject: /,/^[^ ]/ { /^Subject: / p; /^ / p }' "$1"; }
if [[ -e $PATCHES_DIR/$PATCH && $(subject "$PATCHES_DIR/$PATCH") != "$(subject "$work/$PATCH")" ]]; then
  fail "patches/$PATCH is another patch: its $(subject "$PATCHES_DIR/$PATCH" | head -n 1)" \
    "choose another number; or rm $PATCHES_DIR/$PATCH first, if this patch replaces it"
fi
# The next step returns to the series: commits between it and this commit must already be in patches.
missing=()
for ((commit = 1; ; commit++)); do
  below=$(git -C "$TREE" rev-parse -q --verify "HEAD~$commit") || break
  # Commits of apply-patches.sh end the search.
  [[ $(git -C "$TREE" log -1 --format=%ce "$below") != build@localhost ]] || break
  export_patch "$TREE" "$below" > "$work/below"
  found=
  for patch in "$PATCHES_DIR"/*.patch; do
    ! cmp -s "$patch" "$work/below" || found=yes
  done
  [[ -n $found ]] || missing=("$below" "${missing[@]}")
done
if ((${#missing[@]})); then
  fail "${#missing[@]} of your commits below this one are not in any patch: $(git -C "$TREE" log --no-walk=unsorted --format='%h %s' "${missing[@]}" | paste -sd, | sed 's/,/, /g')" \
    "git -C $TREE checkout --detach ${missing[0]}, export that first, then come back: git -C $TREE checkout --detach $(git -C "$TREE" rev-parse HEAD)"
fi
cp "$work/$PATCH" "$PATCHES_DIR/.$PATCH.new"
mv "$PATCHES_DIR/.$PATCH.new" "$PATCHES_DIR/$PATCH"
say "patches: $PATCH written from $(git -C "$TREE" rev-parse --short HEAD)"
edited=$(git -C "$TREE" status --porcelain --untracked-files=normal | wc -l)
((edited == 0)) || say "note:    $edited files of the tree have uncommitted changes, which are not in the patch: git -C $TREE status"
say "next:    git -C $TREE checkout --detach $(recorded applied.head); make update tree"
