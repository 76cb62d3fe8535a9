# SPDX-License-Identifier: Apache-2.0
# Your own kube-scheduler for Kubernetes 1.23. The three things that people do:
#
#   make image      from a clean checkout to a control-plane image
#   make test       prove it, on real parts
#   make run        see it place pods, on this machine
#
# `make help` lists the rest. Every target calls scripts under scripts/ or test/, and each step of the build is skipped
# when nothing that it depends on has changed.

.DEFAULT_GOAL := help
SHELL := /bin/bash

# What is built. Empty means: what upstream.version pins.
export UPSTREAM ?=
# Which plugins of other projects come into the image: those of modules.yaml, or none.
export MODULES ?=
export MODULE ?=
export PLUGINS ?=
# Where the source comes from: git, module (Go modules, no code host needed), or auto.
export SOURCE ?= auto
export KUBERNETES_GIT_URL ?= https://github.com/kubernetes/kubernetes.git
# The machine's own architecture; amd64 and arm64 can be built anywhere.
export ARCH ?= $(shell uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/')
# Passed on to upstream's build.
export GOFLAGS ?=
# What stands between the + and the hash in the version.
export VERSION_SUFFIX ?= fork
# Your registry and project, registry.example.com/team: one more name in the archive, and where `make push` goes.
export REGISTRY ?=
# How many nodes there are: 5 for `make run`, 500 for `make bench-cluster`, 5,000 for `make bench` and
# `make measure-plugins`; and what else `make run` shows.
export NODES ?=
export PODS ?= 10
export CONFIG ?= manifests/config/my-scheduler.yaml
# Files with pods, and nodes, of your own for it; a text whose lines of the scheduler's log are shown; and the
# configuration of a scheduler-extender to start, with which of its profiles.
export MANIFEST ?=
export LOG ?=
export EXTENDER ?=
export EXTENDER_PROFILE ?=
# How long pods may take to be placed; yes: leave everything running until Ctrl-C.
export TIMEOUT ?= 1m
export KEEP ?=
# What `make test` runs: a target of test/steps.mk.
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

.PHONY: release
release: image ## Build the release bundle: image, swap tool, kubectl plugin, manifests, patches, pages, licences, SBOM
	@ARCHES=$(ARCH) bash scripts/release.sh

.PHONY: quick-release-images
quick-release-images: tree ## Build the image with upstream's own target, in Docker
	@bash scripts/quick-release-images.sh

.PHONY: base-images
base-images: binary ## Build Docker base images from Debian packages, where no registry can be reached
	@bash scripts/base-images.sh

##@ The steps, one by one

.PHONY: source
source: ## Put Kubernetes' source at the pinned tag into _output/kubernetes
	@bash scripts/source.sh

.PHONY: patches
patches: ## Make the plugin patches from plugins/
	@bash scripts/update-patches.sh

.PHONY: tree
tree: source patches ## Apply the modules that are carried, and the patches, to the source
	@bash scripts/apply-patches.sh

.PHONY: binary
binary: tree ## Compile kube-scheduler with upstream's make
	@bash scripts/build-binary.sh

##@ Develop

.PHONY: run
run: ## Start a local control plane, and show where pods go (NODES= PODS= CONFIG= MANIFEST= LOG= EXTENDER= KEEP=yes)
	@bash scripts/run.sh

.PHONY: new-plugin
new-plugin: ## Begin a plugin: make new-plugin NAME=MyPlugin POINTS=filter,score
	@bash scripts/new-plugin.sh

.PHONY: remove-plugin
remove-plugin: source ## Remove a plugin, its patch and its entry in the registry: make remove-plugin NAME=MyPlugin
	@bash scripts/remove-plugin.sh

.PHONY: add-module
add-module: ## Carry plugins of another project: make add-module MODULE=path@version PLUGINS=A,B
	@bash scripts/add-module.sh

.PHONY: remove-module
remove-module: ## Carry them no longer: make remove-module MODULE=path
	@bash scripts/remove-module.sh

.PHONY: export-patch
export-patch: ## Write the commit that _output/kubernetes is at as a patch: PATCH=0400-what-it-does.patch
	@bash scripts/export-patch.sh

.PHONY: export-modules
export-modules: tree ## Write what modules.yaml adds to the tree as a patch for any clone: _output/0000-modules.patch
	@bash scripts/export-modules.sh

.PHONY: update
update: ## Bring all generated files up to date
	@bash scripts/update-generated.sh
	@bash scripts/update-patches.sh
	@bash scripts/update-patches-readme.sh

##@ Prove

.PHONY: test
test: ## Test what a newcomer needs to know, without root (TESTS=all: everything, as CI does; or a step of test/steps.mk)
	@TESTS=$(TESTS) bash test/test.sh

.PHONY: test-bare
test-bare: ## Run make image and make test in a Debian that holds Go, git, make and bash only (root, for mmdebstrap)
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

.PHONY: compare-sources
compare-sources: ## Fetch the source both ways, and compare the trees file by file
	@bash scripts/compare-sources.sh

.PHONY: measure
measure: ## Time each step, and the edit-to-image loop
	@bash scripts/measure.sh

.PHONY: oracle
oracle: tree ## Compare placements with stock Kubernetes' on generated clusters (SCENARIOS= DURATION=1h FIRST=)
	@bash scripts/oracle.sh

.PHONY: bench
bench: tree ## Compare what a decision costs in stock Kubernetes and here (NODES= SHAPES= PARALLELISM= DECISIONS= ROUNDS=)
	@bash scripts/bench.sh

.PHONY: bench-patches
bench-patches: tree ## Measure what each speed patch gains (NODES= SHAPES= PARALLELISM= DECISIONS= ROUNDS=)
	@bash scripts/bench-patches.sh

.PHONY: bench-records
bench-records: tree ## Measure what the records of decisions cost (NODES= SHAPES= PARALLELISM= DECISIONS= ROUNDS=)
	@bash scripts/bench-records.sh

.PHONY: bench-memory
bench-memory: tree ## Compare the memory at rest in stock Kubernetes and here (NODES=)
	@bash scripts/bench-memory.sh

.PHONY: bench-cluster
bench-cluster: binary ## Compare them end to end, with upstream's scheduler_perf (NODES=500,5000 WORKLOADS= ROUNDS=)
	@bash scripts/bench-cluster.sh

.PHONY: measure-plugins
measure-plugins: tree ## Time a decision at 5,000 nodes, with each plugin and without
	@bash scripts/measure-plugins.sh

##@ Other

.PHONY: clean
clean: ## Delete what was made (refuses if _output/kubernetes holds edits)
	@bash scripts/clean.sh

.PHONY: help
help: ## Show this list
	@awk 'BEGIN { FS = ":.*## " } /^##@ / { printf "\n%s\n", substr($$0, 5) } /^[a-z0-9-]+:.*## / { printf "  %-22s %s\n", $$1, $$2 }' Makefile
