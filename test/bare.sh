#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests the README's commands on a minimal machine: `make image`, `make run` and `make test`, by a user other than root, with
# empty Go caches, in a fresh clone, in a root file system of Debian's essential packages with Go, git, make and bash.
#
# Inputs: root; Debian's package mirror and the Go module proxy; the committed files. DEBIAN_SUITE, DEBIAN_MIRROR.
# Exit: 0 all pass; 1 not. Nothing is left behind in either case.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/packages.sh"

[[ $(id -u) == 0 ]] || fail "a root file system requires root" "sudo make test-bare"
command -v mmdebstrap > /dev/null || install_packages mmdebstrap
use_pinned_go
work=$(mktemp -d "${TMPDIR:-/var/tmp}/bare.XXXXXX")
bare=$work/root
cleanup() {
  trap - ERR
  rm -rf --one-file-system "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

say "bare: Debian's essential packages, git, make, ca-certificates"
mmdebstrap --quiet --variant=essential --include=ca-certificates,git,make "${DEBIAN_SUITE:-bookworm}" "$bare" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} ||
  fail "Debian could not be installed" "read the output above; DEBIAN_MIRROR= selects another mirror"
# Any Go that can fetch the pinned one works; here it is the pinned one.
cp -r "$(go env GOROOT)" "$bare/usr/local/go"
# This machine's network configuration: name resolution and trusted certificate authorities.
cp /etc/resolv.conf /etc/hosts "$bare/etc/"
[[ ! -f /etc/ssl/certs/ca-certificates.crt ]] || cp /etc/ssl/certs/ca-certificates.crt "$bare/etc/ssl/certs/"
mkdir -p "$bare/home/user"
git clone --quiet --no-hardlinks "$ROOT" "$bare/home/user/checkout"
git -C "$bare/home/user/checkout" log -1 --format='bare: commit %h, %s'
chown -R 1000:1000 "$bare/home/user"
# Its own PID namespace, so that all its processes end with it.
inside() {
  # shellcheck disable=SC2016 # For the shells inside.
  unshare --mount --pid --fork --kill-child bash -c 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec "$@"' "$bare" \
    chroot --userspec=1000:1000 "$bare" /usr/bin/env -i PATH=/usr/local/go/bin:/usr/bin:/bin HOME=/home/user LANG=C.UTF-8 \
    GOPROXY="$(go env GOPROXY)" bash -e -c 'cd ~/checkout && "$@"' bash "$@"
}
for command in image run test; do
  began=$SECONDS
  say "bare: make $command"
  inside make "$command"
  took=$((SECONDS - began))
  say "bare: make $command passed, $((took / 60)) min $((took % 60)) s"
done
