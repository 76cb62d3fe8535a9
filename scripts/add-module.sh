#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Adds plugins of another project's Go module to modules.yaml, and builds kube-scheduler with them: finds the packages,
# prints what comes in and how much larger the binary is. What does not compile does not come into modules.yaml.
#
# Inputs (environment): MODULE, path@version; PLUGINS, names separated by commas. A module that is there already gets
# these plugins in the place of those that it has.
# Exit: 0 added, and built; 1 refused, and modules.yaml is as it was.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

[[ -n ${MODULE:-} && -n ${PLUGINS:-} ]] ||
  fail "MODULE or PLUGINS is not given" "make add-module MODULE=sigs.k8s.io/scheduler-plugins@v0.23.10 PLUGINS=Coscheduling,CapacityScheduling"
[[ $MODULE == *@?* ]] ||
  fail "MODULE=$MODULE has no version" "go list -m -versions ${MODULE%@}; make add-module MODULE=${MODULE%@}@v1.2.3 PLUGINS=$PLUGINS"
[[ -z ${MODULES:-} ]] || fail "MODULES=$MODULES leaves plugins of other projects out" "run the same command without MODULES"
use_pinned_go
build=$(build_tool kube-scheduler-build)
make --no-print-directory -C "$ROOT" tree
# Until it is known to build, the entry is in a copy: a run that ends at any moment leaves modules.yaml as it was.
with=$OUTPUT/modules-with.yaml
trap 'rm -f "$with"' EXIT
cp "$MODULES_FILE" "$with"
unchanged=$(sha256sum < "$MODULES_FILE")
# The tree with this project's plugins knows which names are taken; what it carries for the module already does not count.
"$build" modules add "$with" "$TREE" "$(recorded "base.$VERSION.tree")" "$MODULE" "$PLUGINS" || exit 1
binary=$OUTPUT/bin/linux/$ARCH/kube-scheduler
make --no-print-directory -C "$ROOT" binary
before=$(stat -c %s "$binary")
if ! MODULES_FILE=$with make --no-print-directory -C "$ROOT" binary; then
  trap - EXIT
  fail "kube-scheduler cannot be built with $MODULE; $MODULES_FILE is as it was" \
    "read what is said above, and take another version of $MODULE; or fix it by a patch: cp $with $MODULES_FILE; docs/modules.md, 'Fix'"
fi
after=$(stat -c %s "$binary")
[[ $(sha256sum < "$MODULES_FILE") == "$unchanged" ]] ||
  fail "$MODULES_FILE was edited meanwhile, and is left as it is" "run the same command again"
cp "$with" "$MODULES_FILE.new"
mv "$MODULES_FILE.new" "$MODULES_FILE"
say "modules: $MODULE is in $MODULES_FILE; kube-scheduler has $after bytes, $((after - before)) more than before"
say "next:    make update; make image; enable $PLUGINS in a profile"
