# SPDX-License-Identifier: Apache-2.0
# Your own kube-scheduler for Kubernetes 1.23. The three main targets:
#
#   make image      build the control-plane image
#   make run        watch it place pods on this machine
#   make test       check that it works here
#
# `make help` lists all targets. Every target calls scripts under scripts/ or test/. Build steps are skipped while their
# inputs are unchanged.

.DEFAULT_GOAL := help
SHELL := /bin/bash

# The Kubernetes release. Empty means the one that upstream.version pins.
export UPSTREAM ?=
# Plugins of other projects in the image: those of modules.yaml, or none.
export MODULES ?=
export MODULE ?=
export PLUGINS ?=
# The source: git, module (Go modules, without a code host), or auto.
export SOURCE ?= auto
export KUBERNETES_GIT_URL ?= https://github.com/kubernetes/kubernetes.git
# The default is the machine's architecture; amd64 and arm64 can be built anywhere.
export ARCH ?= $(shell uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/')
# Passed to upstream's build.
export GOFLAGS ?=
# The part between the + and the hash in the version.
export VERSION_SUFFIX ?= fork
# For `make kubectl-plugin`: the address from which users get the archives, and the machines, such as "darwin/arm64".
export DOWNLOADS ?=
export PLATFORMS ?=
# Your registry and project, such as registry.example.com/team: another name in the archive, and the target of `make push`.
export REGISTRY ?=
# For `make release`: the file of an SSH key that signs it. For `make rebuild-check`: a release bundle.
export SIGN_KEY ?=
export BUNDLE ?=
# The number of nodes: by default 5 for `make run`, and for `make bench` as scripts/bench.sh has it; and the pods and the
# configuration of `make run`.
export NODES ?=
export PODS ?= 10
export CONFIG ?= manifests/config/my-scheduler.yaml
# For `make run`: files with your own pods and nodes; a text, to print the scheduler's log lines that contain it; and the
# configuration of a scheduler-extender to start, and its profile.
export MANIFEST ?=
export LOG ?=
export EXTENDER ?=
export EXTENDER_PROFILE ?=
# The time limit for placing pods; KEEP=yes leaves everything running until Ctrl-C.
export TIMEOUT ?= 1m
export KEEP ?=
# The target of test/steps.mk that `make test` runs.
TESTS ?= test

##@ The image

.PHONY: image
image: binary ## Build the image archive: _output/release-images/<arch>/kube-scheduler.tar
	@ARCHES=$(ARCH) bash scripts/build-image.sh

.PHONY: oci
oci: ## Build both architectures, and an OCI layout over them
	@$(MAKE) --no-print-directory binary ARCH=amd64
	@$(MAKE) --no-print-directory binary ARCH=arm64
	@ARCHES="amd64 arm64" bash scripts/build-image.sh --oci

.PHONY: push
push: oci ## Push both architectures to REGISTRY
	@bash scripts/push.sh

.PHONY: control
control: source ## Build stock Kubernetes in the same way, to compare with: _output/control/release-images/<arch>/kube-scheduler.tar
	@bash scripts/control.sh

.PHONY: extender-image
extender-image: binary ## Build the image archive of scheduler-extender: _output/release-images/<arch>/scheduler-extender.tar
	@ARCHES=$(ARCH) bash scripts/extender-image.sh

.PHONY: release
release: image extender-image simulate ## Build the release bundle: images, swap tool, kubectl plugin, simulator, manifests, patches, pages, licences, SBOM (SIGN_KEY=)
	@ARCHES=$(ARCH) bash scripts/release.sh

.PHONY: rebuild-check
rebuild-check: ## Build the image of a release bundle again, and compare the bytes: make rebuild-check BUNDLE=….tar.gz
	@bash scripts/rebuild-check.sh

.PHONY: kubectl-plugin
kubectl-plugin: ## Build kubectl-scheduling for macOS, Windows and Linux, and its krew manifest; DOWNLOADS=https://… is where users get it
	@bash scripts/kubectl-plugin.sh

.PHONY: quick-release-images
quick-release-images: tree ## Build the image with upstream's own target, in Docker
	@bash scripts/quick-release-images.sh

.PHONY: base-images
base-images: binary ## Build Docker base images from Debian packages, where no registry can be reached
	@bash scripts/base-images.sh

.PHONY: fetch-all
fetch-all: ## Download everything into _output/downloads.tar, for machines without a network
	@bash scripts/fetch-all.sh

##@ The steps, one by one

.PHONY: source
source: patches ## Put Kubernetes' source at the pinned tag into _output/kubernetes
	@bash scripts/source.sh

.PHONY: patches
patches: ## Write the series for git am: _output/patches/*.patch
	@bash scripts/make-patches.sh

.PHONY: tree
tree: source ## Apply modules.yaml and the patches to the source
	@bash scripts/apply-patches.sh

.PHONY: binary
binary: tree ## Compile kube-scheduler with upstream's make
	@bash scripts/build-binary.sh

.PHONY: simulate
simulate: tree ## Compile kube-scheduler-simulate, which schedules a snapshot or a trace in virtual time
	@bash scripts/build-binary.sh --simulate

##@ Develop

.PHONY: run
run: ## Start a local control plane, and show where pods are placed (NODES= PODS= CONFIG= MANIFEST= LOG= EXTENDER= KEEP=yes)
	@bash scripts/run.sh

.PHONY: new-plugin
new-plugin: ## Create a plugin: make new-plugin NAME=MyPlugin POINTS=filter,score
	@bash scripts/new-plugin.sh

.PHONY: remove-plugin
remove-plugin: source ## Remove a plugin, and its entry in the registry: make remove-plugin NAME=MyPlugin
	@bash scripts/remove-plugin.sh

.PHONY: add-module
add-module: ## Add plugins of another project: make add-module MODULE=path@version PLUGINS=A,B
	@bash scripts/add-module.sh

.PHONY: remove-module
remove-module: ## Remove plugins of another project: make remove-module MODULE=path
	@bash scripts/remove-module.sh

.PHONY: export-patch
export-patch: ## Write the current commit of _output/kubernetes as a folder of patches/: PATCH=0400-what-it-does
	@bash scripts/export-patch.sh

.PHONY: rebase-report
rebase-report: ## Print how each patch applies to another release: UPSTREAM=v1.23.4, or CHECKOUT=<a git checkout of any>
	@bash scripts/rebase-report.sh

.PHONY: update
update: ## Update all generated files
	@bash scripts/update-generated.sh
	@bash scripts/update-patches.sh
	@bash scripts/update-chart.sh

##@ Test

.PHONY: test
test: ## Test what a newcomer needs to know, without root (TESTS=all: everything, as CI does; or steps of test/steps.mk)
	@TESTS='$(TESTS)' bash test/test.sh

.PHONY: test-bare
test-bare: ## Run make image, run and test in a Debian with only Go, git, make and bash (root, for mmdebstrap)
	@bash test/bare.sh

.PHONY: e2e
e2e: ## Swap the scheduler of real kubeadm nodes, in namespaces of this machine (root)
	@bash test/e2e.sh

.PHONY: test-plugins
test-plugins: ## Test plugins/ against unpatched upstream (NAME=myplugin: only that one)
	@bash test/plugins.sh

.PHONY: verify
verify: ## Check without building: format, lint, generated files
	@bash scripts/verify.sh

.PHONY: vulncheck
vulncheck: tree ## Look for known vulnerabilities in the programs (VULNDB=file:///… a copy of the database; WRITE=yes: write the statements)
	@bash scripts/vulncheck.sh

.PHONY: compare-sources
compare-sources: patches ## Fetch the source from git and from modules, and compare the trees file by file
	@bash scripts/compare-sources.sh

.PHONY: measure
measure: ## Time each step, and the edit-to-image loop
	@bash scripts/measure.sh

.PHONY: oracle
oracle: tree ## Compare placements with stock Kubernetes' on generated clusters (SCENARIOS= DURATION=1h FIRST=)
	@bash scripts/oracle.sh

.PHONY: bench
bench: tree $(if $(filter cluster schedulers queue gangs soak,$(NAME)),binary) $(if $(filter gangs simulate,$(NAME)),simulate) ## Measure: NAME=decisions|patches|records|plugins|memory|cluster|schedulers|queue|gangs|simulate|soak (scripts/bench.sh has the variables)
	@bash scripts/bench.sh

##@ Other

.PHONY: clean
clean: ## Delete all build results (refused if _output/kubernetes has edits)
	@bash scripts/clean.sh

.PHONY: help
help: ## Show this list
	@awk 'BEGIN { FS = ":.*## " } /^##@ / { printf "\n%s\n", substr($$0, 5) } /^[a-z0-9-]+:.*## / { printf "  %-22s %s\n", $$1, $$2 }' Makefile
