#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the image of a release bundle again, from the upstream.version, the modules.yaml and the patches in the bundle,
# and compares it with the image in the bundle.
#
# Inputs: BUNDLE (the .tar.gz of make release), this checkout's scripts and build/; SOURCE. Nothing stays in _output.
# Exit: 0 the same bytes; 1 not, or the bundle is damaged.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

again="transfer the bundle again, then make rebuild-check BUNDLE=…"
[[ -n ${BUNDLE:-} ]] || fail "no bundle is given" "make rebuild-check BUNDLE=_output/release/kube-scheduler-….tar.gz"
[[ -f $BUNDLE ]] || fail "$BUNDLE does not exist" "make rebuild-check BUNDLE=… with the .tar.gz of make release"
need tar gzip sha256sum grep
work=$(mktemp -d "$OUTPUT/.rebuild.XXXXXX")
trap 'trap - ERR; chmod -R u+w "$work" && rm -rf --one-file-system "$work"' EXIT
trap 'exit 130' INT TERM HUP

tar --extract --gzip --no-same-owner --file "$BUNDLE" --directory "$work" 2> "$work/.log" ||
  fail "$BUNDLE is damaged or not a bundle: $(tail -n 1 "$work/.log")" "$again"
top=$(cd "$work" && printf '%s' *)
[[ $top =~ ^kube-scheduler-(v1\.23\.[0-9]+)_([A-Za-z0-9]+)\.([0-9a-f]{12})-linux-(amd64|arm64)$ ]] ||
  fail "$BUNDLE is not a bundle of this project: it contains $top" "make rebuild-check BUNDLE=… with the .tar.gz of make release"
version=${BASH_REMATCH[1]}+${BASH_REMATCH[2]}.${BASH_REMATCH[3]} suffix=${BASH_REMATCH[2]} arch=${BASH_REMATCH[4]}
bundle=$work/$top
for file in upstream.version modules.yaml patches kube-scheduler.tar SHA256SUMS; do
  [[ -e $bundle/$file ]] || fail "$BUNDLE has no $file" "$again"
done
(cd "$bundle" && sha256sum --check --quiet --strict SHA256SUMS) > "$work/.log" 2>&1 ||
  fail "$BUNDLE is damaged: $(head -n 1 "$work/.log")" "$again"
# Scripts read this file as shell.
! grep -vqE '^(#.*|KUBERNETES_(VERSION|COMMIT|SUM)=[A-Za-z0-9.:+/=]+|GO_VERSION=go[a-z0-9.]+)?$' "$bundle/upstream.version" ||
  fail "upstream.version in $BUNDLE has a line that is not a pin" "do not use the bundle; ask who made it"

# step SCRIPT runs a step of the build with the bundle's inputs.
step() {
  env OUTPUT="$work/output" UPSTREAM_VERSION_FILE="$bundle/upstream.version" MODULES_FILE="$bundle/modules.yaml" \
    PATCHES_DIR="$bundle/patches" VERSION_SUFFIX="$suffix" ARCH="$arch" ARCHES="$arch" UPSTREAM='' MODULES='' GOFLAGS='' REGISTRY='' \
    bash "$ROOT/scripts/$1" || exit 1
}

# The version has a hash of the inputs: it is compared before the tree is made.
(
  # shellcheck source=../upstream.version
  source "$bundle/upstream.version"
  use_pinned_go
  build=$(build_tool kube-scheduler-build) || exit
  inputs=$(MODULES='' "$build" version --kubernetes "$KUBERNETES_VERSION" --suffix "$suffix" --sum "$KUBERNETES_SUM" --go "$GO_VERSION" \
    "$bundle/patches" "$bundle/modules.yaml") || exit
  [[ $inputs == "$version" ]] ||
    fail "the bundle is $version, but its patches, modules.yaml and upstream.version make $inputs: they are not what it was built from" \
      "do not use the bundle; ask who made it"
) || exit 1
for script in source apply-patches build-binary build-image; do step "$script.sh"; done
"$OUTPUT/tools/kube-scheduler-build" compare "$version" "$arch" "$bundle/kube-scheduler.tar" "$work/output/release-images/$arch/kube-scheduler.tar" || exit 1
