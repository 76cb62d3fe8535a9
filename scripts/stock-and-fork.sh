# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the scripts share that test and measure the patched tree as a Go module, or compare stock Kubernetes with it: one
# test package, compiled with each, with the same Go and flags. Sourced after environment.sh.

# use_tree NAME MODULE [TREE]: NAME.mod, with which the Go module MODULE is compiled with the patched Kubernetes in TREE,
# and with the plugins of other projects that it carries; or with stock Kubernetes at VERSION. NAME.overlay.json
# registers those plugins with the schedulers of test/inprocess, by the file that registers them with the real one, and
# adds what is in testdata/ there: tests that need scheduler-plugins, and what needs the patches. NAME.modules/list has the paths of what is carried.
use_tree() {
  local name=$1 kubernetes=${3:-} path version released folder file inprocess=$ROOT/test/inprocess
  cp "$2/go.mod" "$name.mod"
  cp "$2/go.sum" "$name.sum"
  # The modules pin the release of upstream.version; VERSION is set by environment.sh.
  # shellcheck disable=SC2153
  pinned || sed -i "s/ ${KUBERNETES_VERSION//./\\.}\>/ $VERSION/; s/ v0${KUBERNETES_VERSION#v1}\>/ v0${VERSION#v1}/" "$name.mod"
  printf '{"Replace": {}}\n' > "$name.overlay.json"
  [[ -n $kubernetes ]] || return 0
  # A patched tree has the plugins in it, and is replaced as a whole; its staging modules are those that stock has.
  sed -i '/k8s.io\/kubernetes\/pkg\/scheduler\/framework\/plugins/d' "$name.mod"
  GOWORK=off go mod edit -replace "k8s.io/kubernetes=$kubernetes" "$name.mod"
  [[ -e $kubernetes/cmd/kube-scheduler/modules.go ]] || return 0
  rm -rf "$name.modules"
  mkdir "$name.modules"
  # What the tree's go.mod requires, and upstream's does not: the whole module, with its tests, and the tree's files in place of
  # its own. It requires nothing, so that versions stay those of the tree, and is compiled at the level of MODULE.
  while read -r path version; do
    released=$(GOWORK=off go mod download -json "$path@$version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
    [[ -n $released ]] || fail "$path@$version cannot be downloaded from the Go module proxy" "go mod download $path@$version"
    folder=$name.modules/$path
    mkdir -p "$folder"
    cp -r --no-preserve=mode "$released/." "$folder"
    cp -r "$kubernetes/vendor/$path/." "$folder"
    { printf 'module %s\n' "$path"; grep '^go ' "$2/go.mod"; } > "$folder/go.mod"
    GOWORK=off go mod edit -require="$path@$version" -replace="$path=$folder" "$name.mod"
    printf '%s\n' "$path" >> "$name.modules/list"
  done < <(git -C "$kubernetes" diff "$(recorded "base.$VERSION.tree")" -- go.mod | sed -n 's/^+\t\([^ ]* v[^ ]*\).*/\1/p')
  sed 's/^package main$/package decision/' "$kubernetes/cmd/kube-scheduler/modules.go" > "$name.modules/modules.go"
  printf 'func init() { addCarried = carried.AddTo }\n' >> "$name.modules/modules.go"
  {
    printf '"%s": "%s"\n' "$inprocess/decision/modules.go" "$name.modules/modules.go"
    # The trees of `make bench NAME=patches` have no records yet.
    if [[ -e $kubernetes/pkg/scheduler/records.go ]]; then
      printf '"%s": "%s"\n' "$inprocess/decision/whatif.go" "$inprocess/decision/testdata/whatif.go"
      [[ ! -d $name.modules/sigs.k8s.io/scheduler-plugins ]] || for file in "$inprocess"/*/testdata/*_test.go; do
        printf '"%s": "%s"\n' "${file%/testdata/*}/${file##*/}" "$file"
      done
    fi
  } | paste -sd, | sed 's/.*/{"Replace": {&}}/' > "$name.overlay.json"
}

# test_with NAME MODULE ARGUMENT…: go test in MODULE, with what use_tree made.
test_with() {
  GOWORK=off GOFLAGS=-trimpath go test -C "$2" -vet=off -mod=mod -modfile="$1.mod" -overlay="$1.overlay.json" "${@:3}"
}

# compile PACKAGE NAME MODULE [TREE]: NAME.test, the test package PACKAGE of the Go module MODULE; TREE as for use_tree.
compile() {
  use_tree "$2" "$3" "${4:-}"
  test_with "$2" "$3" -c -o "$2.test" "$1"
}

# compile_both PACKAGE FOLDER [MODULE STOCK]: FOLDER/stock.test and FOLDER/fork.test. PACKAGE is one of test/inprocess;
# or one of upstream's that MODULE can compile, with the folder STOCK for stock Kubernetes.
compile_both() {
  mkdir -p "$2"
  compile "$1" "$2/stock" "${3:-$ROOT/test/inprocess}" "${4:-}"
  compile "$1" "$2/fork" "${3:-$ROOT/test/inprocess}" "$TREE"
}
