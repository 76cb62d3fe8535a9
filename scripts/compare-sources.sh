#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fetches the source both ways, and compares the trees: every file that both have must be identical and of the same
# kind. Needs the code host, or KUBERNETES_GIT_URL.
#
# Inputs: UPSTREAM, KUBERNETES_GIT_URL. Exit: 0 the same; 1 a difference, which is listed, or a source is unavailable.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

SOURCE=git bash "$ROOT/scripts/source.sh"
SOURCE=module bash "$ROOT/scripts/source.sh"
git_tree=refs/upstream/$VERSION/git module_tree=refs/upstream/$VERSION/module
# Only files that both have (M: content or mode, T: kind). Files that only git has are expected: module zips omit nested
# modules, and vendor/ only holds compiled packages.
different=$(git -C "$TREE" diff --no-renames --name-status --diff-filter=MT "$git_tree" "$module_tree")
only_in_modules=$(git -C "$TREE" diff --no-renames --name-only --diff-filter=A "$git_tree" "$module_tree" |
  grep -vE '^staging/src/k8s.io/sample-(apiserver|cli-plugin|controller)/go.mod$' || true)
only_in_git=$(git -C "$TREE" diff --no-renames --name-only --diff-filter=D "$git_tree" "$module_tree" | wc -l)
shared=$(git -C "$TREE" ls-tree -r --name-only "$module_tree" | wc -l)
say "compare: $shared files from modules, $only_in_git more from git alone"
[[ -z $different && -z $only_in_modules ]] || {
  printf '%s\n' "$different" "$only_in_modules" >&2
  fail "the two sources of $VERSION differ in the files above" "report this; build with SOURCE=git until this is fixed"
}
say "compare: all files that both have are identical"
