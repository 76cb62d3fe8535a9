#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Downloads everything that make image, make run and make test download, and packs it into one archive, for machines
# without a network.
#
# Output: _output/downloads.tar, a GOPATH with Kubernetes' source, Go itself, all modules, and the part of the checksum
# database that vouches for them.
# Exit: 0 the archive is written; 1 something could not be downloaded, and there is no archive.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/stock-and-fork.sh"

lock
use_pinned_go
archive=$OUTPUT/downloads.tar
stage=$OUTPUT/.downloads
# Go makes the directories of its cache read-only.
clean_up() {
  [[ ! -d $stage ]] || chmod -R u+w "$stage"
  rm -rf "$stage" "$archive.new"
}
clean_up
rm -f "$archive"
mkdir -p "$stage"
trap clean_up EXIT
# What the user's cache has is copied, not downloaded again.
[[ $GOPROXY == off ]] || GOPROXY=file://$GOMODCACHE/cache/download,$GOPROXY
export GOPROXY GOPATH=$stage GOMODCACHE=$stage/pkg/mod GOWORK=off GOFLAGS=''

say "downloads: $GO_VERSION"
# As a module, as an older Go downloads it.
(cd "$stage" && go mod download "golang.org/toolchain@v0.0.1-$GO_VERSION.linux-$HOST_ARCH") ||
  fail "$GO_VERSION cannot be downloaded" "check that the module proxy (go env GOPROXY) is reachable, then make fetch-all"

# list DIRECTORY ARGUMENT… downloads the modules that go list -deps reads.
list() {
  say "downloads: modules of $1 for ${*: -1}"
  go list -C "$ROOT/$1" -deps "${@:2}" > "$stage/packages" 2> "$stage/errors" ||
    fail "the modules of $1 cannot be downloaded: $(tail -n 1 "$stage/errors")" "check that the module proxy (go env GOPROXY) is reachable, then make fetch-all"
}
for module in plugins build build/extender test test/inprocess; do
  list "$module" -test ./...
  # verify runs go mod tidy; that of today's Go would rewrite plugins/go.mod.
  [[ $module == plugins ]] || go -C "$ROOT/$module" mod tidy -diff > "$stage/tidy" 2>&1 || true
done
for program in etcd kwok prometheus promtool staticcheck govulncheck deepcopy-gen; do
  find_pin "$program"
  list "build/pins/$pin" "${flags[@]}" "$package"
done
list build/pins/kubernetes k8s.io/kubernetes/cmd/kube-scheduler
say "downloads: Kubernetes $VERSION and the modules of modules.yaml"
OUTPUT=$stage/output SOURCE=module make --no-print-directory -C "$ROOT" tree > "$stage/tree.log" 2>&1 9>&- ||
  fail "the tree cannot be made: $(tail -n 2 "$stage/tree.log" | tr '\n' ' ')" "fix the error, then make fetch-all"
# Tests compile the tree as a Go module, with the modules of modules.yaml.
(TREE=$stage/output/kubernetes OUTPUT=$stage/output && use_tree "$stage/fork" "$ROOT/test/inprocess" "$TREE" &&
  GOFLAGS=-mod=mod go list -C "$ROOT/test/inprocess" -modfile="$stage/fork.mod" -overlay="$stage/fork.overlay.json" -deps -test ./...) \
  > "$stage/packages" 2> "$stage/errors" ||
  fail "the modules of the tests cannot be downloaded: $(tail -n 1 "$stage/errors")" "check that the module proxy (go env GOPROXY) is reachable, then make fetch-all"

tar -C "$stage" --exclude='*.lock' --exclude='*.tmp' --exclude=vcs --sort=name -cf "$archive.new" pkg/mod/cache/download pkg/sumdb
mv "$archive.new" "$archive"
say "downloads: $archive, $(du -h "$archive" | cut -f1), sha256 $(sha256sum "$archive" | cut -d' ' -f1)"
say "next:      on the other machine, in a copy of this checkout:"
say "  mkdir -p ~/downloads && tar -xf downloads.tar -C ~/downloads"
# shellcheck disable=SC2016 # The home directory of the other machine.
say '  export GOPATH=~/downloads GOMODCACHE=~/downloads/pkg/mod GOPROXY=file://$HOME/downloads/pkg/mod/cache/download && make image'
