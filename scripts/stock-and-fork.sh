# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the scripts share that compare stock Kubernetes with the patched tree: one test package, compiled with each, with
# the same Go and flags; and the table of what both measured. Sourced after environment.sh.

# compile PACKAGE NAME MODULE [TREE]: NAME.test, the test package PACKAGE of the Go module MODULE, with the patched
# Kubernetes in TREE, or with the Kubernetes that MODULE names.
compile() {
  cp "$3/go.mod" "$2.mod"
  cp "$3/go.sum" "$2.sum"
  if [[ -n ${4:-} ]]; then
    # A patched tree has the plugins in it, and is replaced as a whole; its staging modules are those that stock has.
    sed -i '/k8s.io\/kubernetes\/pkg\/scheduler\/framework\/plugins/d' "$2.mod"
    GOWORK=off go mod edit -replace "k8s.io/kubernetes=$4" "$2.mod"
  fi
  GOWORK=off GOFLAGS=-trimpath go test -C "$3" -vet=off -modfile="$2.mod" -mod=mod -c -o "$2.test" "$1"
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
  "$1.test" -test.run='^$' -test.bench="^BenchmarkDecision\$/^shape=.*($SHAPES)" -test.benchtime="${DECISIONS}x" \
    -test.timeout=0 -nodes="$NODES" -parallelism="$PARALLELISM" > "$1.log" 2>&1 ||
    { cat "$1.log" >&2; fail "the benchmark of ${1##*/} failed" "see above"; }
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
