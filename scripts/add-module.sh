#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Adds plugins of another project's Go module to modules.yaml, and builds kube-scheduler with them. Prints the added
# packages and the growth of the binary. modules.yaml only changes if the build succeeds.
#
# Inputs (environment): MODULE, path@version; PLUGINS, names separated by commas. They replace the plugins of a module
# that modules.yaml already lists.
# Exit: 0 added and built; 1 refused, and modules.yaml is unchanged.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

[[ -n ${MODULE:-} && -n ${PLUGINS:-} ]] ||
  fail "MODULE or PLUGINS is not given" "make add-module MODULE=sigs.k8s.io/scheduler-plugins@v0.23.10 PLUGINS=CapacityScheduling,PreemptionToleration"
[[ $MODULE == *@?* ]] ||
  fail "MODULE=$MODULE has no version" "go list -m -versions ${MODULE%@}; make add-module MODULE=${MODULE%@}@v1.2.3 PLUGINS=$PLUGINS"
[[ -z ${MODULES:-} ]] || fail "MODULES=$MODULES leaves out plugins of other projects" "run the same command without MODULES"
use_pinned_go
build=$(build_tool kube-scheduler-build)
make --no-print-directory -C "$ROOT" tree
# The entry is in a copy until the build succeeds, so an interrupted run leaves modules.yaml unchanged.
with=$OUTPUT/modules-with.yaml
trap 'rm -f "$with"' EXIT
cp "$MODULES_FILE" "$with"
unchanged=$(sha256sum < "$MODULES_FILE")
# The tree with this project's plugins shows which names are taken, apart from those of the module itself.
"$build" modules add "$with" "$TREE" "$(recorded "base.$VERSION.tree")" "$MODULE" "$PLUGINS" || exit 1
binary=$OUTPUT/bin/linux/$ARCH/kube-scheduler
make --no-print-directory -C "$ROOT" binary
before=$(stat -c %s "$binary")
if ! MODULES_FILE=$with make --no-print-directory -C "$ROOT" binary; then
  trap - EXIT
  fail "kube-scheduler does not compile with $MODULE; $MODULES_FILE is unchanged" \
    "read the errors above, and use another version of $MODULE; or fix it by a patch: cp $with $MODULES_FILE; docs/modules.md, 'Fix'"
fi
after=$(stat -c %s "$binary")
[[ $(sha256sum < "$MODULES_FILE") == "$unchanged" ]] ||
  fail "$MODULES_FILE was edited meanwhile, and is unchanged" "run the same command again"
cp "$with" "$MODULES_FILE.new"
mv "$MODULES_FILE.new" "$MODULES_FILE"
say "modules: $MODULE is in $MODULES_FILE; kube-scheduler has $after bytes, $((after - before)) more than before"
say "next:    make update; make image; enable $PLUGINS in a profile"
