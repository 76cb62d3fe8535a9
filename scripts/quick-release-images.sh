#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the image with upstream's own quick-release-images, in Docker, and compares its binary with that of
# build-binary.sh.
#
# Inputs: the tree that apply-patches.sh made; a Docker daemon with buildx; the images of base-images.sh where Docker
#   has them, upstream's otherwise (KUBE_CROSS_IMAGE, KUBE_CROSS_VERSION, KUBE_GORUNNER_IMAGE name others); ARCH,
#   GOFLAGS, REGISTRY, VERSION_SUFFIX; BUILDX (see scripts/docker.sh).
# Output: _output/kubernetes/_output/release-images/ARCH/kube-scheduler.tar.
# Exit: 0 made or up to date; 1 not, or the same Go compiled a different binary.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/tree-edits.sh"
source "$(dirname "${BASH_SOURCE[0]}")/stamp.sh"
source "$(dirname "${BASH_SOURCE[0]}")/docker.sh"

binary=$OUTPUT/bin/linux/$ARCH/kube-scheduler
archive=$TREE/_output/release-images/$ARCH/kube-scheduler.tar

# Upstream's scripts need all of these, some only after minutes.
need git make rsync tar which md5sum paste
[[ -e /etc/localtime ]] ||
  fail "/etc/localtime, which upstream copies into its build image, is missing" "install tzdata, or: ln -s /usr/share/zoneinfo/UTC /etc/localtime"
lock
patches_applied ||
  fail "the patches are not applied to $VERSION" "make tree"
refuse_edits
use_pinned_go
need_docker
version=$(recorded_version "$(build_tool kube-scheduler-build)")

work=$(mktemp -d "$OUTPUT/.docker.XXXXXX")
# Upstream names its containers after the machine and the directory, and leaves them running when it is interrupted.
hash=$(printf '%s' "$HOSTNAME:$TREE:" | md5sum | head -c 10)
cleanup() {
  local containers
  rm -rf "$work"
  containers=$(docker ps --all --quiet --filter "name=^kube-(build|rsync)-$hash-" 2> /dev/null) || return 0
  # shellcheck disable=SC2086 # A list of ids.
  [[ -z $containers ]] || docker rm --force --volumes $containers > /dev/null
}
trap cleanup EXIT

write_version_file "$work/version.sh" "$version" dirty

if [[ -z ${KUBE_CROSS_IMAGE:-}${KUBE_CROSS_VERSION:-} ]] && has_image "$LOCAL_CROSS"; then
  KUBE_CROSS_IMAGE=${LOCAL_CROSS%:*} KUBE_CROSS_VERSION=${LOCAL_CROSS##*:}
fi
if [[ -z ${KUBE_GORUNNER_IMAGE:-}${KUBE_SCHEDULER_BASE_IMAGE:-} ]] && has_image "$LOCAL_RUNNER"; then
  KUBE_GORUNNER_IMAGE=$LOCAL_RUNNER
fi

# A clean environment, as in build-binary.sh, plus the variables of Docker's client and upstream's build.
environment=(PATH="$PATH" HOME="${HOME:-$OUTPUT}" TMPDIR="${TMPDIR:-/tmp}" LC_ALL=C TZ=UTC GOTOOLCHAIN=local GOENV=off
  GOFLAGS="${GOFLAGS:-}" KUBE_VERBOSE="${KUBE_VERBOSE:-1}" KUBE_GIT_VERSION_FILE="$work/version.sh"
  SOURCE_DATE_EPOCH="$(recorded "base.$VERSION.time")" KUBE_BUILD_PLATFORMS="linux/$ARCH"
  KUBE_BUILD_PULL_LATEST_IMAGES=n KUBE_BUILD_CONFORMANCE=n KUBE_DOCKER_REGISTRY="${REGISTRY:-}")
for name in "${!DOCKER_@}" "${!BUILDX_@}" "${!BUILDKIT_@}" "${!KUBE_RSYNC_@}" SSH_AUTH_SOCK XDG_RUNTIME_DIR XDG_CONFIG_HOME \
  {HTTP,HTTPS,NO}_PROXY {http,https,no}_proxy KUBE_BASE_IMAGE_REGISTRY KUBE_CROSS_IMAGE KUBE_CROSS_VERSION \
  KUBE_GORUNNER_IMAGE KUBE_SCHEDULER_BASE_IMAGE KUBE_BUILD_SETCAP_IMAGE; do
  [[ ! -v $name ]] || environment+=("$name=${!name}")
done

# The image names that upstream computes. They are pulled here, not in the middle of its build, to show progress.
# shellcheck disable=SC2016 # Expanded by the shell that reads upstream's script.
names=$(env -i "${environment[@]}" bash -c 'cd "$1" && source build/common.sh && printf "%s:%s %s\n" "$KUBE_CROSS_IMAGE" "$KUBE_CROSS_VERSION" "$KUBE_SCHEDULER_BASE_IMAGE"' - "$TREE")
read -r cross runner <<< "$names"
pulled() {
  if has_image "$1"; then
    say "quick-release-images: $3 is $1, which Docker has"
    return
  fi
  say "quick-release-images: $3 is $1, pulled from its registry"
  docker pull --platform "$2" "$1" ||
    fail "$1 cannot be pulled" "make base-images ARCH=$ARCH builds a stand-in from Debian packages; then make quick-release-images ARCH=$ARCH"
}
pulled "$cross" "$docker_platform" kube-cross
pulled "$runner" "linux/$ARCH" go-runner

stamp=${archive%/*}/.inputs
inputs="tree $(in_tree rev-parse 'HEAD^{tree}')
flags ${GOFLAGS:-}
version $version
time $(recorded "base.$VERSION.time")
registry ${REGISTRY:-}
images $(docker image inspect --format '{{.Id}}' "$cross" "$runner" | paste -sd ' ')"
if up_to_date "$stamp" "$inputs" "${archive##*/}"; then
  say "quick-release-images: $archive is up to date: skipped"
else
  say "quick-release-images: make quick-release-images for linux/$ARCH, $version"
  rm -rf "$TREE/_output/release-images"
  env -i "${environment[@]}" make --no-print-directory -C "$TREE" quick-release-images 2>&1 < /dev/null |
    { grep --line-buffered -v 'Making unsupported type entry' || true; }
  in_tree update-index -q --refresh > /dev/null || true
  changes=$(in_tree status --porcelain --untracked-files=all)
  [[ -z $changes ]] || {
    head -20 <<< "$changes" >&2
    fail "upstream's target has left changes in $TREE (listed above)" "git -C $TREE reset --hard && git -C $TREE clean -fd, and report it"
  }
  [[ -s $archive ]] || fail "upstream's target succeeded, but $archive is missing" "make quick-release-images KUBE_VERBOSE=5"
  write_stamp "$stamp" "$inputs" "${archive##*/}"
fi

# The archive itself is checked: it is loaded again, and Docker lists its contents.
image=k8s.gcr.io/kube-scheduler-$ARCH:${version/+/_}
docker load --quiet --input "$archive" > "$work/names"
container=$(docker create --network=none --platform "linux/$ARCH" "$image")
docker cp "$container:/usr/local/bin/kube-scheduler" "$work/kube-scheduler" > /dev/null
docker rm "$container" > /dev/null
docker rmi "$image" > /dev/null

say "image: $archive"
sed -n 's/^Loaded image: /image:   /p' "$work/names"
made=$(sha256sum < "$work/kube-scheduler" | cut -d' ' -f1)
if ! made_with "${binary%/*}/.kube-scheduler.inputs" "version $version" "flags ${GOFLAGS:-}"; then
  say "binary: sha256 $made; not compared, because make binary ARCH=$ARCH has not built $version with the same GOFLAGS"
elif cmp -s "$binary" "$work/kube-scheduler"; then
  say "binary: sha256 $made, byte for byte the same as $binary"
else
  in_image=$(go version "$work/kube-scheduler")
  [[ ${in_image##* } != "$GO_VERSION" ]] ||
    fail "the binary in the image (sha256 $made) is not the one in $binary, though $GO_VERSION built both" \
      "go version -m $binary shows what it was built from; report both"
  say "binary: sha256 $made; NOT the same as $binary: $cross compiles with ${in_image##* }, upstream.version requires $GO_VERSION (make base-images builds a kube-cross with that)"
fi
say "next: docker load --input $archive"
