#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every check that needs no build of Kubernetes, remembers what failed, and prints one verdict.
#
# Inputs: the whole checkout; CI=true makes a check that cannot run a failure. Exit: 0 all passed; 1 some failed.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

cd "$ROOT"
use_pinned_go
# What is checked is compiled first. As tools and servers are, so that packages that both need are compiled once.
export GOWORK=off GOFLAGS=-trimpath CGO_ENABLED=0
failed=() unchecked=()

check() {
  local name=$1
  shift
  if "$@" > "$OUTPUT/.verify.log" 2>&1; then
    say "ok      $name"
  else
    say "FAILED  $name"
    sed 's/^/        /' "$OUTPUT/.verify.log"
    failed+=("$name")
  fi
  rm -f "$OUTPUT/.verify.log"
}

formatted() {
  local files
  files=$(gofmt -l "$ROOT"/{patches,plugins,build,test})
  [[ -z $files ]] || { printf 'gofmt -w %s\n' "$files"; return 1; }
}

static() { (cd "$ROOT/$1" && "$OUTPUT/tools/staticcheck" ./...); }

workspace() { (cd "$ROOT" && GOWORK=$ROOT/go.work go list ./plugins/... ./build/... ./test/...); }

# Every plugin is registered, and every script that is named somewhere is there.
registered() {
  local folder missing=0 registry=$SERIES_DIR/0310-registry-add-our-plugins/change.patch
  for folder in "$ROOT"/plugins/*/; do
    grep -qs '^const Name = ' "$folder"*.go || continue
    grep -q "^+.*/plugins/$(basename "$folder")\"$" "$registry" || { printf 'plugins/%s is not in the registry patch\n' "$(basename "$folder")"; missing=1; }
  done
  return "$missing"
}

named() {
  local name missing=0
  while IFS= read -r name; do
    [[ -e $ROOT/$name ]] || { printf '%s does not exist, but is referred to\n' "$name"; missing=1; }
  done < <(
    cd "$ROOT"
    grep -ohE '\b(scripts|test)/[a-z0-9-]+\.sh' Makefile .ci/run scripts/*.sh docs/*.md README.md | sort -u
  )
  return "$missing"
}

# What goes with a release of Kubernetes names it where its own tools look, too.
pinned_release() {
  local module missing=0
  for module in plugins build/extender build/pins/kubernetes test/inprocess; do
    grep -q "^	k8s.io/kubernetes $KUBERNETES_VERSION\( // indirect\)\?$" "$ROOT/$module/go.mod" || { printf '%s/go.mod does not require k8s.io/kubernetes %s\n' "$module" "$KUBERNETES_VERSION"; missing=1; }
  done
  return "$missing"
}

# Every source file names its licence; generated ones have upstream's header.
licensed() {
  local without
  without=$(git ls-files -z --cached --others --exclude-standard -- '*.go' '*.sh' '*.mk' Makefile .ci/run |
    xargs -0 grep -L -e 'SPDX-License-Identifier: Apache-2.0' -e 'Licensed under the Apache License') || true
  [[ -z $without ]] || { printf 'no SPDX-License-Identifier:\n%s\n' "$without"; return 1; }
}

check 'gofmt' formatted
check 'licences of source files' licensed
check 'the release that modules require' pinned_release
check 'plugins are registered' registered
check 'what is named is there' named
check 'links and configurations on pages' go test -C "$ROOT/test" -count=1 -vet=off ./docs
modules=(plugins build build/extender test test/inprocess)
for module in "${modules[@]}"; do
  check "go vet $module" go vet -C "$ROOT/$module" ./...
done
build_server staticcheck
for module in "${modules[@]}"; do
  check "staticcheck $module" static "$module"
done
pins=(build/pins/*)
# These need more of the modules than programs are made of, which make fetch-all does not pack.
if [[ $(go env GOPROXY) == file://* ]]; then
  unchecked+=('go mod tidy build/pins, go.work (GOPROXY is a directory)')
  pins=()
fi
for module in "${modules[@]}" "${pins[@]}"; do
  # Today's go mod tidy would rewrite more of a go 1.16 file than it needs to, and download every cloud's client for
  # Prometheus. It cannot do build/extender, where tests of a raised gRPC and of etcd need two OpenTelemetries. A sum that
  # one of these lacks is seen when it is built.
  [[ $module == plugins || $module == build/extender || $module == build/pins/prometheus ]] || check "go mod tidy $module" go -C "$ROOT/$module" mod tidy -diff
done
((${#pins[@]} == 0)) || check 'go.work' workspace
if command -v shellcheck > /dev/null; then
  check 'shellcheck' shellcheck "$ROOT"/scripts/*.sh "$ROOT"/test/*.sh "$ROOT"/.ci/run "$ROOT"/test/e2e/kubeadmnode/boot/{boot.sh,crictl}
elif [[ ${CI:-} == true ]]; then
  check 'shellcheck' need shellcheck
else
  unchecked+=('shellcheck (not installed; apt-get install shellcheck)')
fi
build=$(build_tool kube-scheduler-build)
check 'patch messages' "$build" patches lint "$SERIES_DIR" "$ROOT/plugins"
check 'generated files of patches/' bash "$ROOT/scripts/update-patches.sh" --check
check 'docs/performance.svg' bash "$ROOT/scripts/update-chart.sh" --check
check 'generated files' bash "$ROOT/scripts/update-generated.sh" --check

for name in "${unchecked[@]}"; do say "NOT CHECKED  $name"; done
((${#failed[@]} == 0)) || fail "verify: ${#failed[@]} checks failed: $(IFS=,; printf '%s' "${failed[*]}")" "fix the listed problems; make update updates generated files"
say "verify: all checks passed"
