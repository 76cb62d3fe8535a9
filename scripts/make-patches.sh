#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes the series as *.patch files, as git am takes them: one for each folder of patches/, and one for each directory of
# plugins/, which adds the same files byte for byte at pkg/scheduler/framework/plugins.
#
# Inputs: patches/, plugins/; modules.yaml, MODULES and UPSTREAM, which leave patches out. No source is needed.
# Output: _output/patches/*.patch. The one with the packages of modules.yaml is added by apply-patches.sh.
# Exit: 0 up to date or updated; 1 nothing was changed.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/plugin-registry.sh"

if [[ $PATCHES_DIR != "$OUTPUT/patches" ]]; then
  say "patches: those of $PATCHES_DIR are used as they are"
  exit 0
fi
lock
gone=()
while IFS= read -r name; do
  [[ -n $(find "$ROOT/plugins/$name" -name '*.go' -print -quit 2> /dev/null) ]] || gone+=("$name")
done < <(registered)
if ((${#gone[@]})); then
  printf -v next '; make remove-plugin NAME=%s' "${gone[@]}"
  next="remove it from the registry: ${next#; }"
  for name in "${gone[@]}"; do
    [[ -z $(git -C "$ROOT" ls-files -- "plugins/$name" 2> /dev/null) ]] ||
      next+="  |  restore the directory: git checkout -- plugins/$name"
  done
  fail "the registry has plugins without a directory: ${gone[*]/#/plugins/}" "$next"
fi
use_pinned_go
build=$(build_tool kube-scheduler-build)
"$build" patches make --kubernetes "$VERSION" --modules "$MODULES_FILE" "$SERIES_DIR" "$ROOT/plugins" "$PATCHES_DIR" || exit
# The modules' patch of another modules.yaml, or release, must not be applied before these.
[[ $(cat "$PATCHES_DIR/.modules" 2> /dev/null) == "$VERSION $(modules_sum)" ]] ||
  rm -f "$PATCHES_DIR/.modules" "$PATCHES_DIR/$MODULES_PATCH"
