#!/usr/bin/env bash
# Runs every check and test that needs no root, on real parts; builds what they need first. Ends with go test's own lines.
#
# Inputs: the whole checkout; CI=true makes a check that cannot run a failure. Exit: 0 all passed; 1 the first that failed.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/tree.sh"
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

step 'checks'
bash "$ROOT/scripts/verify.sh"

use_pinned_go
race=()
if command -v "$(go env CC)" > /dev/null; then race=(-race); else say 'NOT CHECKED: data races (no C compiler; apt-get install gcc libc6-dev)'; fi
step 'unit tests of plugins/, against pristine upstream'
# Without vet, here and below: go vet has just made these checks and more, and go test would make them anew for each package
# that is imported. With the flags of the other tests for data races, which import mostly the same.
NAME='' bash "$ROOT/scripts/test-plugins.sh" -trimpath -vet=off "${race[@]}" | { grep --line-buffered -v 'no test files' || true; }

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
# Compiled as the tools are, so that packages that both need are compiled once; only the race detector takes others, and cgo.
export GOFLAGS='-trimpath -vet=off' CGO_ENABLED=0
mapfile -t packages < <(go list ./... | grep -vE '/(artifacts|configurations|controlplane|endtoend|manifests|monitoring|kubeadmnode|e2e|schedulers|validateconfig)$')
# Never from the cache: it does not see that a script has changed.
go test -count=1 "${packages[@]}"
CGO_ENABLED=${race:+1} go test -count=1 "${race[@]}" ./controlplane
CGO_ENABLED=${race:+1} go test -C extender -count=1 "${race[@]}" .

step 'what was made'
OUTPUT=$OUTPUT go test -count=1 ./artifacts
KUBECTL=$OUTPUT/bin/linux/$HOST_ARCH/kubectl go test -count=1 ./manifests

step 'what is said of a wrong configuration'
export KUBE_SCHEDULER=$OUTPUT/bin/linux/$HOST_ARCH/kube-scheduler KUBE_APISERVER=$OUTPUT/bin/linux/$HOST_ARCH/kube-apiserver ETCD=$etcd KWOK=$kwok
go test -count=1 ./validateconfig

step 'what the second scheduler may do, and did'
KUBECTL=$OUTPUT/bin/linux/$HOST_ARCH/kubectl SECOND_SCHEDULER=$ROOT/manifests/second-scheduler go test -count=1 -v ./leastprivilege/endtoend

step 'every configuration, as make run shows it'
SCHEDULER_EXTENDER=$(build_tool scheduler-extender extender)
export SCHEDULER_EXTENDER
go test -count=1 ./configurations
# Once through make itself.
make -C "$ROOT" --no-print-directory run GOFLAGS= CONFIG=manifests/config/extender.yaml NODES=3 PODS=3

step 'three schedulers at once, and plugins beside a stock one'
STOCK_SCHEDULER=$(build_server kube-scheduler k8s.io/kubernetes/cmd/kube-scheduler)
export STOCK_SCHEDULER
go test -count=1 -v ./schedulers
go test -count=1 ./extenders/endtoend

step 'alerts and dashboard, on what the scheduler measures'
go test -count=1 ./monitoring ./monitoring/endtoend

step 'NodeLoad, with a real Prometheus'
# Both wait for what a Prometheus measures, for minutes, and compute little.
at_once go test -count=1 -v ./nodeload/endtoend -- go test -C extender -count=1 -v ./loadtrace

step 'pods bound on a local control plane, by both profiles'
SCHEDULER_CONFIG=$ROOT/manifests/config/my-scheduler.yaml EXAMPLE_POD=$ROOT/manifests/examples/nginx-pod.yaml \
  go test -count=1 ./controlplane/endtoend
