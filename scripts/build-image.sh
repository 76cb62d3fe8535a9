#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Assembles the control-plane image from the binaries, without a container engine.
#
# Inputs: the binaries of build-binary.sh; for its SBOM the tree, the patches, modules.yaml; ARCHES ("amd64", or "amd64
#   arm64" for a list over both), REGISTRY (one more name in the archive), VERSION_SUFFIX; arguments: --oci (write an OCI layout over all of ARCHES too).
# Output: _output/release-images/<arch>/kube-scheduler.tar, _output/release-images/oci/.
# Exit: 0 made or up to date; 1 not.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/stamp.sh"

read -ra arches <<< "${ARCHES:-$HOST_ARCH}"
IMAGES=$OUTPUT/release-images
oci=()
[[ ${1:-} != --oci ]] || oci=(--oci)

lock
use_pinned_go
build=$(build_tool kube-scheduler-build)
version=$(recorded_version "$build") || exit
mapfile -t contents < <(contents "$version")
read_series "$build"

inputs="tool $(sha256sum < "$build")
zoneinfo $(sha256sum < "$(go env GOROOT)/lib/time/zoneinfo.zip")
registry ${REGISTRY:-}
contents ${contents[*]}
$(sha256sum "$TREE/vendor/modules.txt" "$TREE/go.sum" "$MODULES_FILE" "${patches[@]}")
options ${arches[*]} ${oci[*]}"
outputs=()
for arch in "${arches[@]}"; do
  for name in kube-scheduler kube-log-runner; do
    stamp=$OUTPUT/bin/linux/$arch/.$name.inputs
    made_with "$stamp" "version $version" || fail "$name $version for linux/$arch is not built" "make binary ARCH=$arch"
    inputs+=$'\n'$(< "$stamp")
  done
  outputs+=("$arch/kube-scheduler.tar")
done
[[ -z ${oci[*]} ]] || outputs+=(oci)

stamp=$IMAGES/.inputs-$(IFS=-; printf '%s' "${arches[*]}" "${oci[*]}")
if up_to_date "$stamp" "$inputs" "${outputs[@]}"; then
  say "image: $IMAGES/${outputs[0]} is up to date: skipped"
  exit 0
fi
mkdir -p "$IMAGES"
"$build" image "${contents[@]}" --binaries "$OUTPUT/bin/linux" --output "$IMAGES" \
  --zoneinfo "$(go env GOROOT)/lib/time/zoneinfo.zip" --registry "${REGISTRY:-}" \
  --architectures "$(IFS=,; printf '%s' "${arches[*]}")" "${oci[@]}" || exit
write_stamp "$stamp" "$inputs" "${outputs[@]}"
