#!/usr/bin/env bash
# Deletes everything that was made, but no work of the user's.
#
# Exit: 0 deleted; 1 _output/kubernetes holds edits, and nothing was deleted.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/tree.sh"

lock
[[ ! -f $TREE/.git/kube-scheduler ]] || refuse_edits
rm -rf "$OUTPUT"
say "clean: $OUTPUT is gone"
