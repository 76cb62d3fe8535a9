# SPDX-License-Identifier: Apache-2.0
# The steps of the tests, and what each of them needs to be done before. test.sh runs them and sets the variables: make
# runs several at a time, because some compute while others wait, and prints what each of them prints in one piece.

# Longest first.
.PHONY: test
test: node-load integration patched-tree unit verify scripts artifacts run

# As root, on Debian.
.PHONY: all
all: docker e2e test applies full-disk

# What takes long and seldom finds anything: the other architecture.
.PHONY: long
long: oci

step = @bash test/step.sh $@
go-test = go test -count=1 -trimpath -vet=off
go-test-race = CGO_ENABLED=$(if $(RACE),1,0) $(go-test) $(RACE)

.PHONY: image tools servers node-servers
image: ; $(step) make --no-print-directory release
tools: ; $(step) bash -c 'source scripts/environment.sh && build_server kube-scheduler kubectl etcd kwok prometheus promtool'
servers: image tools ; $(step) bash -c 'source scripts/environment.sh && build_server kube-apiserver && build_tool scheduler-extender extender'
node-servers: tools ; $(step) bash -c 'source scripts/environment.sh && build_server kube-controller-manager kubelet kubeadm'

# Verify comes after the tools because it compiles what they are made of: two at once would both do so.
.PHONY: unit verify scripts
unit: ; $(step) bash -e -c '$(go-test-race) -C plugins ./... && $(go-test-race) -C build/extender ./... && \
  $(go-test-race) -C test/inprocess ./... && $(go-test) -C build ./...'
verify: tools ; $(step) bash scripts/verify.sh
scripts: ; $(step) $(go-test) -C test ./scripts

cluster-tests = $(patsubst test/%/,./%,$(wildcard test/integration/*/))
.PHONY: patched-tree artifacts run integration node-load
patched-tree: image ; $(step) bash test/patched-tree.sh
artifacts: servers ; $(step) $(go-test) -C test -skip TestLayout ./artifacts/...
run: servers ; $(step) make --no-print-directory run CONFIG=manifests/config/extender.yaml NODES=3 PODS=3
integration: servers ; $(step) $(go-test) -C test -p=1 -v $(filter-out %/nodeload,$(cluster-tests))
node-load: servers ; $(step) $(go-test) -C test -parallel 2 -v ./integration/nodeload

.PHONY: docker e2e applies full-disk
docker: image ; $(step) bash test/quick-release-images.sh
e2e: servers node-servers ; $(step) bash test/e2e.sh
applies: ; $(step) bash test/applies.sh
full-disk: ; $(step) bash test/full-disk.sh

.PHONY: oci
oci: image ; $(step) bash -c 'make --no-print-directory oci && $(go-test) -C test -run TestLayout ./artifacts'
