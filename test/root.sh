#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tests that need root: a second user, a full disk, a container engine.
#
# Inputs: what `make image` made. Output: none; everything that is started or mounted is ended and removed.
# Exit: 0 all passed; 1 the first that failed.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/at-once.sh"

[[ $(id -u) == 0 ]] || fail "these tests need root" "sudo bash test/root.sh"
say "== a full disk"
bash "$ROOT/test/full-disk.sh"
say "== the series on every release that can be had"
bash "$ROOT/test/applies.sh"
# Each compiles everything for itself, and before and after that leaves a processor idle: they download, pack, generate.
say "== the image in a container engine, and upstream's own way to it; then, made meanwhile, the same bytes in another folder, by another user"
at_once bash "$ROOT/test/quick-release-images.sh" -- bash "$ROOT/test/reproducible.sh"
