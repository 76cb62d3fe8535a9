#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Looks for known vulnerabilities in the programs of a release: in functions that they call, in packages that they link,
# and in modules that they require. The last need a statement in build/vulncheck/openvex.json.
#
# Inputs: the tree; (environment) VULNDB, the URL of a Go vulnerability database (the Go project's), WRITE=yes (write the
# statements anew instead of comparing them). With another UPSTREAM than the pinned one, or MODULES=none, it only lists
# what it finds; of Kubernetes itself, what the pinned release still has.
# Exit: 0 none without a statement, or a list; 1 some, listed, or the check could not be made.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/tree-edits.sh"

patches_applied || fail "the patches are not applied to $VERSION" "make tree"
use_pinned_go
export GOWORK=off
build=$(build_tool kube-scheduler-build)
build_server govulncheck
compare=(${WRITE:+--write})
if ! pinned || [[ -n ${MODULES:-} ]]; then
  [[ -z ${WRITE:-} ]] || fail "the statements are for $KUBERNETES_VERSION with all modules" "make vulncheck WRITE=yes, without UPSTREAM and MODULES"
  compare=(--report)
fi
"$build" vulncheck --govulncheck "$OUTPUT/tools/govulncheck" --database "${VULNDB:-}" --tree "$TREE" --project "$ROOT" \
  --kubernetes "$VERSION" --statements "$ROOT/build/vulncheck/openvex.json" "${compare[@]}"
