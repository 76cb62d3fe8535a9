# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Functions of the scripts that use _output/kubernetes: they check that it is ours, complete, and free of a user's
# edits. Sourced after environment.sh.

in_tree() { git -C "$TREE" "$@"; }

# restore_kinds restores symbolic links and executable bits that a copy through Windows or a zip file lost: files with
# upstream's content and another kind. Files that cannot be restored are then reported as edits.
restore_kinds() {
  local fields path restored=0
  while IFS= read -r -d '' fields && IFS= read -r -d '' path; do
    # fields: ":100755 100644 <blob> 0000000… M" (mode) or ":120000 100644 <blob> 0000000… T" (link)
    [[ $fields =~ ^:(100755|120000)\ 100644\ ([0-9a-f]+)\  ]] || continue
    [[ $(in_tree hash-object --no-filters "$path" 2> /dev/null) == "${BASH_REMATCH[2]}" ]] || continue
    in_tree checkout -q -- "$path"
    restored=$((restored + 1))
  done < <(in_tree diff-files --raw --no-abbrev -z)
  ((restored == 0)) || say "tree: $restored symbolic links and executable bits were lost (a copy through Windows or a zip file?): restored"
}

# finish_interrupted_checkout completes an interrupted change of the tree. The tree had no edits when the change began,
# so a file is ours if it is the old one, the new one, or the beginning of the new one. Anything else is a later edit.
finish_interrupted_checkout() {
  local wanted path size
  wanted=$(recorded pending.head)
  [[ -n $wanted ]] || return 0
  rm -f "$TREE/.git/index.lock" "$TREE/.git/HEAD.lock"
  while IFS= read -r -d '' path; do
    [[ -f $TREE/$path && ! -L $TREE/$path ]] || continue
    size=$(stat -c %s "$TREE/$path")
    cmp -s "$TREE/$path" <(in_tree cat-file blob "HEAD:$path" 2> /dev/null) && continue
    cmp -s "$TREE/$path" <(in_tree cat-file blob "$wanted:$path" 2> /dev/null | head -c "$size") && continue
    fail "a change of $TREE was interrupted, and $path has been edited since" "save it: cp $TREE/$path ., then git -C $TREE checkout -- $path, and run the same command again"
  done < <(in_tree diff-files --name-only -z; in_tree diff --name-only -z --diff-filter=A HEAD "$wanted")
  in_tree checkout -q --force --detach "$wanted"
  record applied.head "$TREE" "$wanted"
  git config -f "$TREE/.git/kube-scheduler" --unset pending.head
  say "tree: an interrupted change was completed"
}

# refuse_edits ends the script if the tree holds work of the user, and prints how to keep it and how to discard it.
refuse_edits() {
  local head changes
  finish_interrupted_checkout
  in_tree config core.symlinks true
  in_tree config core.fileMode true
  changes=$(in_tree status --porcelain --untracked-files=all)
  if [[ -n $changes ]]; then
    restore_kinds
    changes=$(in_tree status --porcelain --untracked-files=all)
  fi
  if [[ -d $TREE/.git/rebase-apply || -d $TREE/.git/rebase-merge ]]; then
    fail "your git am or rebase in $TREE is not finished" \
      "finish it: git -C $TREE am --continue  |  drop it: git -C $TREE am --abort, then git -C $TREE checkout --detach $(recorded applied.head)"
  fi
  head=$(recorded applied.head)
  if [[ -n $head && $(in_tree rev-parse HEAD) != "$head" ]]; then
    in_tree log --oneline -10 "$head..HEAD" >&2
    fail "$TREE is not at the end of the series, or has your commits on top of it (they are then listed above)" \
      "export them: git -C $TREE format-patch -o $ROOT/my-edits $head  |  discard them: git -C $TREE checkout --detach $head"
  fi
  [[ -z $changes ]] && return
  head -20 <<< "$changes" >&2
  fail "$TREE has edits that are not in the series ($(wc -l <<< "$changes") files, listed above)" \
    "export them: git -C $TREE add -A && git -C $TREE diff --cached --binary > my-edits.patch  |  discard them: git -C $TREE reset --hard && git -C $TREE clean -fd"
}
