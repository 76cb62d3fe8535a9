#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Looks for known vulnerabilities in the programs of a release: in functions that they call, in packages that they link,
# and in modules that they require. The last need a statement in build/vulncheck/openvex.json.
#
# Inputs: the tree; (environment) VULNDB, the URL of a Go vulnerability database (the Go project's), WRITE=yes (write the
# statements anew instead of comparing them). For another UPSTREAM than the pinned one, it only reports.
# Exit: 0 none without a statement, or a report; 1 some, listed, or the check could not be made.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/tree.sh"

patches_applied || fail "the patches are not applied to $VERSION" "make tree"
use_pinned_go
export GOWORK=off
build=$(build_tool kube-scheduler-build)
build_server govulncheck
status=0
"$build" vulncheck --govulncheck "$OUTPUT/tools/govulncheck" --database "${VULNDB:-}" --tree "$TREE" --project "$ROOT" \
  --kubernetes "$VERSION" --statements "$ROOT/build/vulncheck/openvex.json" ${WRITE:+--write} || status=$?
pinned || { say "vulncheck: a report only: versions are raised for $KUBERNETES_VERSION"; exit 0; }
exit "$status"
