#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Deletes everything that was made, but no work of the user's.
#
# Exit: 0 deleted; 1 _output/kubernetes holds edits, and nothing was deleted.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/tree-edits.sh"

lock
if [[ -e $TREE ]]; then
  [[ -f $TREE/.git/kube-scheduler ]] || fail "$TREE was not made by this project" "move it away, then make clean"
  refuse_edits
  # Branches and stashes are work too, wherever HEAD is.
  kept=$(in_tree for-each-ref --no-merged="$(in_tree rev-parse HEAD)" --format='%(refname)' refs/heads refs/stash)
  [[ -z $kept ]] || fail "$TREE contains work that is not in the series: ${kept//$'\n'/, }" \
    "export it: git -C $TREE bundle create $ROOT/my-edits.bundle --branches refs/stash  |  discard it: git -C $TREE branch -D …, git stash drop"
fi
# Only what this project makes: OUTPUT may be a folder that holds other things as well.
cd "$OUTPUT"
[[ ! -d .downloads ]] || chmod -R u+w .downloads
rm -rf kubernetes upstream bin tools release-images control base-images release e2e test bench bisect oracle home version.sh version.sh.new \
  patches .source .patching .patching.log .registry .verify.log .patches.* .generated.* .applies.* .docker.* .buildx.* .apt.lock apt.log .lock \
  .downloads downloads.tar downloads.tar.new crds
cd "$ROOT"
rmdir "$OUTPUT" 2> /dev/null || say "clean: $OUTPUT also contains other files; they are kept"
say "clean: all build results are deleted"
