#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Proves the Applies-To of the patches. Applies what modules.yaml carries, and the series, to every release of Kubernetes
# 1.23 that is available as a Go module, v1.23.0 to the pinned one. Compiles kube-scheduler and the scheduler's packages on
# the oldest release. The pinned release is compiled and vetted in the patched tree, with nothing set but
# GOWORK=off: as a person does who works there. With ORACLE, placements are compared with stock Kubernetes: upstream's own
# PodTopologySpread of v1.23.1 panics in these scenarios, when a pod is nominated to a node that the node affinity of the
# scheduled pod excludes.
#
# Inputs: the tree that apply-patches.sh made; modules.yaml; the patches; arguments: --all (compile on every release);
#   (environment) ORACLE, the releases for the comparison, which takes DURATION (30s) on each after it is compiled.
# Exit: 0 proven; 1 a patch does not apply, a release does not compile, docs/releases.md says so of another one, or fewer
# than half of the releases are available.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/environment.sh"
source "$ROOT/scripts/stock-and-fork.sh"

use_pinned_go
build=$(build_tool kube-scheduler-build)
work=$(mktemp -d "$OUTPUT/.applies.XXXXXX")
trap 'rm -rf "$work"' EXIT
read_series "$build"
# What the patches change of upstream, without files that one of them makes; and what modules.yaml changes.
mapfile -t files < <(comm -23 \
  <({ printf '%s\n' go.mod go.sum vendor/modules.txt; sed -n 's#^--- a/##p' "${patches[@]}"; } | sort -u) \
  <(sed -n '\#^--- /dev/null#{ n; s#^+++ b/##p }' "${patches[@]}" | sort -u))
export GO111MODULE=on GOWORK=off CGO_ENABLED=0
mapfile -t staging < <(printf '%s\n' "${files[@]}" | sed -n 's#^staging/src/\(k8s.io/[^/]*\)/.*#\1#p' | sort -u)

# module_directory MODULE VERSION prints where a module is, or nothing if it is not available.
module_directory() {
  { GOFLAGS=-mod=mod go -C "$work" mod download -json "$1@$2" 2> /dev/null || true; } |
    sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p'
}

# apply RELEASE MODULE puts the patched files of a release into $work/tree; MODULE is the directory of the Go module.
apply() {
  local file from mode commit patch
  rm -rf "$work/tree"
  mkdir "$work/tree"
  git -C "$work/tree" init -q
  for file in "${files[@]}"; do
    # The module has nothing of vendor/ but its list; what patches change there, modules.yaml brings.
    [[ $file != vendor/* || -f $2/$file ]] || continue
    mkdir -p "$work/tree/$(dirname "$file")"
    mode=644
    [[ $file != *.sh ]] || mode=755
    from=$2/$file
    # Staging directories are modules of their own.
    [[ ! $file =~ ^staging/src/(k8s\.io/[^/]*)/(.*) ]] ||
      from=$(module_directory "${BASH_REMATCH[1]}" "v0.${1#v1.}")/${BASH_REMATCH[2]}
    install -m "$mode" "$from" "$work/tree/$file"
  done
  git -C "$work/tree" add --all
  git -C "$work/tree" commit -q -m "$1"
  commit=$(git -C "$work/tree" rev-parse HEAD)
  "$build" source carry "$MODULES_FILE" "$work/tree" "$commit" refs/heads/modules || exit 1
  git -C "$work/tree" checkout -q modules
  VERSION=$1 read_series "$build"
  for patch in "${patches[@]}"; do
    git -C "$work/tree" apply "$patch" ||
      fail "${patch##*/} does not apply to $1" "fix the patch (docs/patches.md), or narrow its Applies-To"
  done
}

# compiles RELEASE DIRECTORY compiles kube-scheduler and the scheduler's packages in a tree, and adds it to compiled. On the
# pinned release, their tests too: those that the patches add use what upstream's tests got after v1.23.0. Only vet's
# analyzer of build tags runs there, because today's others report old faults in upstream's code. It returns 1 if a staging
# module of the release is not available.
compiles() {
  local began=$SECONDS missing
  { go build -C "$2" -trimpath -buildvcs=false -o "$work/kube-scheduler" ./cmd/kube-scheduler &&
    go build -C "$2" -trimpath -buildvcs=false ./pkg/scheduler/... &&
    { [[ $1 != "$KUBERNETES_VERSION" ]] || go vet -C "$2" -trimpath -buildtag ./cmd/kube-scheduler ./pkg/scheduler/...; }; } 2> "$work/log" || {
    missing=$(sed -nE 's#^go: .*(k8s\.io/[a-z-]+@v0\.23\.[0-9]+)[:/].* (404 Not Found|unknown revision .*)$#\1#p' "$work/log")
    if [[ -n $missing ]]; then
      say "applies: $1 is not compiled: $missing is not available"
      return 1
    fi
    cat "$work/log" >&2
    fail "the series does not compile on $1" "fix the patch (docs/patches.md), or narrow its Applies-To to releases where it compiles"
  }
  say "applies: $1 compiles: $((SECONDS - began)) s"
  compiled+=("$1")
}

# whole RELEASE MODULE puts the whole patched release into $work/whole, as a Go module that is compiled without vendor/:
# the staging directories are not in the module, and come from their own modules; those that are patched are copied. The
# samples, which nothing imports, are not all available. Without vendor/, a raised gRPC brings genproto's modules of today,
# with packages that the old one has too; so that comes as it is today.
whole() {
  local name keep='' genproto
  genproto=$(sed -n 's#^replace google.golang.org/genproto => ##p' "$ROOT/go.work")
  rm -rf "$work/whole"
  cp -r --no-preserve=mode "$2" "$work/whole"
  for name in "${staging[@]}"; do
    mkdir -p "$work/whole/staging/src/k8s.io"
    cp -r --no-preserve=mode "$(module_directory "$name" "v0.${1#v1.}")" "$work/whole/staging/src/$name"
    keep+="\#staging/src/$name\$#b;"
  done
  cp -r "$work/tree/." "$work/whole"
  sed -E -i "$keep s#=> \./staging/src/(k8s\.io/[a-z-]+)\$#=> \1 v0.${1#v1.}#; / k8s\.io\/sample-/d; /\tk8s\.io\/sample-/d; s#(google.golang.org/genproto =>).*#\1 $genproto#" "$work/whole/go.mod"
}

# oracle RELEASE TREE compares the placements of both for a while.
oracle() {
  local VERSION=$1
  compile ./oracle "$work/stock" "$ROOT/test/inprocess"
  compile ./oracle "$work/fork" "$ROOT/test/inprocess" "$2"
  if (cd "$work" && ./stock.test -test.v -test.timeout=0 -test.run='^TestAgainst$' -against="$work/fork.test" -duration="${DURATION:-30s}") > "$work/log" 2>&1; then
    say "applies: $1 places as stock does: $(sed -n 's/.* \([0-9]* scenarios, [0-9]* decisions\).*/\1/p' "$work/log")"
  elif grep -q '^panic: ' "$work/log"; then
    say "applies: $1 is not compared: stock Kubernetes panics"
  else
    cat "$work/log" >&2
    fail "the series places otherwise than stock Kubernetes on $1" "read the output above"
  fi
}

tried=0 last=${KUBERNETES_VERSION##*.} compiled=()
for ((patch_release = 0; patch_release <= last; patch_release++)); do
  release=v1.23.$patch_release
  module=$(module_directory k8s.io/kubernetes "$release")
  if [[ -z $module ]]; then
    say "applies: $release is not available from the module proxy"
    continue
  fi
  tried=$((tried + 1))
  # As environment.sh has it.
  MODULES=none
  [[ $release != "$KUBERNETES_VERSION" ]] || MODULES=
  export MODULES
  apply "$release" "$module"
  say "applies: $release${MODULES:+, without plugins of other projects}"
  if [[ $release == "$KUBERNETES_VERSION" ]]; then
    compiles "$release" "$TREE"
    [[ " ${ORACLE:-} " != *" $release "* ]] || oracle "$release" "$TREE"
  elif [[ ${1:-} == --all || $tried == 1 ]]; then
    whole "$release" "$module"
    GOFLAGS=-mod=mod compiles "$release" "$work/whole" || continue
    [[ " ${ORACLE:-} " != *" $release "* ]] || GOFLAGS='' oracle "$release" "$work/whole"
  fi
done
((2 * tried > last)) || fail "only $tried releases are available" "check that the module proxy (go env GOPROXY) is reachable"
for release in "${compiled[@]}"; do
  grep -q "^| $release | yes | yes |" "$ROOT/docs/releases.md" || fail "docs/releases.md does not say that the series compiles on $release" "correct its row"
done
say "applies: compiled on ${compiled[*]}"
