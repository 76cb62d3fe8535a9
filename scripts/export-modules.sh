#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes the commit that modules.yaml adds to upstream's tree as a patch. git am applies it to any clone of Kubernetes,
# before the series.
#
# Inputs: the tree that apply-patches.sh made. Output: _output/0000-modules.patch; none if modules.yaml lists no
# modules.
# Exit: 0 written; 1 the tree is not made from modules.yaml as it is now.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

lock
patch=$OUTPUT/0000-modules.patch
export_modules "$patch"
if [[ -f $patch ]]; then
  say "modules: $patch"
  say "next:    git -C YOUR_CLONE am $patch $PATCHES_DIR/*.patch"
else
  say "modules: $MODULES_FILE lists no modules, and the series needs none"
fi
