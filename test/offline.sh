#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests make fetch-all: with its archive, a fresh clone in a network namespace with only loopback builds the same bytes,
# places pods, and passes make test.
#
# Inputs: root; the image of this checkout (make image); the committed files. Exit: 0 all passed; 1 not.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/packages.sh"

[[ $(id -u) == 0 ]] || fail "a network namespace requires root" "sudo make test TESTS=offline"
command -v ip > /dev/null || install_packages iproute2
# The user's Go: it fetches the pinned one from the archive if it is older.
go=$(dirname "$(command -v go)")
use_pinned_go
image=release-images/$ARCH/kube-scheduler.tar
[[ -f $OUTPUT/$image ]] || fail "$OUTPUT/$image does not exist" "make image, then make test TESTS=offline"
work=$(mktemp -d "${TMPDIR:-/var/tmp}/offline.XXXXXX")
cleanup() {
  trap - ERR
  chmod -R u+w "$work"
  rm -rf --one-file-system "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

git clone --quiet --no-hardlinks "$ROOT" "$work/checkout"
env --unset=OUTPUT make --no-print-directory -C "$work/checkout" fetch-all
mkdir "$work/home"
tar -C "$work" -xf "$work/checkout/_output/downloads.tar"
rm -rf "$work/checkout/_output"
for command in image 'run PODS=3' test; do
  began=$SECONDS
  say "offline: make $command"
  # shellcheck disable=SC2086,SC2016 # The words of a command; for the shell inside.
  unshare --net bash -c 'ip link set lo up && exec "$@"' bash \
    env -i PATH="$go:/usr/sbin:/usr/bin:/sbin:/bin" HOME="$work/home" LANG=C.UTF-8 GOPATH="$work" GOMODCACHE="$work/pkg/mod" \
    GOPROXY="file://$work/pkg/mod/cache/download" \
    make --no-print-directory -C "$work/checkout" $command
  say "offline: make $command passed, $(((SECONDS - began) / 60)) min $(((SECONDS - began) % 60)) s"
done
cmp "$OUTPUT/$image" "$work/checkout/_output/$image" ||
  fail "the image that was built without a network has other bytes" "compare what the two are made from: git status, make image"
say "offline: the image has the same bytes"
