#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Generates deep copies, conversions and defaults of the plugins' argument types, with upstream's generators.
#
# Inputs: plugins/apis/config; arguments: --check (change nothing, fail on a difference).
# Output: zz_generated.*.go next to the types, and plugins/types.sum. Upstream's own make generates the same bytes in the
# patched tree; it need not where the sum is that of the types.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

PACKAGE=k8s.io/kubernetes/pkg/scheduler/framework/plugins
TYPES=$PACKAGE/apis/config

use_pinned_go
export GOWORK=off GOFLAGS='' GO111MODULE=on
generators=$ROOT/build/pins/code-generator
work=$(mktemp -d "$OUTPUT/.generated.XXXXXX")
trap 'rm -rf "$work"' EXIT
build_server deepcopy-gen conversion-gen defaulter-gen
header=$(go -C "$generators" list -m -f '{{.Dir}}' k8s.io/code-generator)/hack/boilerplate.go.txt

# generate NAME SUFFIX PACKAGES ARGUMENT…: the generators find packages through the module of the directory they run in.
# What they log about types of newer Go releases that they do not know concerns none of ours.
generate() {
  local name=$1 suffix=$2 packages=$3
  shift 3
  (cd "$ROOT/plugins" && "$OUTPUT/tools/$name-gen" --logtostderr --input-dirs "$packages" --output-base "$work" \
    --output-file-base "zz_generated.$suffix" --go-header-file "$header" "$@") 2> "$work/log" || {
    grep -v 'Making unsupported type entry' "$work/log" >&2
    fail "$name-gen failed" "fix the types in plugins/apis/config, then make update"
  }
}
generate deepcopy deepcopy "$TYPES,$TYPES/v1beta3" --bounding-dirs "$PACKAGE"
generate conversion conversion "$TYPES/v1beta3"
generate defaulter defaults "$TYPES/v1beta3"

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
