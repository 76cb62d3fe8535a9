#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Creates a plugin: its directory under plugins/, and its entry in the registry patch.
#
# Inputs: NAME (MyPlugin), POINTS (filter,score), and those of make tree, which makes the patched tree in which the
#   registry patch is edited.
# Output: plugins/<name>, patches/0310-…, patches/README.md. Exit: 0 created; 1 nothing was changed.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/tree-edits.sh"
source "$(dirname "${BASH_SOURCE[0]}")/plugin-registry.sh"

[[ -n ${NAME:-} && -n ${POINTS:-} ]] || fail "NAME or POINTS is not given" "make new-plugin NAME=MyPlugin POINTS=filter,score"
use_pinned_go
build=$(build_tool kube-scheduler-build)
# Checks that need no tree come first.
"$build" new-plugin check "$NAME" "$POINTS" || exit
package=${NAME,,}
! registered | grep -qx "$package" ||
  fail "a plugin $package is already registered" "choose another NAME, or make remove-plugin NAME=$NAME"
! sed -n 's/^ *- name: //p' "$MODULES_FILE" | grep -qixF -- "$NAME" ||
  fail "$MODULES_FILE has a plugin $NAME of another project" "choose another NAME"
make --no-print-directory -C "$ROOT" tree
lock
refuse_edits
edit_registry "$build" register "$NAME"
! in_tree cat-file -e "$(recorded applied.base):${REGISTRY_FILE%/*}/$package" 2> /dev/null ||
  fail "NAME=$NAME: upstream already has a plugin directory $package" "make new-plugin NAME=My$NAME POINTS=$POINTS"
# Nothing can fail from here on. A run that is interrupted between the next two steps leaves an unregistered directory,
# which the next run reports.
if [[ -d $ROOT/plugins/$package ]]; then
  say "plugin: plugins/$package exists but is not registered: registering it"
  done="registered; plugins/$package stays as it is, and POINTS is not used"
  # That would delete a directory that this script did not create.
  back=
else
  "$build" new-plugin write "$ROOT/plugins" "$NAME" "$POINTS" || exit
  done="begun at $POINTS, and registered"
  back="(make remove-plugin NAME=$NAME DISCARD=yes removes it again, with its directory)"
fi
write_registry "$build"
bash "$ROOT/scripts/update-patches.sh"
say "plugin: $NAME is $done; nothing enables it yet"
say "next:   edit plugins/$package/plugin.go and its test; make test-plugins NAME=$package; make image"
[[ -z $back ]] || say "        $back"
