#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds replacements for upstream's base images, kube-cross and go-runner, if no registry can be reached: from Debian
# packages, the pinned Go, and the kube-log-runner of the patched tree.
#
# Inputs: _output/bin/linux/ARCH/kube-log-runner, which build-binary.sh made; ARCH; DEBIAN_SUITE, DEBIAN_MIRROR; BUILDX
#   (see scripts/docker.sh). Debian's packages are fetched once: rm -r _output/base-images fetches newer ones.
# Output: Docker images localhost/kube-cross and localhost/go-runner; _output/base-images/.
# Exit: 0 made or up to date; 1 not.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/docker.sh"
source "$(dirname "${BASH_SOURCE[0]}")/stamp.sh"

IMAGES=$OUTPUT/base-images
SUITE=${DEBIAN_SUITE:-bookworm}
MIRROR=${DEBIAN_MIRROR:-}
# In addition to Debian's essential packages: the programs that upstream's build runs in the container, and the files
# that go-runner copies.
PACKAGES=ca-certificates,git,iproute2,make,rsync,tzdata

need tar
lock
use_pinned_go
need_docker
host=linux/$(go env GOHOSTARCH)
[[ $docker_platform == "$host" ]] ||
  fail "the Docker daemon is on $docker_platform, this machine is $host: its packages and its Go would not run there" "unset DOCKER_HOST to use a daemon on this machine, or run make base-images on that one"
runner=$OUTPUT/bin/linux/$ARCH/kube-log-runner
[[ -f $runner ]] || fail "kube-log-runner for linux/$ARCH, which becomes /go-runner, is not built" "make binary ARCH=$ARCH, then make base-images ARCH=$ARCH"

mkdir -p "$IMAGES"
work=$(mktemp -d "$IMAGES/.work.XXXXXX")
trap 'rm -rf "$work"' EXIT

sum() { sha256sum "$@" | cut -d' ' -f1; }
# The bytes of archives only depend on the names and contents of their files.
pack() { tar --create --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --format=gnu "$@"; }

# image NAME DIRECTORY PLATFORM INPUTS builds an image from a directory, unless Docker has it from the same inputs.
# Docker stores images atomically, so the inputs are a label of the image.
image() {
  docker buildx build --load --pull=false --network=none --progress=plain --platform "$3" --label "kube-scheduler.inputs=$4" \
    --tag "$1" "$2" > "$work/log" 2>&1 || {
    cat "$work/log" >&2
    fail "Docker could not build $1" "fix the error above, then make base-images"
  }
  say "base-images: $1"
}
image_from() { [[ $(docker image inspect --format '{{index .Config.Labels "kube-scheduler.inputs"}}' "$1" 2> /dev/null) == "$2" ]]; }

debian=$IMAGES/debian.tar
packages="suite $SUITE
mirror ${MIRROR:-default}
packages $PACKAGES
platform $host"
if up_to_date "$debian.inputs" "$packages" debian.tar; then
  say "base-images: $debian is up to date: skipped"
else
  need mmdebstrap
  say "base-images: $PACKAGES and Debian's essential packages, $SUITE, from ${MIRROR:-the default mirror of mmdebstrap}, about a minute"
  SOURCE_DATE_EPOCH=0 mmdebstrap --quiet --variant=essential --include="$PACKAGES" --architectures="${host#*/}" \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --skip=output/dev --format=tar "$SUITE" "$work/debian.tar" ${MIRROR:+"$MIRROR"} > "$work/log" 2>&1 || {
    tail -20 "$work/log" >&2
    fail "Debian $SUITE could not be installed" "check that ${MIRROR:-a mirror of Debian} is reachable (DEBIAN_MIRROR= selects another) and that debian-archive-keyring is installed, then make base-images"
  }
  mv "$work/debian.tar" "$debian"
  write_stamp "$debian.inputs" "$packages" debian.tar
fi

source=$ROOT/build/base-images/kube-cross
inputs=$(sum <<< "$(sum "$debian" "$source/Dockerfile" "${BASH_SOURCE[0]}") $GO_VERSION")
if image_from "$LOCAL_CROSS" "$inputs"; then
  say "base-images: $LOCAL_CROSS is up to date: skipped"
else
  mkdir "$work/kube-cross"
  cp "$source/Dockerfile" "$work/kube-cross/"
  ln "$debian" "$work/kube-cross/debian.tar"
  # A toolchain from the module cache is read-only; upstream's Dockerfile and its data container write to pkg.
  pack --mode=u+w --transform='s,^\.,go,' --exclude=./test --exclude=./api --exclude=./doc \
    --directory="$(go env GOROOT)" --file="$work/kube-cross/go.tar" .
  image "$LOCAL_CROSS" "$work/kube-cross" "$host" "$inputs"
fi

source=$ROOT/build/base-images/go-runner
inputs=$(sum <<< "$(sum "$debian" "$source/Dockerfile" "$source"/etc/* "$runner" "${BASH_SOURCE[0]}")")
if image_from "$LOCAL_RUNNER" "$inputs"; then
  say "base-images: $LOCAL_RUNNER is up to date: skipped"
else
  mkdir -p "$work/go-runner" "$work/root"/{root,tmp}
  cp "$source/Dockerfile" "$work/go-runner/"
  tar --extract --file="$debian" --directory="$work/root" --no-same-owner ./etc/ssl/certs/ca-certificates.crt ./usr/share/zoneinfo
  cp "$source"/etc/* "$work/root/etc/"
  cp "$runner" "$work/root/go-runner"
  chmod 700 "$work/root/root"
  chmod 1777 "$work/root/tmp"
  pack --directory="$work/root" --file="$work/go-runner/root.tar" .
  image "$LOCAL_RUNNER" "$work/go-runner" "linux/$ARCH" "$inputs"
fi
