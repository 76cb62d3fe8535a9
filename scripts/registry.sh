# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Functions of new-plugin.sh and remove-plugin.sh that change the patch that registers plugins. Sourced after
# environment.sh and tree.sh.
REGISTRY_PATCH=$PATCHES_DIR/0310-registry-add-our-plugins.patch
REGISTRY_FILE=pkg/scheduler/framework/plugins/registry.go
REGISTRY_SCRATCH=$OUTPUT/.registry

forget_registry_scratch() {
  rm -rf "$REGISTRY_SCRATCH"
  in_tree worktree prune
}

# edited_registry_patch BUILD COMMAND ARGUMENT… writes $OUTPUT/.registry.patch: the applied registry patch after `BUILD
# new-plugin COMMAND <file> ARGUMENT…` edited the registry. BUILD is the path of kube-scheduler-build.
edited_registry_patch() {
  local subject commit
  subject=$(sed -n 's/^Subject: \[PATCH\] //p' "$REGISTRY_PATCH")
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
  export_patch "$REGISTRY_SCRATCH" HEAD > "$OUTPUT/.registry.patch"
}

# registered prints the directories of the plugins in the registry patch, one per line.
registered() {
  sed -n 's#^+.*"k8s.io/kubernetes/pkg/scheduler/framework/plugins/\([a-z0-9]*\)"$#\1#p' "$REGISTRY_PATCH" 2> /dev/null || true
}
