# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Shared by all scripts: strict mode, the directories, the pin, git without the user's settings, one way to fail and one
# way to print. Sourced, never run.
#
# Inputs (environment): OUTPUT, UPSTREAM, and for tests UPSTREAM_VERSION_FILE, MODULES_FILE, SERIES_DIR (the folders of
# the series) and PATCHES_DIR (patches that are used as they are).
set -o errexit -o nounset -o pipefail
# The output must not depend on who makes it, or where.
umask 022
export LC_ALL=C TZ=UTC
unset CDPATH
# Nor on a git command that runs this (a hook, an alias, a rebase): only its variables for reaching a server stay.
for variable in "${!GIT_@}"; do
  case $variable in GIT_SSH* | GIT_SSL* | GIT_HTTP* | GIT_PROXY* | GIT_ASKPASS | GIT_TRACE*) ;; *) unset "$variable" ;; esac
done

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
OUTPUT=$(realpath -m -- "${OUTPUT:-$ROOT/_output}")
TREE=$OUTPUT/kubernetes
SERIES_DIR=$(realpath -m -- "${SERIES_DIR:-$ROOT/patches}")
# The series as make-patches.sh writes it for git am, and before it the packages of modules.yaml.
PATCHES_DIR=$(realpath -m -- "${PATCHES_DIR:-$OUTPUT/patches}")
# shellcheck disable=SC2034 # For the scripts that make it and pack it.
MODULES_PATCH=0000-modules.patch
UPSTREAM_VERSION_FILE=$(realpath -m -- "${UPSTREAM_VERSION_FILE:-$ROOT/upstream.version}")
MODULES_FILE=$(realpath -m -- "${MODULES_FILE:-$ROOT/modules.yaml}")

# fail ERROR NEXT prints what went wrong and the next command, and ends the script.
fail() {
  printf 'error: %s\n' "$1" >&2
  printf 'next:  %s\n' "$2" >&2
  trap - ERR
  exit 1
}
# A command that fails without a message of ours has just printed its own. Commands in $(…) leave the message to the
# script.
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
# git still reads these two files of the user's, unless they are set.
export GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=core.attributesFile GIT_CONFIG_VALUE_0=/dev/null \
  GIT_CONFIG_KEY_1=core.excludesFile GIT_CONFIG_VALUE_1=/dev/null
export GIT_AUTHOR_NAME='kube-scheduler build' GIT_AUTHOR_EMAIL='build@localhost' GIT_AUTHOR_DATE='1000000000 +0000'
export GIT_COMMITTER_NAME=$GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL=$GIT_AUTHOR_EMAIL GIT_COMMITTER_DATE=$GIT_AUTHOR_DATE

# The machine's own architecture, by Go's name, and the target's.
HOST_ARCH=$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/')
ARCH=${ARCH:-$HOST_ARCH}
[[ $ARCH == amd64 || $ARCH == arm64 ]] || fail "ARCH=$ARCH cannot be built" "make image ARCH=amd64 or ARCH=arm64"

[[ $OUTPUT != *[[:space:]:]* ]] ||
  fail "upstream's make cannot build in a directory whose path contains a space or a colon: $OUTPUT" "OUTPUT=\$HOME/kube-scheduler-output make image"
mkdir -p "$OUTPUT"

# lock takes the lock on the output, and waits while another run holds it. It is held until the script ends.
lock() {
  need flock
  exec 9> "$OUTPUT/.lock"
  flock --nonblock 9 && return
  say "waiting for another run that uses $OUTPUT"
  flock 9
}

# use_pinned_go puts the Go of upstream.version first in PATH, and fetches it through GOTOOLCHAIN if necessary.
use_pinned_go() {
  local found settings=(GOPROXY GOSUMDB GONOSUMDB GOPRIVATE GONOPROXY GOMODCACHE GOCACHE GOPATH) values name
  need go git make
  # Upstream's make sets the target; tools run on this machine.
  unset GOOS GOARCH GOARM64 GOAMD64 GOEXPERIMENT
  found=$(GOTOOLCHAIN=$GO_VERSION GOFLAGS='' GOWORK=off go env GOVERSION GOROOT) ||
    fail "Go $GO_VERSION, which upstream.version requires, cannot be fetched" "check that the module proxy (go env GOPROXY) is reachable, or install $GO_VERSION, then run the same command again"
  [[ ${found%%$'\n'*} == "$GO_VERSION" ]] ||
    fail "the installed Go (${found%%$'\n'*}) is too old to fetch $GO_VERSION by itself, which requires Go 1.21" "install Go 1.21 or newer, then run the same command again"
  # Only the user's settings for the sources and caches of modules stay; others, such as GOFLAGS set with go env -w, would
  # change the output.
  mapfile -t values < <(go env "${settings[@]}")
  for name in "${!settings[@]}"; do export "${settings[$name]}=${values[$name]}"; done
  export PATH=${found#*$'\n'}/bin:$PATH GOTOOLCHAIN=local GOENV=off
}

# recorded KEY prints, and record KEY REPOSITORY VALUE sets, a fact about the base trees in $TREE, in its .git directory.
# git replaces the file by a rename, so a line is never cut off.
recorded() { git config -f "$TREE/.git/kube-scheduler" --get "$1" || true; }
record() { git config -f "${2}/.git/kube-scheduler" "$1" "$3"; }

# patches_applied reports whether $TREE has the patches, on the commit of $VERSION.
patches_applied() { [[ -n $(recorded applied.head) && $(recorded applied.base) == "$(recorded "base.$VERSION.tree")" ]]; }

# export_patch REPOSITORY COMMIT prints a commit as a patch: the same bytes with any settings of git.
export_patch() {
  git -C "$1" format-patch -1 --stdout --zero-commit --no-signature --full-index --no-stat --no-renames --no-numbered \
    --diff-algorithm=myers --unified=3 "$2"
}

# recorded_version BUILD prints the version of an image made from the patches and the base in $TREE; BUILD is the path
# of kube-scheduler-build.
recorded_version() {
  "$1" version --kubernetes "$VERSION" --suffix "${VERSION_SUFFIX:-fork}" --sum "$(recorded "base.$VERSION.sum")" \
    --go "$GO_VERSION" "$PATCHES_DIR" "$MODULES_FILE"
}

# contents VERSION prints the arguments of kube-scheduler-build for the facts in an SBOM, one per line.
contents() {
  printf '%s\n' --version "$1" --kubernetes "$VERSION" --sum "$(recorded "base.$VERSION.sum")" --commit "$(recorded "base.$VERSION.commit")" \
    --created "$(recorded "base.$VERSION.time")" --tree "$TREE" --module-cache "$(go env GOMODCACHE)" --patches "$PATCHES_DIR" --modules "$MODULES_FILE"
}

# modules_sum is the sum of what the commit with the packages of modules.yaml is made from: that file, what MODULES
# leaves out of it, and the code.
modules_sum() { { printf '%s\n' "${MODULES:-}"; cat -- "$MODULES_FILE" "$ROOT"/build/source/{modules,carry,raise,register,require,vendorlist}.go; } | sha256sum | cut -d' ' -f1; }

# read_series BUILD sets the array patches to the files of the series, in order, without those that the release, modules.yaml
# or MODULES leaves out. It fails if there are none. BUILD is the path of kube-scheduler-build.
read_series() {
  local list
  list=$("$1" patches list "$PATCHES_DIR" "$MODULES_FILE" "$VERSION") || exit 1
  mapfile -t patches <<< "$list"
}

# what_is_applied prints the sums of the modules, and of each patch that read_series found, in the order in which they
# are applied to upstream's commit.
what_is_applied() {
  { modules_sum; sha256sum -- "${patches[@]}" | cut -d' ' -f1; } | tr '\n' ' '
}

# modules_commit is the name of a commit in $TREE: on top of upstream's, the packages of modules.yaml. What it is made
# from is in its name; where nothing is carried it is upstream's own.
modules_commit() {
  printf 'refs/modules/%s/%s\n' "$(recorded "base.$VERSION.tree")" "$(modules_sum)"
}

# write_version_file FILE VERSION STATE writes what upstream's version.sh would otherwise ask git. STATE is clean for
# upstream's commit, and dirty for a tree with patches.
write_version_file() {
  [[ $2 =~ ^v([0-9]+)\.([0-9]+)\. ]]
  cat > "$1.new" << EOF
KUBE_GIT_COMMIT='$(recorded "base.$VERSION.commit")'
KUBE_GIT_TREE_STATE='$3'
KUBE_GIT_VERSION='$2'
KUBE_GIT_MAJOR='${BASH_REMATCH[1]}'
KUBE_GIT_MINOR='${BASH_REMATCH[2]}'
EOF
  mv "$1.new" "$1"
}

# types_sum DIRECTORY prints the sum of the types of plugins' arguments, and of what generators made from them.
# plugins/types.sum has it for those that `make update` made and `make verify` checks.
types_sum() { (cd "$1" && sha256sum -- *.go) | grep -v _test.go | sha256sum | cut -d' ' -f1; }

# shellcheck source=programs.sh
source "$ROOT/scripts/programs.sh"
