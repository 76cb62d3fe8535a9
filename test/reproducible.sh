#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the image a second time, in another folder, as another user, with another time zone, locale and umask and with
# empty build caches, and compares the bytes of binary and archive.
#
# Inputs: what `make image` made here; root. Exit: 0 the same; 1 not.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/environment.sh"

[[ $(id -u) == 0 ]] || fail "a second user takes root" "sudo bash test/reproducible.sh"
need setpriv git sha256sum
files=(bin/linux/"$HOST_ARCH"/{kube-scheduler,kube-log-runner} release-images/"$HOST_ARCH"/kube-scheduler.tar)
use_pinned_go
other=$(mktemp -d /tmp/another-folder.XXXXXX)
trap 'chmod -R u+w "$other"; rm -rf "$other"' EXIT
# The checkout with what is not committed yet, but nothing that was made. Downloaded modules may be shared, builds not.
cd "$ROOT"
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$other"
mkdir -p "$other/home" "$other/modules/cache"
# What another run is just downloading may be gone again when its turn comes. It is not of the image, and what were missing here
# would be downloaded once more.
cp -r "$(go env GOMODCACHE)/cache/download" "$other/modules/cache/" || true
cp -r "$(go env GOROOT)" "$other/go"
chmod -R a+rX "$other"
chown -R 65534:65534 "$other"
setpriv --reuid=65534 --regid=65534 --clear-groups env -i PATH="$other/go/bin:/usr/bin:/bin" HOME="$other/home" \
  TZ=America/St_Johns LC_ALL=C.UTF-8 LANG=tr_TR.UTF-8 GOTOOLCHAIN=local \
  GOMODCACHE="$other/modules" GOPROXY="$(go env GOPROXY)" GOSUMDB="$(go env GOSUMDB)" GOAMD64=v3 \
  bash -c "umask 077; make -C '$other' image SOURCE=module GOFLAGS="
for file in "${files[@]}"; do
  here=$(sha256sum < "$OUTPUT/$file") there=$(sha256sum < "$other/_output/$file")
  [[ $here == "$there" ]] || fail "$file is not the same: ${here%% *} here, ${there%% *} in $other" "compare the two with: go version -m; diffoscope"
  say "reproducible: ${here%% *}  $file"
done
