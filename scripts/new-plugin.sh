#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Begins a plugin: its folder under plugins/, its entry in the registry patch, its own patch.
#
# Inputs: NAME (MyPlugin), POINTS (filter,score); the patched tree, in which the registry patch is edited.
# Output: plugins/<name>, patches/0310-…, patches/0200-plugin-<name>.patch. Exit: 0 begun; 1 nothing was changed.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/tree.sh"

REGISTRY_PATCH=$PATCHES_DIR/0310-registry-add-our-plugins.patch
REGISTRY_FILE=pkg/scheduler/framework/plugins/registry.go
SCRATCH=$OUTPUT/.registry

[[ -n ${NAME:-} && -n ${POINTS:-} ]] || fail "NAME or POINTS is not given" "make new-plugin NAME=MyPlugin POINTS=filter,score"
lock
use_pinned_go
refuse_edits
build=$(build_tool kube-scheduler-build)
subject=$(sed -n 's/^Subject: \[PATCH\] //p' "$REGISTRY_PATCH")
commit=$(in_tree log --format=%H --fixed-strings --grep="$subject" "$(recorded applied.base)..$(recorded applied.head)")
[[ -n $commit ]] || fail "the tree has no commit '$subject'" "make tree"

package=${NAME,,}
cleanup() {
  rm -rf "$SCRATCH"
  in_tree worktree prune
}
trap cleanup EXIT
rm -rf "$SCRATCH"
in_tree worktree prune
in_tree worktree add -q --no-checkout --detach "$SCRATCH" "$commit"
git -C "$SCRATCH" read-tree HEAD
git -C "$SCRATCH" checkout -q -- "$REGISTRY_FILE"
"$build" new-plugin register "$SCRATCH/$REGISTRY_FILE" "$NAME" "$POINTS" || exit
! in_tree cat-file -e "$(recorded applied.base):${REGISTRY_FILE%/*}/$package" 2> /dev/null ||
  fail "NAME=$NAME: upstream itself has a plugin folder $package" "make new-plugin NAME=My$NAME POINTS=$POINTS"
git -C "$SCRATCH" add -- "$REGISTRY_FILE"
git -C "$SCRATCH" commit -q --amend --reuse-message=HEAD
export_patch "$SCRATCH" HEAD > "$OUTPUT/.registry.patch"
# All that can fail is done. A run that is cut off between the next two leaves a folder that is not registered, and the
# message of the next run says so.
if [[ -d $ROOT/plugins/$package ]]; then
  say "plugin: plugins/$package is there and not registered: registering it"
else
  "$build" new-plugin write "$ROOT/plugins" "$NAME" "$POINTS" || exit
fi
mv "$OUTPUT/.registry.patch" "$REGISTRY_PATCH"
flock --unlock 9
bash "$ROOT/scripts/update-patches.sh"
bash "$ROOT/scripts/update-patches-readme.sh"
say "plugin: $NAME is begun at $POINTS, and registered; nothing enables it yet"
say "next:   edit plugins/$package/plugin.go and its test; make test-plugins NAME=$package; make image"
