#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests upstream's quick-release-images on a machine without a Docker daemon and a registry: the base images are built
# here, the image contains the binary of `make binary`, and Docker and containerd load the archives of both builds.
# Upstream's build runs in another directory, as another user, with another umask, time zone and locale, and with empty
# build caches, and must produce the same bytes.
#
# Inputs: root; Debian's package mirror and the Go module proxy. The test starts its own daemons, in a temporary
# directory.
# Exit: 0 passed; 1 failed. No process keeps running in either case, nor after an interruption.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
# Each background process is its own process group, so that it can be ended as a whole.
set -o monitor

# The daemons do not use the machine's network. Upstream's build only needs a bridge to reach rsync in a container. The
# addresses are from the range reserved for tests (RFC 2544).
BRIDGE=ksched$$
ADDRESS=198.18.0.1/24
architecture=$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/')

[[ $(id -u) == 0 ]] || fail "this test starts a Docker daemon, which requires root" "sudo bash test/quick-release-images.sh"
packages=()
for pair in dockerd:docker.io docker:docker.io containerd:containerd ctr:containerd mmdebstrap:mmdebstrap rsync:rsync ip:iproute2; do
  command -v "${pair%:*}" > /dev/null || packages+=("${pair#*:}")
done
install_packages "${packages[@]}"

# In /var/tmp: its path is short enough for sockets, and it is on a disk.
work=$(mktemp -d "${TMPDIR:-/var/tmp}/ksched.XXXXXX")
job='' dockerd='' containerd=''
stop() {
  [[ -n $1 ]] || return 0
  kill -- "-$1" 2> /dev/null || true
  wait "$1" 2> /dev/null || true
}
cleanup() {
  local status=$? mount
  trap '' INT TERM
  trap - ERR
  set +o errexit
  stop "$job"
  stop "$dockerd"
  stop "$containerd"
  ((status == 0 || status > 128)) || tail -n 5 "$work"/*.log >&2 2> /dev/null
  while read -r mount; do umount --lazy "$mount"; done < <(awk -v work="$work/" 'index($2, work) == 1 { print $2 }' /proc/mounts | sort -r)
  ip link delete "$BRIDGE" 2> /dev/null
  rm -rf "$work"
  exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# run COMMAND… runs a command so that this shell can still handle signals.
run() {
  local status=0
  "$@" &
  job=$!
  wait "$job" || status=$?
  job=''
  return "$status"
}

# answers PID LOG COMMAND… waits until the command succeeds, while the process is alive.
answers() {
  local pid=$1 log=$2 tries=600
  shift 2
  until "$@" > /dev/null 2>&1; do
    if ! kill -0 "$pid" 2> /dev/null || ((tries-- == 0)); then
      tail -20 "$log" >&2
      fail "$1 gets no answer from the daemon of ${log##*/}" "read the log above"
    fi
    sleep 0.1
  done
}

# refuses TEXT COMMAND… checks that the command fails, and that its output contains TEXT.
refuses() {
  local text=$1
  shift
  if run "$@" > "$work/refusal" 2>&1; then
    cat "$work/refusal" >&2
    fail "$* did not fail" "read its output above"
  fi
  grep -qF -- "$text" "$work/refusal" || {
    cat "$work/refusal" >&2
    fail "$* does not say: $text" "read its output above"
  }
  say "test: passed: refuses with \"$text\""
}
passed() { say "test: passed: $*"; }
target() { run make --no-print-directory -C "$ROOT" "ARCH=$architecture" "$@"; }

started=$SECONDS
lap() {
  say "test: $1 took $((SECONDS - started)) s"
  started=$SECONDS
}

ip link add name "$BRIDGE" type bridge
ip address add "$ADDRESS" dev "$BRIDGE"
ip link set "$BRIDGE" up

export CONTAINERD_ADDRESS=$work/containerd.sock DOCKER_HOST=unix://$work/docker.sock DOCKER_CONFIG=$work/config
unset DOCKER_CONTEXT DOCKER_TLS DOCKER_TLS_VERIFY DOCKER_CERT_PATH DOCKER_OPTS BUILDX_BUILDER \
  KUBE_BASE_IMAGE_REGISTRY KUBE_CROSS_IMAGE KUBE_CROSS_VERSION KUBE_GORUNNER_IMAGE KUBE_SCHEDULER_BASE_IMAGE
mkdir "$DOCKER_CONFIG"
cat > "$work/containerd.toml" << EOF
version = 2
root = "$work/containerd"
state = "$work/containerd-state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = "$CONTAINERD_ADDRESS"
[plugins."io.containerd.internal.v1.opt"]
  path = "$work/opt"
EOF
echo '{}' > "$work/daemon.json"

refuses "the Docker daemon does not answer" make --no-print-directory -C "$ROOT" base-images

containerd --config "$work/containerd.toml" > "$work/containerd.log" 2>&1 &
containerd=$!
answers "$containerd" "$work/containerd.log" ctr version
# Nothing affects the machine: no firewall rules, no forwarding. Without CAP_SYS_RESOURCE no process can be protected
# from the kernel's out-of-memory killer, so none requests it.
dockerd --config-file "$work/daemon.json" --host "$DOCKER_HOST" --data-root "$work/docker" --exec-root "$work/exec" \
  --pidfile "$work/dockerd.pid" --containerd "$CONTAINERD_ADDRESS" --bridge "$BRIDGE" --iptables=false --ip6tables=false \
  --ip-forward=false --oom-score-adjust=0 --shutdown-timeout=5 > "$work/dockerd.log" 2>&1 &
dockerd=$!
answers "$dockerd" "$work/dockerd.log" docker version
say "test: Docker $(docker version --format '{{.Server.Version}}'), $(docker info --format '{{.Driver}}')"

if ! docker buildx version > /dev/null 2>&1; then
  refuses "BUILDX=install" make --no-print-directory -C "$ROOT" base-images
fi
started=$SECONDS
target image
lap "make image"
target base-images BUILDX=install
lap "make base-images"
target base-images > "$work/again"
[[ $(grep -c '^base-images: .*: skipped$' "$work/again") == 3 ]] || {
  cat "$work/again" >&2
  fail "make base-images did its work twice" "read its output above"
}
passed "make base-images skips what is up to date"
# A registry that refuses every connection, so that the result is the same on every machine.
refuses "make base-images" make --no-print-directory -C "$ROOT" quick-release-images KUBE_CROSS_IMAGE=127.0.0.1:1/kube-cross

# Another user's checkout, with uncommitted files, the patched tree, and the binary for the comparison. Downloaded
# modules are shared, build results are not.
other=$work/other
mkdir -p "$other"/{home,modules,_output/bin/linux}
(cd "$ROOT" && git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$other")
tar --create --directory="$OUTPUT" --exclude=kubernetes/_output kubernetes | tar --extract --directory="$other/_output"
cp -r "$OUTPUT/bin/linux/$architecture" "$other/_output/bin/linux/"
use_pinned_go
cp -r "$(go env GOROOT)" "$other/go"
cp -r "$DOCKER_CONFIG" "$other/home/.docker"
chown -R 65534:65534 "$other"
mount --bind --options ro "$(go env GOMODCACHE)" "$other/modules"
chmod 711 "$work"
chmod 666 "$work/docker.sock"
as_other() {
  # shellcheck disable=SC2016 # For the shell of the other user.
  setpriv --reuid=65534 --regid=65534 --clear-groups env -i PATH="$other/go/bin:$PATH" HOME="$other/home" USER=other \
    TZ=America/St_Johns LC_ALL=C.UTF-8 LANG=tr_TR.UTF-8 GOTOOLCHAIN=local GOAMD64=v3 GOMODCACHE="$other/modules" \
    GOPROXY=off DOCKER_HOST="$DOCKER_HOST" bash -c 'umask 077; cd "$0" && "$@"' "$other" "$@" 2>&1 | tee "$work/made"
}
started=$SECONDS
run as_other make --no-print-directory "ARCH=$architecture" quick-release-images
lap "make quick-release-images"
grep -q '^binary: .* byte for byte the same as ' "$work/made" || fail "the two images contain different binaries" "read the output above"
passed "the binary of quick-release-images is the binary of make binary"
export GIT_CONFIG_COUNT=3 GIT_CONFIG_KEY_2=safe.directory GIT_CONFIG_VALUE_2="$other/_output/kubernetes"
[[ -z $(git -C "$other/_output/kubernetes" status --porcelain --untracked-files=all) ]] || fail "the tree has changed" "make quick-release-images; git -C $TREE status"
passed "the tree is unchanged"

# shellcheck source=/dev/null
expected="Kubernetes $(source "$OUTPUT/version.sh" && printf '%s' "$KUBE_GIT_VERSION")"
for archive in "$OUTPUT" "$other/_output/kubernetes/_output"; do
  archive=$archive/release-images/$architecture/kube-scheduler.tar
  docker load --input "$archive" > "$work/names"
  mapfile -t names < <(sed -n 's/^Loaded image: //p' "$work/names")
  ((${#names[@]})) || fail "docker load takes no image from $archive" "docker load --input $archive"
  for name in "${names[@]}"; do
    # /go-runner logs the started command to its error output.
    printed=$(docker run --rm --network=none "$name" kube-scheduler --version 2> "$work/run.log")
    [[ $printed == "$expected" ]] || fail "$name prints \"$printed\", not \"$expected\"" "docker run --rm $name kube-scheduler --version"
    passed "docker run $name prints \"$printed\""
  done
  container=$(docker create --network=none "${names[0]}")
  docker cp "$container:/usr/local/bin/kube-scheduler" - | tar --extract --to-stdout > "$work/kube-scheduler"
  docker rm "$container" > /dev/null
  cmp "$OUTPUT/bin/linux/$architecture/kube-scheduler" "$work/kube-scheduler" || fail "$archive holds another binary than make binary made" "make image"
  passed "$archive holds the binary with sha256 $(sha256sum < "$work/kube-scheduler" | cut -d' ' -f1)"
  # The archives have some image names in common.
  docker rmi --force "${names[@]}" > /dev/null
done

archive=$OUTPUT/release-images/$architecture/kube-scheduler.tar
ctr --namespace k8s.io images import "$archive" > /dev/null
name=$(ctr --namespace k8s.io images list --quiet | grep -m1 '^registry.k8s.io/kube-scheduler:')
printed=$(ctr --namespace k8s.io run --rm "$name" "$BRIDGE" kube-scheduler --version 2> "$work/run.log")
[[ $printed == "$expected" ]] || fail "$name prints \"$printed\" under containerd, not \"$expected\"" "ctr --namespace k8s.io images import $archive"
passed "ctr images import, and ctr run $name prints \"$printed\""
say "test: upstream's quick-release-images works"
