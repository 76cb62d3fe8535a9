# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What every script here starts with: strict mode, the folders, the pin, git without the user's settings, one way to
# fail and one way to speak. Sourced, never run.
#
# Inputs (environment): OUTPUT, UPSTREAM, and for tests UPSTREAM_VERSION_FILE, MODULES_FILE and PATCHES_DIR.
set -o errexit -o nounset -o pipefail
# What is made must not depend on who makes it, or where.
umask 022
export LC_ALL=C TZ=UTC
unset CDPATH
# Nor on the git command that happens to run this (a hook, an alias, a rebase): of its variables only those stay that
# tell how to reach a server.
for variable in "${!GIT_@}"; do
  case $variable in GIT_SSH* | GIT_SSL* | GIT_HTTP* | GIT_PROXY* | GIT_ASKPASS | GIT_TRACE*) ;; *) unset "$variable" ;; esac
done

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
OUTPUT=$(realpath -m -- "${OUTPUT:-$ROOT/_output}")
TREE=$OUTPUT/kubernetes
PATCHES_DIR=$(realpath -m -- "${PATCHES_DIR:-$ROOT/patches}")
UPSTREAM_VERSION_FILE=$(realpath -m -- "${UPSTREAM_VERSION_FILE:-$ROOT/upstream.version}")
MODULES_FILE=$(realpath -m -- "${MODULES_FILE:-$ROOT/modules.yaml}")

# fail WHAT NEXT: says what went wrong and the next command, and ends the script.
fail() {
  printf 'error: %s\n' "$1" >&2
  printf 'next:  %s\n' "$2" >&2
  trap - ERR
  exit 1
}
# A command that fails with no word of ours has printed its own just above.
# Commands in $(…) leave it to the script itself to speak.
trap '((BASH_SUBSHELL)) || fail "${0##*/}: line $LINENO stopped: ${BASH_COMMAND%%$'"'\n'"'*}" "fix the error above, then run the same command again; finished steps are kept"' ERR
set -o errtrace

say() { printf '%s\n' "$*"; }

need() {
  local tool
  for tool in "$@"; do
    command -v "$tool" > /dev/null || fail "$tool is not installed" "install $tool with your system's package manager (Debian: apt-get install ${tool/#sha256sum/coreutils})"
  done
}

# shellcheck source=../upstream.version
source "$UPSTREAM_VERSION_FILE"
VERSION=${UPSTREAM:-$KUBERNETES_VERSION}
[[ $VERSION != 1.23.* ]] || fail "UPSTREAM=$VERSION has no v before the number" "make image UPSTREAM=v$VERSION"
[[ $VERSION =~ ^v1\.23\.(0|[1-9][0-9]*)$ ]] ||
  fail "UPSTREAM=$VERSION is not a release of Kubernetes 1.23, for which the patches are made" "make image UPSTREAM=$KUBERNETES_VERSION"
pinned() { [[ $VERSION == "$KUBERNETES_VERSION" ]]; }
# Other releases vendor other versions of what plugins of other projects need.
pinned || export MODULES=none

# The user's git settings (signing, hooks, line ends, diff colours) must not change what git writes or prints.
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_ATTR_NOSYSTEM=1 GIT_TERMINAL_PROMPT=0
# git reads these two files of the user's even so, unless told otherwise.
export GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=core.attributesFile GIT_CONFIG_VALUE_0=/dev/null \
  GIT_CONFIG_KEY_1=core.excludesFile GIT_CONFIG_VALUE_1=/dev/null
export GIT_AUTHOR_NAME='kube-scheduler build' GIT_AUTHOR_EMAIL='build@localhost' GIT_AUTHOR_DATE='1000000000 +0000'
export GIT_COMMITTER_NAME=$GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL=$GIT_AUTHOR_EMAIL GIT_COMMITTER_DATE=$GIT_AUTHOR_DATE

# The machine's own architecture, in Go's words, and the one that is built for.
HOST_ARCH=$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/')
ARCH=${ARCH:-$HOST_ARCH}
[[ $ARCH == amd64 || $ARCH == arm64 ]] || fail "ARCH=$ARCH cannot be built" "make image ARCH=amd64 or ARCH=arm64"

[[ $OUTPUT != *[[:space:]:]* ]] ||
  fail "upstream's make cannot build in a folder whose path has a blank or a colon: $OUTPUT" "OUTPUT=\$HOME/kube-scheduler-output make image"
mkdir -p "$OUTPUT"

# lock: one run at a time may change the output; a second one waits. Held until the script ends.
lock() {
  need flock
  exec 9> "$OUTPUT/.lock"
  flock --nonblock 9 && return
  say "waiting for another run that is using $OUTPUT"
  flock 9
}

# use_pinned_go puts the Go of upstream.version first in PATH, fetching it through GOTOOLCHAIN where need be.
use_pinned_go() {
  local found settings=(GOPROXY GOSUMDB GONOSUMDB GOPRIVATE GONOPROXY GOMODCACHE GOCACHE GOPATH) values name
  need go git make
  # What is compiled for another machine, or for a newer processor, is upstream's make's business; tools run here.
  unset GOOS GOARCH GOARM64 GOAMD64 GOEXPERIMENT
  found=$(GOTOOLCHAIN=$GO_VERSION GOFLAGS='' GOWORK=off go env GOVERSION GOROOT) ||
    fail "Go $GO_VERSION, which upstream.version asks for, cannot be fetched" "see that the module proxy (go env GOPROXY) can be reached, or install $GO_VERSION, then run the same command again"
  [[ ${found%%$'\n'*} == "$GO_VERSION" ]] ||
    fail "the installed Go (${found%%$'\n'*}) is too old to fetch $GO_VERSION by itself: that takes Go 1.21" "install Go 1.21 or newer, then run the same command again"
  # Of the user's settings for Go those stay that say where modules come from and where they are kept; GOFLAGS and the
  # like, set with go env -w, would change what is built.
  mapfile -t values < <(go env "${settings[@]}")
  for name in "${!settings[@]}"; do export "${settings[$name]}=${values[$name]}"; done
  export PATH=${found#*$'\n'}/bin:$PATH GOTOOLCHAIN=local GOENV=off
}

# build_tool NAME [MODULE] compiles cmd/NAME of build/, or of the module build/MODULE, with the pinned Go, and prints
# the path of the binary.
build_tool() {
  local binary=$OUTPUT/tools/$1
  GOWORK=off GOFLAGS='' GO111MODULE=on CGO_ENABLED=0 go build -C "$ROOT/build${2:+/$2}" -trimpath -buildvcs=false -o "$binary" "./cmd/$1"
  printf '%s\n' "$binary"
}

# What upstream generates and does not release.
OPENAPI=pkg/generated/openapi/zz_generated.openapi.go

# build_server NAME… compiles programs that are not ours, as the modules below build/pins/ pin them, to $OUTPUT/tools.
# No patch changes them: they are built again only when their module's pin, or Go, changes.
# What was made from which inputs is written last, so a build that was cut off is not trusted.
build_server() {
  mkdir -p "$OUTPUT/tools"
  local name pin package flags inputs stamp
  for name in "$@"; do
    case $name in
      descheduler) pin=descheduler package=sigs.k8s.io/descheduler/cmd/descheduler ;;
      etcd) pin=etcd package=go.etcd.io/etcd/server/v3 ;;
      kwok) pin=kwok package=sigs.k8s.io/kwok/cmd/kwok ;;
      metrics-server) pin=metrics-server package=sigs.k8s.io/metrics-server/cmd/metrics-server ;;
      prometheus | promtool) pin=prometheus package=github.com/prometheus/prometheus/cmd/$name ;;
      staticcheck) pin=staticcheck package=honnef.co/go/tools/cmd/staticcheck ;;
      *-gen) pin=code-generator package=k8s.io/code-generator/cmd/$name ;;
      *) pin=kubernetes package=k8s.io/kubernetes/cmd/$name ;;
    esac
    flags=()
    case $pin in
      # Without the service discovery of every cloud, which takes longer to compile than all the rest.
      prometheus) flags=(-tags=remove_all_sd) ;;
      # A release says which one it is; kubeadm compares it with that of the others.
      kubernetes) flags=(-ldflags="$(pinned_version k8s.io/component-base/version) $(pinned_version k8s.io/client-go/pkg/version)") ;;
    esac
    inputs="$GO_VERSION ${flags[*]} $(cat "$ROOT/build/pins/$pin/"* | sha256sum)" stamp=$OUTPUT/tools/.$name.inputs
    [[ $name != kube-apiserver ]] || inputs+=$(sha256sum "$TREE/$OPENAPI" 2> /dev/null || true)
    [[ ! -x $OUTPUT/tools/$name || ! -f $stamp || $(< "$stamp") != "$inputs" ]] || continue
    rm -f "$stamp"
    if [[ $name == kube-apiserver ]]; then
      complete_kubernetes
      flags+=(-modfile="$OUTPUT/tools/kubernetes.mod")
    fi
    say "tools: $package" >&2
    GOWORK=off GOFLAGS='' GO111MODULE=on CGO_ENABLED=0 go build -C "$ROOT/build/pins/$pin" -trimpath -buildvcs=false \
      "${flags[@]}" -o "$OUTPUT/tools/$name" "$package"
    printf '%s\n' "$inputs" > "$stamp.new"
    mv "$stamp.new" "$stamp"
  done
}

# complete_kubernetes makes what kube-apiserver is compiled from: the module, and the one file that upstream generates
# and does not release. The tree has that once its make has run. It is said to be the same module, so what is compiled
# of it is shared.
complete_kubernetes() {
  local pin=$ROOT/build/pins/kubernetes complete=$OUTPUT/tools/kubernetes-$KUBERNETES_VERSION
  [[ -f $TREE/$OPENAPI ]] || fail "$TREE/$OPENAPI, which kube-apiserver is compiled with, is not generated yet" "make binary, then run the same command again"
  if [[ ! -d $complete ]]; then
    rm -rf "$complete.new"
    cp -r --no-preserve=mode "$(GOWORK=off go -C "$pin" list -m -f '{{.Dir}}' k8s.io/kubernetes)" "$complete.new"
    mv "$complete.new" "$complete"
  fi
  # An earlier one may be of an interrupted make, or of another release.
  cmp -s "$TREE/$OPENAPI" "$complete/$OPENAPI" || cp "$TREE/$OPENAPI" "$complete/$OPENAPI"
  cp "$pin/go.mod" "$OUTPUT/tools/kubernetes.mod"
  cp "$pin/go.sum" "$OUTPUT/tools/kubernetes.sum"
  go mod edit -replace="k8s.io/kubernetes=$complete" "$OUTPUT/tools/kubernetes.mod"
}

# pinned_version PACKAGE prints what the linker puts into a package for the pinned release, as upstream's version.sh
# does.
pinned_version() {
  [[ $KUBERNETES_VERSION =~ ^v([0-9]+)\.([0-9]+)\. ]]
  printf -- '-X %s ' "$1.gitVersion=$KUBERNETES_VERSION" "$1.gitMajor=${BASH_REMATCH[1]}" "$1.gitMinor=${BASH_REMATCH[2]}" \
    "$1.gitCommit=$KUBERNETES_COMMIT" "$1.gitTreeState=clean"
}

# recorded KEY, record KEY REPOSITORY VALUE: what is known of the base trees in $TREE, kept in its .git folder. git
# writes the file again and renames it, so a line is there whole or not at all.
recorded() { git config -f "$TREE/.git/kube-scheduler" --get "$1" || true; }
record() { git config -f "${2}/.git/kube-scheduler" "$1" "$3"; }

# export_patch REPOSITORY COMMIT prints a commit as a patch: the same bytes, whatever the user's settings of git are.
export_patch() {
  git -C "$1" format-patch -1 --stdout --zero-commit --no-signature --full-index --no-stat --no-renames --no-numbered \
    --diff-algorithm=myers --unified=3 "$2"
}

# recorded_version BUILD prints the version of what is made from the patches and the base in $TREE; BUILD is the path of
# kube-scheduler-build.
recorded_version() {
  "$1" version --kubernetes "$VERSION" --suffix "${VERSION_SUFFIX:-fork}" --sum "$(recorded "base.$VERSION.sum")" \
    --go "$GO_VERSION" "$PATCHES_DIR" "$MODULES_FILE"
}

# modules_sum is the sum of what the commit with the packages of modules.yaml is made from: that file, what MODULES
# leaves out of it, and the code.
modules_sum() { { printf '%s\n' "${MODULES:-}"; cat -- "$MODULES_FILE" "$ROOT"/build/source/{modules,carry,register,require,vendorlist}.go; } | sha256sum | cut -d' ' -f1; }

# read_series BUILD fills the array patches with the files of the series, in order: without those for a module, or a
# package of it, that is not carried. BUILD is the path of kube-scheduler-build.
read_series() {
  local list
  list=$("$1" patches list "$PATCHES_DIR" "$MODULES_FILE") || exit 1
  mapfile -t patches <<< "$list"
}

# what_is_applied prints the sums of what is put on upstream's commit, in this order: the modules, and each patch that
# read_series found.
what_is_applied() {
  { modules_sum; sha256sum -- "${patches[@]}" | cut -d' ' -f1; } | tr '\n' ' '
}

# modules_commit is the name of a commit in $TREE: on top of upstream's, the packages of modules.yaml. What it is made
# from is in its name; where nothing is carried it is upstream's own.
modules_commit() {
  printf 'refs/modules/%s/%s\n' "$(recorded "base.$VERSION.tree")" "$(modules_sum)"
}

# export_modules FILE writes that commit as a patch; where nothing is carried there is no file.
export_modules() {
  local commit
  commit=$(git -C "$TREE" rev-parse --quiet --verify "$(modules_commit)") ||
    fail "the tree of $VERSION is not made from $MODULES_FILE as it is now" "make tree"
  rm -f "$1"
  [[ $commit != "$(recorded "base.$VERSION.tree")" ]] || return 0
  export_patch "$TREE" "$commit" > "$1.new"
  mv "$1.new" "$1"
}

# write_version_file FILE VERSION: what upstream's version.sh would otherwise ask git. The tree is upstream's commit
# with changes of ours: "dirty" in its words.
write_version_file() {
  [[ $2 =~ ^v([0-9]+)\.([0-9]+)\. ]]
  cat > "$1.new" << EOF
KUBE_GIT_COMMIT='$(recorded "base.$VERSION.commit")'
KUBE_GIT_TREE_STATE='dirty'
KUBE_GIT_VERSION='$2'
KUBE_GIT_MAJOR='${BASH_REMATCH[1]}'
KUBE_GIT_MINOR='${BASH_REMATCH[2]}'
EOF
  mv "$1.new" "$1"
}
