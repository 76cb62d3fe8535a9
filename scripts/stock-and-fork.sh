# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the scripts share that test and measure the patched tree as a Go module, or compare stock Kubernetes with it: one
# test package, compiled with each, with the same Go and flags; and the table of what both measured. Sourced after
# environment.sh.

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
    # The trees of bench-patches have no records yet.
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

# measure_decisions NAME: NAME.test, a binary of test/inprocess/benchmark, once; what it measured goes to the end of NAME.txt.
# The inputs of bench.sh say what.
measure_decisions() {
  "$1.test" -test.run='^$' -test.bench="^Benchmark${BENCHMARK:-Decision}\$/^shape=.*($SHAPES)" -test.benchtime="${DECISIONS}x" \
    -test.timeout=0 -nodes="$NODES" -parallelism="$PARALLELISM" > "$1.log" 2>&1 ||
    { cat "$1.log" >&2; fail "the benchmark of ${1##*/} failed" "read the output above"; }
  grep -E '^(Benchmark|goos|goarch|pkg|cpu)' "$1.log" >> "$1.txt"
}

# medians STOCK FORK COLUMN…: rows of a table in Markdown, one for each benchmark of the two files, in Go's format. A
# COLUMN is a unit, what its values are divided by, and how many decimals to print; and ratio, to print that as well.
medians() {
  local stock=$1 fork=$2
  shift 2
  awk -v columns="$(IFS=';'; printf '%s' "$*")" '
    FNR == 1 { side++ }
    /^Benchmark/ {
      name = $1
      sub(/^Benchmark[^\/]*\/([a-z]+=)?/, "", name); sub(/-[0-9]+$/, "", name); gsub(/\/[a-z]*=/, ", ", name)
      if (!(name in seen)) { seen[name] = 1; order[++names] = name }
      n = ++count[side, name]
      for (i = 3; i < NF; i += 2) value[side, name, $(i + 1), n] = $i
    }
    function median(side, name, unit,    n, i, j, v, swap) {
      n = count[side, name]
      for (i = 1; i <= n; i++) {
        v[i] = value[side, name, unit, i]
        for (j = i; j > 1 && v[j] < v[j - 1]; j--) { swap = v[j]; v[j] = v[j - 1]; v[j - 1] = swap }
      }
      return (v[int((n + 1) / 2)] + v[int(n / 2) + 1]) / 2
    }
    END {
      split(columns, column, ";")
      for (k = 1; k <= names; k++) {
        printf "| %s |", order[k]
        for (c = 1; c in column; c++) {
          split(column[c], part, " ")
          stock = median(1, order[k], part[1]); fork = median(2, order[k], part[1])
          printf " %.*f | %.*f |", part[3], stock / part[2], part[3], fork / part[2]
          if (part[4]) { if (fork) printf " %.2f |", stock / fork; else printf " – |" }
        }
        printf "\n"
      }
    }' "$stock" "$fork"
}
