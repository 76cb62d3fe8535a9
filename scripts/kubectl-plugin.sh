#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds kubectl-scheduling for the machines of its users, and the manifest with which krew installs it.
#
# Inputs: build/; PLATFORMS ("darwin/arm64 linux/amd64"), DOWNLOADS (the address from which users get the archives),
#   VERSION_SUFFIX.
# Output: _output/kubectl-plugin/kubectl-scheduling-<os>-<arch>.tar.gz, and scheduling.yaml. Exit: 0 made; 1 not.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

read -ra platforms <<< "${PLATFORMS:-darwin/amd64 darwin/arm64 linux/amd64 linux/arm64 windows/amd64}"
[[ ${DOWNLOADS:-} == https://* ]] ||
  fail "DOWNLOADS is not the https:// address from which users get the archives" "make kubectl-plugin DOWNLOADS=https://example.org/v1"

lock
use_pinned_go
build=$(build_tool kube-scheduler-build)
version=$(recorded_version "$build") || exit
result=$OUTPUT/kubectl-plugin
rm -rf "$result.new"
mkdir -p "$result.new"

cat > "$result.new/scheduling.yaml" << END
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: scheduling
spec:
  version: $version
  shortDescription: Show why the scheduler placed a pod on its node
  description: |
    Shows why kube-scheduler placed a pod on its node, or why the pod is pending, if the cluster runs
    kube-scheduler $version.
  platforms:
END
for platform in "${platforms[@]}"; do
  os=${platform%/*} arch=${platform#*/} file=kubectl-scheduling
  [[ $os != windows ]] || file+=.exe
  archive=kubectl-scheduling-$os-$arch.tar.gz
  compile_tool . kubectl-scheduling "$arch" "$version" "$os"
  tar --create --sort=name --owner=0 --group=0 --numeric-owner --mode=go=u-w --mtime="@$(recorded "base.$VERSION.time")" \
    --transform "s|^kubectl-scheduling\$|$file|" -C "$OUTPUT/bin/$os/$arch" kubectl-scheduling |
    gzip --no-name > "$result.new/$archive"
  cat >> "$result.new/scheduling.yaml" << END
  - selector:
      matchLabels: {os: $os, arch: $arch}
    uri: ${DOWNLOADS%/}/$archive
    sha256: $(sha256sum "$result.new/$archive" | cut -d ' ' -f 1)
    bin: $file
END
done
rm -rf "$result"
mv "$result.new" "$result"
say "kubectl: $result: put its archives to $DOWNLOADS, then kubectl krew install --manifest $result/scheduling.yaml"
