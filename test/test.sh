#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every check and test that needs no root, on real parts; builds what they need first. Ends with go test's own lines.
#
# Inputs: the whole checkout; CI=true makes a check that cannot run a failure. Exit: 0 all passed; 1 the first that failed.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/tree.sh"
source "$(dirname "${BASH_SOURCE[0]}")/at-once.sh"

# Tests say what this checkout makes, not what somebody's settings make of it.
unset UPSTREAM VERSION_SUFFIX REGISTRY GOFLAGS CONFIG NODES PODS KEEP MANIFEST LOG EXTENDER EXTENDER_PROFILE
export ARCH=$HOST_ARCH ARCHES=$HOST_ARCH GOWORK=off

step() { say; say "== $1 ($((SECONDS / 60)) min $((SECONDS % 60)) s)"; }

for program in prometheus promtool; do
  command -v "$program" > /dev/null ||
    fail "$program, with which NodeLoad is tested, is not in PATH" "install Prometheus 2.42 or newer (Debian: apt-get install prometheus), then make test"
done
PROMETHEUS=$(command -v prometheus) PROMTOOL=$(command -v promtool)
export PROMETHEUS PROMTOOL

step 'checks, and tests that need nothing but Go'
bash "$ROOT/test/units.sh"

use_pinned_go
step 'the image'
bash "$ROOT/scripts/source.sh"
bash "$ROOT/scripts/apply-patches.sh"
for arch in amd64 arm64; do ARCH=$arch bash "$ROOT/scripts/build-binary.sh"; done
ARCHES='amd64 arm64' bash "$ROOT/scripts/build-image.sh" --oci
bash "$ROOT/scripts/build-binary.sh" cmd/kube-apiserver cmd/kubectl
bash "$ROOT/scripts/release.sh"
etcd=$(build_server etcd go.etcd.io/etcd/server/v3)
kwok=$(build_server kwok sigs.k8s.io/kwok/cmd/kwok)

step "the patched tree's own tests of the packages that the patches touch"
# Without vet: today's finds old faults in upstream's code, none of them ours to mend; ours was vetted above. Compiled as
# build-binary.sh has compiled the servers, so that what they have in common need not be.
mapfile -t plugins < <(cd "$ROOT/plugins" && printf './pkg/scheduler/framework/plugins/%s...\n' */)
(cd "$TREE" && env -i PATH="$PATH" HOME="$OUTPUT/home" TMPDIR="${TMPDIR:-/tmp}" LC_ALL=C TZ=UTC GOTOOLCHAIN=local GOENV=off CGO_ENABLED=0 \
  hack/run-in-gopath.sh go test -vet=off -trimpath -tags=selinux,notest ./cmd/kube-scheduler/... ./pkg/scheduler ./pkg/scheduler/apis/config/... ./pkg/scheduler/framework/plugins \
  "${plugins[@]}") |
  { grep --line-buffered -v 'no test files' || true; }
# Upstream's generators and tests must leave the tree as the patches made it.
refuse_edits

step 'unit tests of build/ and scenario tests of the scripts'
cd "$ROOT/build"
# Compiled as the tools are, so that packages that both need are compiled once.
export GOFLAGS='-trimpath -vet=off' CGO_ENABLED=0
mapfile -t packages < <(go list ./... | grep -vE '/(artifacts|configurations|endtoend|manifests|monitoring|kubeadmnode|e2e|observations|schedulers|supervisor|validateconfig)$')
# Never from the cache: it does not see that a script has changed.
go test -count=1 "${packages[@]}"

step 'what was made'
export KUBECTL=$OUTPUT/bin/linux/$HOST_ARCH/kubectl
OUTPUT=$OUTPUT go test -count=1 ./artifacts ./manifests ./monitoring

step 'make run'
make -C "$ROOT" --no-print-directory run GOFLAGS= CONFIG=manifests/config/extender.yaml NODES=3 PODS=3

step 'on local control planes: every configuration, several schedulers, the extender, NodeLoad with a real Prometheus'
SCHEDULER_EXTENDER=$(build_tool scheduler-extender extender)
STOCK_SCHEDULER=$(build_server kube-scheduler k8s.io/kubernetes/cmd/kube-scheduler)
export SCHEDULER_EXTENDER STOCK_SCHEDULER ETCD=$etcd KWOK=$kwok KUBE_APISERVER=$OUTPUT/bin/linux/$HOST_ARCH/kube-apiserver
export KUBE_SCHEDULER=$OUTPUT/bin/linux/$HOST_ARCH/kube-scheduler SECOND_SCHEDULER=$ROOT/manifests/second-scheduler
export SCHEDULER_CONFIG=$ROOT/manifests/config/my-scheduler.yaml EXAMPLE_POD=$ROOT/manifests/examples/nginx-pod.yaml
# They wait for what is started and measured, and compute little: two at a time. NodeLoad's take about as long as all others.
at_once bash -ec 'go test -count=1 -v ./nodeload/endtoend; go test -C extender -count=1 -v ./loadtrace' -- \
  go test -count=1 -p=1 -v ./validateconfig ./configurations ./leastprivilege/endtoend ./schedulers ./extenders/endtoend ./monitoring/endtoend ./controlplane/endtoend
