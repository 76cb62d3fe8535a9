#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Updates what is generated in patches/: the line that selects the Go release of the binary's run-time defaults, which is
# that of upstream.version, and README.md, from modules.yaml and the messages of the patches.
#
# Inputs: upstream.version, modules.yaml, patches/, plugins/; arguments: --check (change nothing, fail on a difference).
# Exit: 0 up to date or updated; 1 a difference (--check), or nothing was changed.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

use_pinned_go
build=$(build_tool kube-scheduler-build)
work=$(mktemp -d "$OUTPUT/.patches.XXXXXX")
trap 'rm -rf "$work"' EXIT
changed=()

# update FILE replaces a file by $work/made, unless it has the same content, or only checks that.
update() {
  ! cmp -s "$work/made" "$1" || return 0
  changed+=("${1#"$SERIES_DIR"/}")
  # A name that make patches does not read.
  [[ -n $check ]] || { cp "$work/made" "${1%/*}/.${1##*/}.new" && mv "${1%/*}/.${1##*/}.new" "$1"; }
}

check=${1:-}
# A newer Go thus brings its own defaults, and never silently keeps old ones.
[[ $GO_VERSION =~ ^go1\.[0-9]+ ]]
while IFS= read -r change; do
  sed "s|^+//go:debug default=.*|+//go:debug default=${BASH_REMATCH[0]}|" "$change" > "$work/made"
  update "$change"
done < <(grep -ls '^+//go:debug default=' "$SERIES_DIR"/*/change.patch)
"$build" patches readme "$SERIES_DIR" "$ROOT/plugins" "$MODULES_FILE" > "$work/made" || exit
update "$SERIES_DIR/README.md"
((${#changed[@]} == 0)) || [[ -z $check ]] ||
  fail "patches/ differs from upstream.version, modules.yaml or the patches' messages: ${changed[*]}" "make update"
say "patches: ${#changed[@]} generated files changed${changed[*]:+: ${changed[*]}}"
