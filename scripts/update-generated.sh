#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Generates deep copies of the plugins' argument types, with upstream's generator.
#
# Inputs: plugins/apis/config; arguments: --check (change nothing, fail on a difference).
# Output: zz_generated.deepcopy.go next to the types, and plugins/types.sum. Upstream's own make generates the same bytes
# in the patched tree; it need not where the sum is that of the types.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

PACKAGE=k8s.io/kubernetes/pkg/scheduler/framework/plugins
TYPES=$PACKAGE/apis/config

use_pinned_go
export GOWORK=off GOFLAGS='' GO111MODULE=on
generators=$ROOT/build/pins/code-generator
work=$(mktemp -d "$OUTPUT/.generated.XXXXXX")
trap 'rm -rf "$work"' EXIT
build_server deepcopy-gen
header=$(go -C "$generators" list -m -f '{{.Dir}}' k8s.io/code-generator)/hack/boilerplate.go.txt

# The generator finds packages through the module of the directory it runs in. What it logs about types of newer Go
# releases that it does not know concerns none of ours.
(cd "$ROOT/plugins" && "$OUTPUT/tools/deepcopy-gen" --logtostderr --input-dirs "$TYPES" --bounding-dirs "$PACKAGE" \
  --output-base "$work" --output-file-base zz_generated.deepcopy --go-header-file "$header") 2> "$work/log" || {
  grep -v 'Making unsupported type entry' "$work/log" >&2
  fail "deepcopy-gen failed" "fix the types in plugins/apis/config, then make update"
}

changed=()
while IFS= read -r -d '' made; do
  file=$ROOT/plugins/${made#"$work/$PACKAGE/"}
  cmp -s "$made" "$file" && continue
  changed+=("${file#"$ROOT"/}")
  [[ ${1:-} == --check ]] || { cp "$made" "$file.new" && mv "$file.new" "$file"; }
done < <(find "$work/$PACKAGE" -type f -print0 | sort -z)
sum=$(types_sum "$ROOT/plugins/apis/config")
if [[ $sum != "$(cat "$ROOT/plugins/types.sum" 2> /dev/null)" ]]; then
  changed+=(plugins/types.sum)
  [[ ${1:-} == --check ]] || printf '%s\n' "$sum" > "$ROOT/plugins/types.sum"
fi
if ((${#changed[@]})) && [[ ${1:-} == --check ]]; then
  fail "generated files are out of date: ${changed[*]}" "make update"
fi
say "generated: ${#changed[@]} files changed"
