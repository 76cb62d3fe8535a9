#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles scheduler-extender, and assembles its image as build-image.sh does that of kube-scheduler.
#
# Inputs: build/extender/, plugins/; kube-log-runner of build-binary.sh; ARCHES ("amd64", or "amd64 arm64"), REGISTRY (one
#   more name in the archive), VERSION_SUFFIX.
# Output: _output/release-images/<arch>/scheduler-extender.tar, and the binary in _output/bin/linux/<arch>/.
# Exit: 0 made; 1 not.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/stamp.sh"

read -ra arches <<< "${ARCHES:-$HOST_ARCH}"

lock
use_pinned_go
build=$(build_tool kube-scheduler-build)
version=$(recorded_version "$build") || exit

for arch in "${arches[@]}"; do
  binaries=$OUTPUT/bin/linux/$arch
  made_with "$binaries/.kube-log-runner.inputs" "version $version" ||
    fail "kube-log-runner $version for linux/$arch is not built" "make extender-image ARCH=$arch"
  compile_tool extender scheduler-extender "$arch" "$version"
done
mapfile -t contents < <(contents "$version")
"$build" image "${contents[@]}" --program scheduler-extender --binaries "$OUTPUT/bin/linux" --output "$OUTPUT/release-images" \
  --zoneinfo "$(go env GOROOT)/lib/time/zoneinfo.zip" --registry "${REGISTRY:-}" --architectures "$(IFS=,; printf '%s' "${arches[*]}")"
