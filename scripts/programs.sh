# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Builds the programs that are not the scheduler: this project's tools, and servers and tools of others. Sourced by
# environment.sh.

# The one generated file that upstream does not release.
OPENAPI=pkg/generated/openapi/zz_generated.openapi.go

# progress NAME [COMMAND…] copies the output of a build, without the names of packages that `go build -v` prints when it
# compiles them. Every 20 seconds it prints to stderr how many packages there were, of how many that COMMAND lists, and
# how long it has taken. On a terminal this is one line, which is rewritten.
progress() {
  local name=$1 standard line='' part last='' status count=0 all='' said=$SECONDS began=$SECONDS every=20
  shift
  standard=$(go env GOROOT)/src
  [[ ! -t 2 ]] || every=1
  while :; do
    status=0
    IFS= read -r -t "$every" part || status=$?
    line+=$part
    if ((status == 0)); then
      if [[ $line == [a-z]*/* && $line != *[[:space:]]* ]] || [[ $line =~ ^[a-z0-9]+$ && -d $standard/$line ]]; then
        count=$((count + 1)) last=$line
      else
        [[ ! -t 2 ]] || printf '\r\e[K' >&2
        printf '%s\n' "$line"
      fi
      line=''
    elif ((status <= 128)); then
      break
    fi
    ((SECONDS - said >= every)) || continue
    said=$SECONDS
    if [[ -z $all && count -gt 0 ]]; then
      all=$([[ -z ${1:-} ]] || "$@" 2> /dev/null | wc -l)
    fi
    if [[ -t 2 ]]; then printf '\r\e[K' >&2; fi
    printf '%s: ' "$name" >&2
    ((count == 0)) || printf '%s' "compiled $count packages${all:+ of at most $all}, " >&2
    printf '%d min %d s%s' $(((SECONDS - began) / 60)) $(((SECONDS - began) % 60)) "${last:+: $last}" >&2
    [[ -t 2 ]] || printf '\n' >&2
  done
  [[ -z $line ]] || printf '%s\n' "$line"
  [[ ! -t 2 ]] || printf '\r\e[K' >&2
}

# go_build NAME DIRECTORY ARGUMENT… runs go build in the module DIRECTORY, for this machine and without cgo, so that
# what several programs need is compiled once. The last argument is the package.
go_build() {
  GOWORK=off GOFLAGS='' GO111MODULE=on CGO_ENABLED=0 go build -C "$2" -v -trimpath -buildvcs=false "${@:3}" 2>&1 |
    GOWORK=off progress "tools: $1" go list -C "$2" -deps "${@: -1}" >&2
}

# build_tool NAME [MODULE] compiles cmd/NAME of build/, or of the module build/MODULE, with the pinned Go, unless no
# file that it is made from has changed, and prints the path of the binary.
build_tool() {
  local binary=$OUTPUT/tools/$1 sum
  mkdir -p "$OUTPUT/tools"
  sum=$(cd "$ROOT" && find build ${2:+plugins} -path build/pins -prune -o -type f ! -name '*_test.go' -print0 | sort -z |
    xargs -0 sha256sum | sha256sum)
  build_once "$1" "$GO_VERSION $sum" go_build "$1" "$ROOT/build${2:+/$2}" -o "$binary" "./cmd/$1"
  printf '%s\n' "$binary"
}

# compile_tool MODULE NAME ARCH VERSION [OS] compiles cmd/NAME of the module build/MODULE for an image or a bundle, into
# _output/bin/OS/ARCH.
compile_tool() {
  local os=${5:-linux} directory=$OUTPUT/bin/${5:-linux}/$3
  mkdir -p "$directory"
  GOOS=$os GOARCH=$3 go_build "$2" "$ROOT/build/$1" -ldflags "-s -w -X main.version=$4" -o "$directory/.$2.new" "./cmd/$2"
  mv "$directory/.$2.new" "$directory/$2"
}

# find_pin NAME sets pin (the module in build/pins/), package and flags (for the compiler) of a program of others. It
# returns 1 for the programs of Kubernetes, which have no pin.
find_pin() {
  flags=()
  case $1 in
    descheduler) pin=descheduler package=sigs.k8s.io/descheduler/cmd/descheduler ;;
    etcd) pin=etcd package=go.etcd.io/etcd/server/v3 ;;
    kube-state-metrics) pin=kube-state-metrics package=k8s.io/kube-state-metrics/v2 ;;
    kwok) pin=kwok package=sigs.k8s.io/kwok/cmd/kwok ;;
    metrics-server) pin=metrics-server package=sigs.k8s.io/metrics-server/cmd/metrics-server ;;
    node_exporter) pin=node-exporter package=github.com/prometheus/node_exporter ;;
    # Without the service discovery of clouds, which takes longer to compile than all the rest.
    prometheus | promtool) pin=prometheus package=github.com/prometheus/prometheus/cmd/$1 flags=(-tags=remove_all_sd) ;;
    staticcheck) pin=staticcheck package=honnef.co/go/tools/cmd/staticcheck ;;
    govulncheck) pin=govulncheck package=golang.org/x/vuln/cmd/govulncheck ;;
    *-gen) pin=code-generator package=k8s.io/code-generator/cmd/$1 ;;
    *) return 1 ;;
  esac
}

# build_server NAME… compiles programs of others to $OUTPUT/tools: those of Kubernetes as upstream released them, the
# others as the modules in build/pins/ pin them. They are built again only when their source, their pin, or Go changes.
build_server() {
  mkdir -p "$OUTPUT/tools"
  local name pin package flags kubernetes=()
  for name in "$@"; do
    find_pin "$name" || { kubernetes+=("$name"); continue; }
    build_once "$name" "$GO_VERSION ${flags[*]} $(cat "$ROOT/build/pins/$pin/"* | sha256sum)" \
      go_build "$name" "$ROOT/build/pins/$pin" "${flags[@]}" -o "$OUTPUT/tools/$name" "$package"
  done
  ((${#kubernetes[@]} == 0)) || build_kubernetes "${kubernetes[@]}"
}

# build_once NAME INPUTS COMMAND… runs COMMAND, which makes $OUTPUT/tools/NAME, unless that was made from INPUTS. The
# inputs are written last, so a build that was cut off is not trusted.
build_once() {
  local stamp=$OUTPUT/tools/.$1.inputs status=0
  [[ ! -x $OUTPUT/tools/$1 || ! -f $stamp || $(< "$stamp") != "$2" ]] || return 0
  rm -f "$stamp"
  say "tools: $1" >&2
  "${@:3}" || status=$?
  # After Ctrl-C there is nothing to fix.
  ((status <= 128)) || exit "$status"
  ((status == 0)) || fail "$1 cannot be built: see the error above" "fix it, then run the same command again; finished steps are kept"
  printf '%s\n' "$2" > "$stamp.new"
  mv "$stamp.new" "$stamp"
}

# build_kubernetes NAME… compiles programs of upstream's release, unpatched, with upstream's make, as kube-scheduler is
# compiled: so the packages that no patch changes are compiled once. Upstream's own tag leaves out the cloud providers:
# no cluster here has them, and their clients take longer to compile than all the rest.
build_kubernetes() {
  local base upstream=$OUTPUT/upstream/$VERSION sources name tags=providerless
  base=$(recorded "base.$VERSION.tree")
  [[ -n $base ]] || fail "the source of $VERSION, from which $1 is built, does not exist yet" "make tree, then run the same command again"
  sources="$base $(git -C "$TREE" rev-parse HEAD:build HEAD:hack | xargs)"
  if [[ ! -f $upstream/_output/sources || $(< "$upstream/_output/sources") != "$sources" ]]; then
    rm -rf "$upstream" "$upstream.new"
    check_out "$base" HEAD "$upstream.new"
    mkdir -p "$upstream.new/_output"
    printf '%s\n' "$sources" > "$upstream.new/_output/sources"
    mv "$upstream.new" "$upstream"
  fi
  write_version_file "$upstream/_output/version.sh" "$VERSION" clean
  for name in "$@"; do
    build_once "$name" "$GO_VERSION $tags $sources" make_kubernetes "$name" "$upstream" "$tags"
  done
}

# build_newer_apiservers VERSION… compiles kube-apiservers of later releases to $OUTPUT/tools/kube-apiserver-VERSION, for
# tests of upgrades. No pin is committed: requirements and checksums are those of the release itself.
build_newer_apiservers() {
  local release
  for release in "$@"; do
    build_once "kube-apiserver-$release" "$GO_VERSION" make_newer_apiserver "$release"
  done
}

# make_newer_apiserver VERSION makes one of them from Go modules. The release's go.mod names directories of its repository
# for modules that upstream also publishes, as v0.MINOR.PATCH; the checksum database has their sums.
make_newer_apiserver() {
  local release=$1 minor=${1#1.} module=$OUTPUT/newer/$1 upstream package flags=(-s -w)
  upstream=$(cd / && GOWORK=off go mod download -json "k8s.io/kubernetes@v$release" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p') || return
  mkdir -p "$module"
  sed -E "s|^module .*|module newer|; s|=> \./staging/src/(\S+)|=> \1 v0.$minor|" "$upstream/go.mod" > "$module/go.mod"
  printf '\nrequire k8s.io/kubernetes v%s\n' "$release" >> "$module/go.mod"
  cat "$upstream/go.sum" > "$module/go.sum"
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    flags+=(-X "$package.gitVersion=v$release" -X "$package.gitMajor=1" -X "$package.gitMinor=${minor%.*}")
  done
  go_build "kube-apiserver $release" "$module" -mod=mod -tags=providerless -ldflags "${flags[*]}" \
    -o "$OUTPUT/tools/kube-apiserver-$release" k8s.io/kubernetes/cmd/kube-apiserver
}

# check_out BASE SCRIPTS DIRECTORY writes the files of the commit BASE of $TREE, with the build scripts of SCRIPTS, which
# the first patches of the series fit to today's Go.
check_out() {
  local index=$3.index commit paths
  mkdir -p "$3"
  rm -f "$index"
  for commit in "$1" "$2"; do
    GIT_INDEX_FILE=$index git -C "$TREE" read-tree "$commit"
    paths=(build hack)
    [[ $commit != "$1" ]] || paths=(.)
    GIT_INDEX_FILE=$index git -C "$TREE" ls-files -z "${paths[@]}" |
      GIT_INDEX_FILE=$index git -C "$TREE" checkout-index -qfz --stdin --prefix="$3/"
  done
  rm -f "$index"
}

# generate_openapi TREE VERSION_FILE makes $OPENAPI in a tree, unless a run that was not cut off has made it.
generate_openapi() {
  [[ ! -f $1/_output/openapi ]] || return 0
  rm -f "$1/$OPENAPI"
  upstream_make "$1" "$2" "$HOST_ARCH" '' gen_openapi | progress 'tools: OpenAPI' >&2 || return
  touch "$1/_output/openapi"
}

# make_kubernetes NAME UPSTREAM TAGS makes cmd/NAME in the directory that build_kubernetes made.
make_kubernetes() {
  local version_file=$2/_output/version.sh
  [[ $1 != kube-apiserver ]] || generate_openapi "$2" "$version_file" || return
  upstream_make "$2" "$version_file" "$HOST_ARCH" "-tags=$3" --old-file=generated_files all WHAT="-v cmd/$1" |
    progress "tools: $1" in_gopath "$2" go list -deps -tags="selinux,notest,$3" "./cmd/$1" >&2 || return
  cp "$2/_output/local/bin/linux/$HOST_ARCH/$1" "$OUTPUT/tools/.$1.new"
  mv "$OUTPUT/tools/.$1.new" "$OUTPUT/tools/$1"
}

# upstream_make TREE VERSION_FILE ARCH GOFLAGS ARGUMENT… runs upstream's make, and prints all of its output to stdout.
# Upstream turns cgo off for most programs; off for all of them, and with the user's build cache, they share compiled
# packages.
upstream_make() {
  local cache=$1/_output/local/go/cache
  if [[ $(readlink "$cache") != "$GOCACHE" ]]; then
    mkdir -p "${cache%/*}"
    rm -rf "$cache"
    ln -s "$GOCACHE" "$cache"
  fi
  clean_environment GOFLAGS="$4" KUBE_VERBOSE="${KUBE_VERBOSE:-1}" KUBE_GIT_VERSION_FILE="$2" \
    SOURCE_DATE_EPOCH="$(recorded "base.$VERSION.time")" KUBE_BUILD_PLATFORMS="linux/$3" \
    make --no-print-directory -C "$1" "${@:5}" 2>&1 |
    # Upstream's generators do not know all kinds of types of today's Go, and say so; nothing is generated for those.
    { grep --line-buffered -v 'Making unsupported type entry' || true; }
}

# in_gopath TREE COMMAND… runs a command as upstream's make runs the compiler.
in_gopath() {
  (cd "$1" && clean_environment hack/run-in-gopath.sh "${@:2}")
}

# clean_environment COMMAND… runs a command without the user's settings for Go, such as GOAMD64 and those of go env -w,
# which would change the bytes.
clean_environment() {
  env -i PATH="$PATH" HOME="$OUTPUT/home" TMPDIR="${TMPDIR:-/tmp}" LC_ALL=C TZ=UTC \
    GOTOOLCHAIN=local GOENV=off GOTELEMETRY=off CGO_ENABLED=0 "$@"
}
