#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes patches/README.md from modules.yaml and the messages of the patches.
#
# Inputs: modules.yaml; patches/*.patch; arguments: --check (change nothing, fail on a difference).
# Exit: 0 up to date or updated; 1 not.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

use_pinned_go
build=$(build_tool kube-scheduler-build)
page=$PATCHES_DIR/README.md
made=$("$build" patches readme "$PATCHES_DIR" "$MODULES_FILE"; printf x)
made=${made%x}
if [[ -f $page && "$(cat "$page"; printf x)" == "${made}x" ]]; then
  say "patches: README.md is up to date: skipped"
elif [[ ${1:-} == --check ]]; then
  fail "patches/README.md differs from modules.yaml and the patches' messages" "make update"
else
  printf '%s' "$made" > "$page.new"
  mv "$page.new" "$page"
  say "patches: README.md written"
fi
