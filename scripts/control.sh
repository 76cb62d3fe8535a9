#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds an image of stock Kubernetes in the way of this project: the patches 01xx, which change only the build, upstream's
# own vendor/, and the Go of upstream.version. With it, one swap says whether a problem comes from this project's changes.
#
# Inputs: the base that source.sh made; the patches 01xx that make-patches.sh wrote; ARCH, REGISTRY, GOFLAGS.
# Output: _output/control/, with the same directories as _output/. Exit: 0 made or up to date; 1 not.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

lock
base=$(recorded "base.$VERSION.tree") control=$OUTPUT/control
[[ -n $base ]] || fail "the source of $VERSION is missing" "make source"
rm -rf "$control/patches" "$control/.clone"
mkdir -p "$control/patches"
cp "$PATCHES_DIR"/01*.patch "$control/patches" || fail "$PATCHES_DIR has no patch 01xx" "make patches"
printf 'modules: []\n' > "$control/modules.yaml"
if [[ ! -e $control/kubernetes ]]; then
  say "control: copying the source of $VERSION"
  git -c core.symlinks=true -c core.fileMode=true clone -q --no-checkout "$TREE" "$control/.clone"
  git config -f "$TREE/.git/kube-scheduler" --get-regexp "^base\.${VERSION//./\\.}\." |
    while read -r key value; do record "$key" "$control/.clone" "$value"; done
  git -C "$control/.clone" checkout -q --detach "$base"
  mv "$control/.clone" "$control/kubernetes"
fi
export OUTPUT=$control PATCHES_DIR=$control/patches MODULES_FILE=$control/modules.yaml VERSION_SUFFIX=control MODULES='' ARCHES=$ARCH
for step in source apply-patches build-binary build-image; do
  bash "$ROOT/scripts/$step.sh"
done
say "control: $control/release-images/$ARCH/kube-scheduler.tar is stock Kubernetes $VERSION, with that release's known vulnerabilities: only to compare with"
