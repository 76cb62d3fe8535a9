# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Functions of new-plugin.sh and remove-plugin.sh that change the patch that registers plugins. Sourced after
# environment.sh and tree-edits.sh.
REGISTRY=0310-registry-add-our-plugins
REGISTRY_FILE=pkg/scheduler/framework/plugins/registry.go
REGISTRY_SCRATCH=$OUTPUT/.registry

forget_registry_scratch() {
  rm -rf "$REGISTRY_SCRATCH"
  in_tree worktree prune
}

# edit_registry BUILD COMMAND ARGUMENT… sets registry to the applied registry patch after `BUILD new-plugin COMMAND <file>
# ARGUMENT…` edited the registry. BUILD is the path of kube-scheduler-build.
edit_registry() {
  local subject commit
  [[ $PATCHES_DIR == "$OUTPUT/patches" ]] || fail "PATCHES_DIR=$PATCHES_DIR is not made from $SERIES_DIR" "run the same command without PATCHES_DIR"
  subject=$(head -n 1 "$SERIES_DIR/$REGISTRY/message")
  commit=$(in_tree log --format=%H --fixed-strings --grep="$subject" "$(recorded applied.base)..$(recorded applied.head)")
  [[ -n $commit ]] || fail "the tree has no commit '$subject'" "make tree"
  trap forget_registry_scratch EXIT
  forget_registry_scratch
  in_tree worktree add -q --no-checkout --detach "$REGISTRY_SCRATCH" "$commit"
  git -C "$REGISTRY_SCRATCH" read-tree HEAD
  git -C "$REGISTRY_SCRATCH" checkout -q -- "$REGISTRY_FILE"
  "$1" new-plugin "$2" "$REGISTRY_SCRATCH/$REGISTRY_FILE" "${@:3}" || exit
  git -C "$REGISTRY_SCRATCH" add -- "$REGISTRY_FILE"
  git -C "$REGISTRY_SCRATCH" commit -q --amend --reuse-message=HEAD
  registry=$(export_patch "$REGISTRY_SCRATCH" HEAD)
}

# write_registry BUILD writes what edit_registry made to the folder of the patch.
write_registry() { "$1" patches export "$SERIES_DIR" "$REGISTRY" <<< "$registry"; }

# registered prints the directories of the plugins in the registry patch, one per line.
registered() {
  sed -n 's#^+.*"k8s.io/kubernetes/pkg/scheduler/framework/plugins/\([a-z0-9]*\)"$#\1#p' "$SERIES_DIR/$REGISTRY/change.patch" 2> /dev/null || true
}
