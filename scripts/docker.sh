# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Functions of the scripts that use Docker: they check for Docker and buildx, and name the local base images. Sourced
# after environment.sh.
#
# Inputs (environment): ARCH, BUILDX ("install": make the plugin from its Go module where it is missing), and those of
#   Docker's client.

# The names of the images that base-images.sh builds. Docker never looks for localhost/… in a registry on the network.
# shellcheck disable=SC2034 # Read by the scripts that source this file.
LOCAL_CROSS=localhost/kube-cross:$GO_VERSION
# shellcheck disable=SC2034
LOCAL_RUNNER=localhost/go-runner:$VERSION-$GO_VERSION-$ARCH

# The first release line that supports old and new daemons, and that Go's checksum database lists.
BUILDX_VERSION=v0.12.1

has_image() { docker image inspect "$1" > /dev/null 2>&1; }

# need_docker ends the script if Docker cannot build, and sets docker_platform (linux/amd64).
need_docker() {
  local context
  command -v docker > /dev/null ||
    fail "docker is not installed" "install it (Debian: apt-get install docker.io), or build the image without it: make image"
  docker_platform=$(docker version --format '{{.Server.Os}}/{{.Server.Arch}}' 2>&1) ||
    fail "the Docker daemon does not answer: ${docker_platform##*$'\n'}" \
      "start it (systemctl start docker), or point DOCKER_HOST at one, or build the image without it: make image"
  docker_platform=${docker_platform##*$'\n'}
  if ! docker buildx version > /dev/null 2>&1; then
    [[ ${BUILDX:-} == install ]] ||
      fail "Docker has no buildx plugin, which upstream's build needs" \
        "install docker-buildx or docker-buildx-plugin with your system's package manager, or have it made from its Go module: run the same command again with BUILDX=install"
    install_buildx
  fi
  # The daemon's own builder sees the daemon's images; another builder of the user does not.
  context=$(docker context show 2> /dev/null) || context=default
  export BUILDX_BUILDER=$context
}

install_buildx() {
  local folder=${DOCKER_CONFIG:-$HOME/.docker}/cli-plugins work
  say "buildx: go install github.com/docker/buildx/cmd/buildx@$BUILDX_VERSION, a minute or two"
  work=$(mktemp -d "$OUTPUT/.buildx.XXXXXX")
  GOBIN=$work GOWORK=off GOFLAGS='' CGO_ENABLED=0 go install -trimpath "github.com/docker/buildx/cmd/buildx@$BUILDX_VERSION" || {
    rm -rf "$work"
    fail "buildx $BUILDX_VERSION does not build" "check that the module proxy (go env GOPROXY) is reachable, then run the same command again"
  }
  mkdir -p "$folder"
  cp "$work/buildx" "$folder/.docker-buildx.new"
  mv "$folder/.docker-buildx.new" "$folder/docker-buildx"
  rm -rf "$work"
  docker buildx version > /dev/null || fail "Docker does not accept the plugin $folder/docker-buildx" "docker buildx version"
  say "buildx: $folder/docker-buildx"
}
