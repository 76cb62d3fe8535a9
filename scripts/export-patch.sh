#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes the commit that _output/kubernetes is at as a patch of the series.
#
# Inputs: PATCH, the file's name (0400-what-it-does.patch); a commit of yours in the tree. Output: patches/PATCH.
# Exit: 0 written; 1 the message or the name is not as it must be, and nothing was changed.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

[[ -n ${PATCH:-} && $PATCH != */* && $PATCH == *.patch ]] || fail "PATCH is not the name of a patch" "make export-patch PATCH=0400-what-it-does.patch"
[[ $PATCH != 0200-plugin-* ]] || fail "$PATCH is made from plugins/" "edit plugins/, then make patches"
lock
use_pinned_go
build=$(build_tool kube-scheduler-build)
work=$(mktemp -d "$OUTPUT/.patches.XXXXXX")
trap 'rm -rf "$work"' EXIT
export_patch "$TREE" HEAD > "$work/$PATCH"
"$build" patches lint "$work" > /dev/null || exit
cp "$work/$PATCH" "$PATCHES_DIR/.$PATCH.new"
mv "$PATCHES_DIR/.$PATCH.new" "$PATCHES_DIR/$PATCH"
say "patches: $PATCH written from $(git -C "$TREE" rev-parse --short HEAD)"
say "next:    git -C $TREE checkout --detach $(recorded applied.head); make update tree"
