#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the first steps on a disk that is far too small, and then on one that is large enough. Each failure must have one
# clear message, and leave nothing that the next run would trust.
#
# Inputs: root, for a mount. Exit: 0 passed; 1 not.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/environment.sh"

[[ $(id -u) == 0 ]] || fail "a small disk requires root" "sudo bash test/full-disk.sh"
use_pinned_go
work=$(mktemp -d /tmp/full-disk.XXXXXX)
disk=$work/disk log=$work/log
mkdir "$disk"
trap 'umount "$disk"; rm -rf "$work"' EXIT
mount -t tmpfs -o size=40m tmpfs "$disk"
export OUTPUT=$disk/_output SOURCE=module
for attempt in first second; do
  if make --no-print-directory -C "$ROOT" source > "$log" 2>&1; then
    fail "make source succeeded on a full disk" "see $log"
  fi
  if ! grep -q 'no space left on device' "$log" || ! grep -q '^next: ' "$log"; then
    cat "$log" >&2
    fail "the $attempt run on a full disk prints no reason or no next command (above)" "fix scripts/source.sh"
  fi
  [[ ! -e $OUTPUT/kubernetes && ! -e $OUTPUT/.source ]] || fail "the $attempt run on a full disk left something behind" "ls -a $OUTPUT"
done
mount -o remount,size=2g "$disk"
make --no-print-directory -C "$ROOT" source > /dev/null
git -C "$OUTPUT/kubernetes" fsck --no-dangling > /dev/null 2>&1 || fail "the tree made after a full disk is damaged" "fix scripts/source.sh"
say "full disk: both failures had a clear message and left nothing behind; with enough space it works"
