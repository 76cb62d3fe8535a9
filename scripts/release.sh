#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the release bundle: the image archives, kube-scheduler-swap, kubectl-scheduling, kube-scheduler-simulate,
# manifests, the CustomResourceDefinitions that plugins need, patches, all pages, SBOMs, the licences of all linked
# modules, and checksums, signed if there is a key.
#
# Inputs: the image archives of build-image.sh and extender-image.sh; kube-scheduler-simulate of build-binary.sh; manifests/, the patches, docs/, modules.yaml; ARCHES
#   ("amd64", or "amd64 arm64" for a bundle of each), VERSION_SUFFIX, MODULES; SIGN_KEY (an
#   SSH key for ssh-keygen).
# Output: _output/release/kube-scheduler-<version>-linux-<arch>.tar.gz, the SBOM next to it (.spdx.json, .cdx.json), the
#   provenance (.intoto.json), SHA256SUMS over all bundles of the version, with SIGN_KEY SHA256SUMS.sig; both programs in _output/bin/linux/<arch>/. Exit: 0 made or up to date; 1 not.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/stamp.sh"

read -ra arches <<< "${ARCHES:-$HOST_ARCH}"
RELEASE=$OUTPUT/release

lock
use_pinned_go
build=$(build_tool kube-scheduler-build)
version=$(recorded_version "$build") || exit
mapfile -t contents < <(contents "$version")
mkdir -p "$RELEASE"
[[ -z ${SIGN_KEY:-} || -r $SIGN_KEY ]] || fail "SIGN_KEY=$SIGN_KEY cannot be read" "make release SIGN_KEY=… with the file of an SSH key, or without SIGN_KEY"
# The commit says what was built only if no file differs from it.
commit=$(git -C "$ROOT" rev-parse --verify --quiet HEAD || true)
[[ -z $(git -C "$ROOT" status --porcelain 2>&1) ]] || commit=
modules_patch=$PATCHES_DIR/$MODULES_PATCH
[[ -f $modules_patch ]] || modules_patch=

tools=(kube-scheduler-swap kubectl-scheduling)

for arch in "${arches[@]}"; do
  for name in kube-scheduler kube-log-runner kube-scheduler-simulate; do
    made_with "$OUTPUT/bin/linux/$arch/.$name.inputs" "version $version" ||
      fail "$name $version for linux/$arch is not built" "make release ARCH=$arch"
  done
  image=$OUTPUT/release-images/$arch/kube-scheduler.tar
  [[ -f $image ]] || fail "the image of linux/$arch is not built" "make release ARCH=$arch"
  extender=$OUTPUT/release-images/$arch/scheduler-extender.tar
  [[ -f $extender ]] || fail "the image of scheduler-extender for linux/$arch is not built" "make release ARCH=$arch"
  for name in "${tools[@]}"; do
    compile_tool . "$name" "$arch" "$version"
  done
  name=kube-scheduler-${version/+/_}-linux-$arch
  outputs=("$name.tar.gz" "$name.spdx.json" "$name.cdx.json" "$name.intoto.json")
  inputs="version $version
commit $commit
signed $([[ -z ${SIGN_KEY:-} ]] || sha256sum < "$SIGN_KEY")
time $(recorded "base.$VERSION.time")
$(sha256sum "$build" "$image" "$extender" "${tools[@]/#/$OUTPUT/bin/linux/$arch/}" "$OUTPUT/bin/linux/$arch/kube-scheduler-simulate" \
  "$TREE/vendor/modules.txt" "$TREE/go.sum" "$UPSTREAM_VERSION_FILE" "$MODULES_FILE")
$(cd "$ROOT" && { find manifests docs README.md README.zh-CN.md LICENSE patches/README.md "$PATCHES_DIR" -type f -print0 2> /dev/null || true; } | sort -z | xargs -0 sha256sum)"
  stamp=$RELEASE/.inputs-$arch
  if up_to_date "$stamp" "$inputs" "${outputs[@]}" && [[ -z ${SIGN_KEY:-} || -f $RELEASE/SHA256SUMS.sig ]] &&
    [[ $(grep -sF -- "-linux-$arch." "$RELEASE/SHA256SUMS") == "$(stamped_sums "$stamp")" ]]; then
    say "release: $RELEASE/$name.tar.gz is up to date: skipped"
    continue
  fi
  "$build" release "${contents[@]}" --output "$RELEASE" --architecture "$arch" \
    --image "$image" --extender-image "$extender" --swap "$OUTPUT/bin/linux/$arch/kube-scheduler-swap" \
    --kubectl "$OUTPUT/bin/linux/$arch/kubectl-scheduling" --simulate "$OUTPUT/bin/linux/$arch/kube-scheduler-simulate" --go-root "$(go env GOROOT)" \
    --project "$ROOT" --upstream-version "$UPSTREAM_VERSION_FILE" --modules-patch "$modules_patch" \
    --project-commit "$commit" --sign-key "${SIGN_KEY:-}" || exit
  write_stamp "$stamp" "$inputs" "${outputs[@]}"
done
