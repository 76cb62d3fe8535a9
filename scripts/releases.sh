#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes docs/releases.md: on which releases of Kubernetes 1.23 the series applies, compiles, and places pods as stock
# Kubernetes does. On two idle cores, it takes about five minutes for each release.
#
# Inputs: those of test/applies.sh; (environment) ORACLE, the releases for the comparison of placements (all): the others
# are "not run". Output: docs/releases.md, only if all steps pass. Exit: 0 written; 1 not.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

pinned || fail "UPSTREAM=$VERSION is given, but the page is about all releases" "make releases"
last=${KUBERNETES_VERSION##*.} page=$ROOT/docs/releases.md
mapfile -t releases < <(seq -f 'v1.23.%g' 0 "$last")
export ORACLE=${ORACLE:-${releases[*]}}
use_pinned_go
version=$(recorded_version "$(build_tool kube-scheduler-build)")
trap 'rm -f "$page.new" "$OUTPUT/.releases.log"' EXIT
bash "$ROOT/test/applies.sh" --all | tee "$OUTPUT/.releases.log"

# said RELEASE YES NO prints what the test says of a release: "yes" and what follows YES, or what follows NO.
said() {
  sed -n -e "s/^applies: ${1//./\\.}$2/yes/p" -e "s/^applies: ${1//./\\.} $3: //p" "$OUTPUT/.releases.log" | grep . || printf 'not run\n'
}
{
  cat << END
<!-- Made by make releases. Do not edit. -->
# Releases of Kubernetes 1.23

Whether the series applies to each release, kube-scheduler and the scheduler's packages compile there with $GO_VERSION, and
the [oracle](performance.md#the-same-placements) finds the same placements as with stock Kubernetes of that release.
Made on $(date -u +%F) with the series of \`$version\`. Only $KUBERNETES_VERSION has plugins of other projects.
Another release is built with \`make image UPSTREAM=…\`; \`make rebase-report UPSTREAM=…\` shows how each patch applies.
"Not available" means that the module proxy or the checksum database does not have the release or a module of it.

| release | applies | compiles | places pods as stock does |
|---|---|---|---|
END
  for release in "${releases[@]}"; do
    if grep -q "^applies: ${release//./\\.} is not available" "$OUTPUT/.releases.log"; then
      printf '| %s | not available from the module proxy | – | – |\n' "$release"
      continue
    fi
    printf '| %s | %s | %s | %s |\n' "$release" "$(said "$release" '\(, without.*\)\{0,1\}$' '-')" \
      "$(said "$release" ' compiles.*' 'is not compiled')" "$(said "$release" ' places as stock does' 'is not compared')"
  done
} > "$page.new"
mv "$page.new" "$page"
say "releases: $page written"
