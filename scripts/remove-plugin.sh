#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Removes a plugin: its entry in the registry patch, and its directory under plugins/.
#
# Inputs: NAME (MyPlugin, or its directory), DISCARD (yes: also delete uncommitted work there); the source that
#   source.sh installed. Exit: 0 removed; 1 nothing was changed, or an interrupted run must be repeated.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/tree-edits.sh"
source "$(dirname "${BASH_SOURCE[0]}")/plugin-registry.sh"

[[ -n ${NAME:-} ]] || fail "NAME is not given" "make remove-plugin NAME=MyPlugin"
[[ $NAME =~ ^[A-Za-z][A-Za-z0-9]*$ ]] || fail "NAME=$NAME is not a valid plugin name" \
  "ls plugins, then make remove-plugin NAME=MyPlugin"
package=${NAME,,}
folder=$ROOT/plugins/$package
case $package in
  apis | configcheck | shared | simulation) fail "plugins/$package is not a plugin, but shared by plugins" \
    "make remove-plugin NAME=MyPlugin" ;;
esac
is_registered=$(registered | grep -x "$package" || true)
[[ -n $is_registered || -d $folder ]] ||
  fail "there is no plugin $NAME: neither a directory plugins/$package nor an entry in the registry" \
    "ls plugins, then make remove-plugin NAME=MyPlugin"
users=$(grep -rlE --include='*.go' "plugins/$package(/.*)?\"" "$ROOT/plugins" | grep -v "^$folder/" || true)
[[ -z $users ]] ||
  fail "plugins/$package is used by ${users//$'\n'/, }" "remove its import there, then run the same command again"
# Files that git cannot restore. Files that are already deleted do not count.
if [[ -d $folder && ${DISCARD:-} != yes ]]; then
  work=$(git -C "$ROOT" status --porcelain --untracked-files=all --ignored -- "$folder" 2> /dev/null ||
    echo "?? plugins/$package (not in a git repository)")
  work=$(grep -v '^ \?D' <<< "$work" || true)
  if [[ -n $work ]]; then
    head -20 <<< "$work" >&2
    fail "plugins/$package has uncommitted work (listed above)" \
      "keep it: git add plugins/$package && git commit  |  delete it too: make remove-plugin NAME=$NAME DISCARD=yes"
  fi
fi

bash "$ROOT/scripts/apply-patches.sh"
lock
use_pinned_go
refuse_edits
build=$(build_tool kube-scheduler-build)
edit_registry "$build" unregister "$package"
# A run that is interrupted from here on can be repeated: it skips what is already gone.
write_registry "$build"
rm -rf "$folder"
bash "$ROOT/scripts/update-patches.sh"
say "plugin: $NAME is removed"
left=$(grep -rliw --exclude-dir=.git --exclude-dir=_output -e "$package" -e "${package}args" "$ROOT" |
  sed "s#^$ROOT/##" | sort || true)
[[ -z $left ]] || say "note:   these files still refer to it: ${left//$'\n'/, }"
say "next:   make image"
