#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests on real kubeadm nodes, in private namespaces of this machine: nothing uses its network, none of its
# files is changed, and everything ends with this script, even after kill -9.
#
# Usage: e2e.sh [ARGUMENT...]            runs the tests; ARGUMENT: for Go's test binary, such as -test.run NAME
#        e2e.sh --docker                 runs the test on a node whose kubelet uses Docker
#        e2e.sh --keep [NODES]           starts a cluster for manual work, until Ctrl-C; meanwhile:
#        e2e.sh --in NODE COMMAND...     runs a command in a node of that cluster: cp1, cp2 and so on
#
# On Debian and Ubuntu, missing packages are installed; services that come with them are not started. Inputs: root; the
# tree that apply-patches.sh made. Output: _output/e2e/: the nodes' images, and logs of the last run. Exit: 0 all
# passed; 1 the first package that failed; with --in that of the command.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/packages.sh"

FOLDER=$OUTPUT/e2e
PLUGINS=/usr/lib/cni
[[ $(id -u) == 0 ]] || fail "kubeadm nodes require root" "sudo bash test/e2e.sh"

# --clean CGROUP, only for this script: it outlives the script, removes what the kernel does not remove with the
# processes, and holds the lock until then.
if [[ ${1:-} == --clean ]]; then
  trap '' INT TERM HUP
  # Ends when the script with the other end of the pipe ends for any reason.
  cat > /dev/null
  rm -f "$FOLDER"/*.pid
  for ((attempt = 0; attempt < 300; attempt++)); do
    mapfile -t left < <(find /sys/fs/cgroup -type d -path "*/$2" 2> /dev/null)
    ((${#left[@]})) || break
    find "${left[@]}" -depth -type d -exec rmdir {} + 2> /dev/null || sleep 0.1
  done
  rmdir "$FOLDER"/{memory,temporary} 2> /dev/null || true
  ((${#left[@]} == 0)) || fail "processes still run in ${left[0]}" "cat ${left[0]}/cgroup.procs"
  exit
fi

if [[ ${1:-} == --in ]]; then
  [[ -e $FOLDER/hub.pid && -e $FOLDER/${2:-}.pid ]] || fail "no node ${2:-} is kept" "bash test/e2e.sh --keep"
  # shellcheck disable=SC2016
  exec nsenter --target "$(pgrep --parent "$(< "$FOLDER/hub.pid")")" --mount --pid --net --ipc --uts -- \
    nsenter --target "$(< "$FOLDER/$2.pid")" --all -- \
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM="${TERM:-dumb}" \
    KUBECONFIG=/etc/kubernetes/admin.conf bash -c 'cd && exec "$@"' bash "${@:3}"
fi

package=e2e arguments=(-test.v -test.timeout 45m -test.skip '^TestDocker$' "$@") docker=()
[[ ${1:-} != --docker ]] || arguments=(-test.v -test.timeout 45m -test.run '^TestDocker$') docker=(docker.io)
[[ ${1:-} != --keep ]] || package=e2e/kubeadmnode arguments=(-keep "${2:-1}")
program=$FOLDER/${package##*/}.test logs=$FOLDER/logs/${package##*/}

mkdir -p "$FOLDER"
exec {running}> "$FOLDER/.lock"
flock --nonblock "$running" || fail "another run is using $FOLDER" "wait for it, or set OUTPUT"
install_packages containerd runc containernetworking-plugins iptables conntrack socat ebtables iproute2 util-linux procps strace \
  "${docker[@]}"
# A network namespace does not load drivers that are kernel modules.
[[ -e /proc/sys/net/bridge ]] || modprobe br_netfilter ||
  fail "kubeadm needs the driver br_netfilter, and this kernel has none" "run it on a kernel of Debian or Ubuntu"
use_pinned_go
version=''
build_server kube-{apiserver,controller-manager,scheduler} kube{let,adm,ctl} etcd kwok
export GOWORK=off GOFLAGS='' CGO_ENABLED=0
go build -C "$ROOT/test" -trimpath -buildvcs=false -o "$OUTPUT/tools/pause" ./e2e/kubeadmnode/pause
if [[ $package == e2e ]]; then
  build_server prometheus
  # The operator's files, and a faulty image.
  make -C "$ROOT" --no-print-directory release ARCH="$HOST_ARCH"
  go build -C "$ROOT/test" -trimpath -buildvcs=false -o "$OUTPUT/tools/crash" ./e2e/crash
  build=$(build_tool kube-scheduler-build)
  version=$(recorded_version "$build") || exit
fi
# Compiled like the tools; verify.sh runs vet.
go test -C "$ROOT/test" -trimpath -vet=off -c -o "$program" "./$package"

# Ends the processes of this script; the cleaner removes the rest.
finish() {
  trap - ERR
  set +o errexit
  trap '' INT TERM HUP
  [[ -z $hub ]] || { kill -KILL "$hub"; wait "$hub"; } 2> /dev/null
  exec {alive}>&-
  wait "$cleaner" || exit 1
}
hub='' cgroup=kube-scheduler-e2e-$$
exec {alive}> >(exec setsid bash "${BASH_SOURCE[0]}" --clean "$cgroup")
cleaner=$!
trap finish EXIT
trap 'exit 130' INT TERM HUP

say "e2e: $package"
rm -rf "${logs:?}"
# Each program of this line ends with the one before it: the script, unshare, the first process of the PID namespace.
# The first process is a shell, because it must reap orphaned processes.
# shellcheck disable=SC2016
env -i E2E_GO_ON="${E2E_GO_ON:-}" PATH="$PATH" HOME="$HOME" LC_ALL=C TZ=UTC \
  KUBEADM_NODE_CHECKOUT="$ROOT" KUBEADM_NODE_OUTPUT="$OUTPUT" KUBEADM_NODE_FOLDER="$FOLDER" \
  KUBEADM_NODE_LOGS="$logs" KUBEADM_NODE_CGROUP="$cgroup" KUBEADM_NODE_VERSION="$KUBERNETES_VERSION" \
  KUBEADM_NODE_PROGRAMS="$OUTPUT/tools" KUBEADM_NODE_PLUGINS="$PLUGINS" \
  E2E_BUNDLE="$OUTPUT/release/kube-scheduler-${version/+/_}-linux-$HOST_ARCH.tar.gz" E2E_CRASH="$OUTPUT/tools/crash" \
  setpriv --pdeathsig KILL unshare --mount --propagation private --net --pid --fork --mount-proc --ipc --uts --kill-child \
  bash -c 'cd "$1"; shift; "$@"; exit $?' bash "$ROOT/test/$package" "$program" "${arguments[@]}" \
  {alive}>&- {running}>&- &
hub=$!
echo "$hub" > "$FOLDER/hub.pid"
status=0
wait "$hub" || status=$?
hub=''
((status == 0)) || fail "$package: status $status" "see the output above, and $logs"
