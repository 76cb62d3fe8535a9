#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Pushes the images of both architectures, as one list, to REGISTRY/kube-scheduler.
#
# Inputs: REGISTRY; the OCI layout that build-image.sh --oci wrote; credentials of docker login or podman login.
# Exit: 0 pushed, and the reference by digest is printed; 1 not.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

[[ -n ${REGISTRY:-} ]] || fail "REGISTRY is not given" "make push REGISTRY=registry.example.com/team"
use_pinned_go
build=$(build_tool kube-scheduler-build)
reference=$("$build" push "$OUTPUT/release-images/oci" "$REGISTRY") || exit
say "push: $reference"
