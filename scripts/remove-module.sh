#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Removes a module with plugins of another project from modules.yaml. The series then leaves out its patches.
#
# Inputs (environment): MODULE, its path. Exit: 0 removed; 1 modules.yaml does not list it.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

[[ -n ${MODULE:-} ]] || fail "MODULE is not given" "make remove-module MODULE=sigs.k8s.io/scheduler-plugins"
use_pinned_go
build=$(build_tool kube-scheduler-build)
"$build" modules remove "$MODULES_FILE" "${MODULE%@*}" || exit 1
say "modules: ${MODULE%@*} is no longer in $MODULES_FILE"
say "next:    make update; make image"
