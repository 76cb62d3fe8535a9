#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes the commit that modules.yaml adds to upstream's tree as a patch: git am takes it in any clone of Kubernetes, and
# the series after it.
#
# Inputs: the tree that apply-patches.sh made. Output: _output/0000-modules.patch; none where nothing is carried.
# Exit: 0 written; 1 the tree is not made from modules.yaml as it is now.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

lock
patch=$OUTPUT/0000-modules.patch
export_modules "$patch"
if [[ -f $patch ]]; then
  say "modules: $patch"
  say "next:    git -C YOUR_CLONE am $patch $PATCHES_DIR/*.patch"
else
  say "modules: $MODULES_FILE names none, and the series needs none"
fi
