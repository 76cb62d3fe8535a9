# SPDX-License-Identifier: Apache-2.0
# The steps of the tests, and the steps that each of them needs first. test.sh runs them and sets the variables: make runs
# several at a time, because some compute while others wait, and prints the output of each of them in one piece.

# What a person runs to know that it works here. Longest first, as below.
.PHONY: test
test: unit patched-tree oracle monitoring

# What CI runs, as root, on Debian.
.PHONY: all
all: e2e node-load integration newer-servers scenarios applies scripts vulncheck workloads gpus without-generators carried artifacts run full-disk add-module verify test

# Not run each time: the other architecture, the traps for the oracle, the series on every release, everything
# without a network, the tutorial for v1.23.1, a node with Docker, ten minutes of a bad day and of a soak with 500 nodes,
# a production cluster with ten seeds, attacks on the secure port, the image of make control, that of the bundle once more,
# the image that upstream's own target makes in Docker, upgrades over several API servers of later releases, histories of a busy
# cluster.
.PHONY: long
long: oci oracle-traps applies-all offline tutorial rebuild-check dockershim bad-day soak openb attacks control docker newer-servers histories

step = @bash test/step.sh $@
# A busy machine takes longer than go test's own ten minutes for some packages.
go-test = go test -C $(1) -count=1 -trimpath -vet=off -timeout 30m
go-test-race = CGO_ENABLED=$(if $(RACE),1,0) $(go-test) $(RACE)

# Programs that steps need. CI builds them first, and then runs the steps with these as old files: make would else start
# all steps that need none of them before the longest.
.PHONY: built image tools servers newer-apiservers controller-manager node-servers metrics-server node-exporter descheduler kube-state-metrics
built: node-servers newer-apiservers metrics-server node-exporter descheduler
image: ; $(step) make --no-print-directory release
tools: ; $(step) bash -c 'source scripts/environment.sh && build_server etcd kwok prometheus promtool'
servers: image tools ; $(step) bash -c 'source scripts/environment.sh && build_server kube-apiserver kube-scheduler kubectl && build_tool scheduler-extender extender'
controller-manager: servers ; $(step) bash -c 'source scripts/environment.sh && build_server kube-controller-manager'
node-servers: controller-manager ; $(step) bash -c 'source scripts/environment.sh && build_server kubelet kubeadm'
newer-apiservers: servers ; $(step) bash -c 'source scripts/environment.sh && build_newer_apiservers $$NEWER_APISERVERS'
metrics-server: tools ; $(step) bash -c 'source scripts/environment.sh && build_server metrics-server'
node-exporter: tools ; $(step) bash -c 'source scripts/environment.sh && build_server node_exporter'
descheduler: tools ; $(step) bash -c 'source scripts/environment.sh && build_server descheduler'
kube-state-metrics: tools ; $(step) bash -c 'source scripts/environment.sh && build_server kube-state-metrics'

# verify, and unit tests without the race detector, come after the tools, because two at once would compile the same
# packages twice. Unit tests do not read the image; artifacts does.
.PHONY: unit verify scripts workloads gpus openb
unit: $(if $(RACE),,tools) ; $(step) bash -e -c '\
  $(call go-test-race,plugins) ./... && $(call go-test-race,build/extender) ./... && \
  $(call go-test-race,test/inprocess) ./benchmark ./plugins && \
  $(call go-test,build) ./...'
verify: tools ; $(step) bash scripts/verify.sh
scripts: ; $(step) $(call go-test,test) ./scripts
workloads: ; $(step) $(call go-test,test/inprocess) -v ./scenarios ./overcommit
gpus: image ; $(step) env OPENB="$(TRACES)" bash test/openb.sh -run TestOneSeed
openb: image ; $(step) env OPENB="$(TRACES)" bash test/openb.sh -skip TestOneSeed

cluster-tests = $(patsubst test/%/,./%,$(wildcard test/integration/*/))
.PHONY: vulncheck without-generators patched-tree carried oracle artifacts run monitoring attacks newer-servers integration histories node-load bad-day soak scenarios
without-generators: image ; $(step) bash scripts/build-binary.sh --check
patched-tree: image ; $(step) bash test/patched-tree.sh
carried: image ; $(step) bash test/carried.sh
vulncheck: image ; $(step) bash -c '[[ -z $$VULNDB ]] || exec bash scripts/vulncheck.sh'
# Without the race detector, which reports that upstream's queue changes a pod that a failed cycle still reads.
oracle: image ; $(step) bash -e -c '$(call go-test,test/inprocess) ./oracle && bash scripts/oracle.sh'
artifacts: servers ; $(step) $(call go-test,test) -skip TestLayout ./artifacts/...
run: servers ; $(step) make --no-print-directory run CONFIG=manifests/config/extender.yaml NODES=3 PODS=3
# Pods are bound on a real API server by loads that a real Prometheus measured.
monitoring: servers ; $(step) $(call go-test,test) -v ./integration/monitoring
attacks: servers ; $(step) $(call go-test,test) -v ./integration/attacks
newer-servers: newer-apiservers ; $(step) $(call go-test,test) -v -timeout 2h ./integration/newerservers
integration: servers ; $(step) $(call go-test,test) -p=1 -v -skip TestProof $(filter-out %/attacks %/badday %/control %/monitoring %/newerservers %/nodeload %/scenarios %/soak,$(cluster-tests))
# Three minutes of a busy cluster; DURATION=30m for more.
histories: servers controller-manager kube-state-metrics ; $(step) $(call go-test,test) -v -timeout 3h -run TestProof ./integration/history -duration=$${DURATION:-3m}
node-load: servers metrics-server node-exporter ; $(step) $(call go-test,test) -parallel 2 -v ./integration/nodeload
bad-day: servers controller-manager ; $(step) $(call go-test,test) -v -timeout 3h ./integration/badday -duration=$${DURATION:-10m}
soak: servers ; $(step) $(call go-test,test) -v -timeout 3h ./integration/soak -duration=$${DURATION:-10m}
scenarios: servers controller-manager descheduler ; $(step) $(call go-test,test) -v ./integration/scenarios

.PHONY: docker e2e dockershim applies applies-all control full-disk oracle-traps add-module
docker: image ; $(step) bash test/quick-release-images.sh
e2e: servers node-servers ; $(step) bash test/e2e.sh
# After e2e, if that runs too: they use the same directory.
dockershim: servers node-servers $(filter e2e all,$(MAKECMDGOALS)) ; $(step) bash test/e2e.sh --docker
applies: image ; $(step) bash test/applies.sh
applies-all: image ; $(step) bash test/applies.sh --all
control: servers ; $(step) bash test/control.sh
full-disk: ; $(step) bash test/full-disk.sh
oracle-traps: image ; $(step) bash test/oracle-traps.sh
add-module: servers ; $(step) $(call go-test,test) -v ./addmodule

.PHONY: offline tutorial rebuild-check
# SHA256SUMS lists the bundles of this version only.
rebuild-check: image ; $(step) bash -c 'make --no-print-directory rebuild-check \
  BUNDLE="$$OUTPUT/release/$$(grep -o "kube-scheduler-[^ ]*-linux-$$ARCH.tar.gz" "$$OUTPUT/release/SHA256SUMS")"'
offline: image ; $(step) bash test/offline.sh
tutorial: ; $(step) bash test/tutorial.sh

.PHONY: oci
oci: image ; $(step) bash -c 'make --no-print-directory oci && $(call go-test,test) -run TestLayout ./artifacts'
