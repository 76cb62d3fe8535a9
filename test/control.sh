#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests that what `make control` builds is stock Kubernetes: upstream's Go files and packages, flags, metrics, default
# configuration and placements.
#
# Inputs: the source; the stock scheduler and the servers of the local control plane. Exit: 0 all passed; 1 not.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/environment.sh"

bash "$ROOT/scripts/control.sh"
use_pinned_go
base=$(recorded "base.$VERSION.tree") control=$OUTPUT/control work=$OUTPUT/control/test
rm -rf "$work"
mkdir -p "$work"
export GOWORK=off CGO_ENABLED=0 GOFLAGS=-trimpath CONTROL_SCHEDULER=$control/bin/linux/$HOST_ARCH/kube-scheduler

# The line with the run-time defaults of Go is the only one that a compiler reads.
changed=$(git -C "$control/kubernetes" diff --name-only "$base" -- '*.go' go.mod vendor)
[[ $changed == cmd/kube-scheduler/scheduler.go ]] || fail "the control's code differs from stock Kubernetes in: $changed" "git -C $control/kubernetes diff $base"
[[ $(git -C "$control/kubernetes" diff -U0 "$base" -- "$changed" | grep '^[-+][^-+]') == '+//go:debug default='* ]] ||
  fail "the control's code differs from stock Kubernetes" "git -C $control/kubernetes diff $base -- $changed"
for tree in "$OUTPUT/upstream/$VERSION" "$control/kubernetes"; do
  go list -C "$tree" -deps ./cmd/kube-scheduler > "$work/packages-$(basename "$tree")"
done
diff "$work/packages-$VERSION" "$work/packages-kubernetes" || fail "the control links other packages than stock Kubernetes" "read the list above"
say "control: $(wc -l < "$work/packages-kubernetes") packages, those of stock Kubernetes"
[[ $("$CONTROL_SCHEDULER" --version) == "Kubernetes $VERSION+control."* ]] || fail "the control's version is $("$CONTROL_SCHEDULER" --version)" "make control"

go test -C "$ROOT/test" -count=1 -vet=off -v ./integration/control

# As in oracle-traps.sh: only the module with the plugins is ours.
cp "$ROOT/test/inprocess/go.mod" "$work/control.mod"
cp "$ROOT/test/inprocess/go.sum" "$work/control.sum"
go mod edit -replace "k8s.io/kubernetes=$control/kubernetes" "$work/control.mod"
go test -C "$ROOT/test/inprocess" -vet=off -c -o "$work/stock.test" ./oracle
go test -C "$ROOT/test/inprocess" -vet=off -modfile="$work/control.mod" -mod=mod -c -o "$work/control.test" ./oracle
cd "$work"
./stock.test -test.v -test.timeout=0 -test.run='^TestAgainst$' -against="$work/control.test" -count="${SCENARIOS:-100}"
