# The menu. Each dish is cooked by `cargo xtask`; `make` alone lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Outside the tree and keyed by the toolchain, so that a fresh clone finds its dependencies built.
CACHE_HOME := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)
CHANNEL := $(shell sed -n 's/^channel *= *"\(.*\)"/\1/p' rust-toolchain.toml)
export CARGO_TARGET_DIR ?= $(CACHE_HOME)/plexus/target-$(CHANNEL)

XTASK := cargo xtask

.PHONY: help setup build demo test test-lab test-long lint fmt tidy docs bench-cni bench-embedded clean \
	kube-tools kube-up kube-down test-kube bench-kube soak

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what is missing (Debian packages, toolchain, CNI tools); quick when nothing is
	@tools/bootstrap tools/packages.txt
	@$(XTASK) setup

build: ## Release binaries: plexus, and the static plexus-cni
	@tools/bootstrap
	@$(XTASK) build

demo: ## Three virtual nodes, pods on several networks, one killed agent; under 60 s once built
	@tools/bootstrap
	@$(XTASK) demo

test: setup ## Unit, kernel, CNI, crash, lab and interoperability tests, some at a time
	@$(XTASK) test

test-lab: setup ## Labs, the demonstration, what goes wrong on them; at most 15 minutes after kube-tools
	@$(XTASK) test-lab

test-long: setup ## All three tiers, and what is left out per commit: every place to die
	@failed=; for tier in test test-lab test-kube; do \
		PLEXUS_TEST_LONG=1 NODES="$(or $(NODES),2)" KUBE="$(KUBE)" $(XTASK) $$tier || failed+=" $$tier"; \
	done; [ -z "$$failed" ] || { echo "failed:$$failed" >&2; exit 1; }

lint: setup ## rustfmt, clippy, cargo-deny, tidy
	@$(XTASK) lint

fmt: ## Format the Rust code
	@tools/bootstrap
	@cargo fmt --all -- crates/api/src/cni/provider/*.rs crates/core/src/plan/provider/*.rs

tidy: ## Room dependencies, file sizes, words that must not land, broken links
	@tools/bootstrap
	@$(XTASK) tidy

docs: ## The pages of docs/ as a book in HTML; compiles mdBook the first time
	@tools/bootstrap
	@$(XTASK) docs

bench-cni: setup ## Against the reference plugins, interleaved; writes bench/results/cni.json
	@$(XTASK) bench-cni

bench-embedded: setup ## The embedded API against a real one; writes bench/results/embedded.json
	@$(XTASK) bench-embedded

kube-tools: setup ## The components of a real cluster, once per machine; a quarter of an hour
	@$(XTASK) kube-tools

kube-up: setup ## A real cluster with Plexus: NODES=2, KUBE="options of kubelab up"
	@NODES="$(or $(NODES),2)" KUBE="$(KUBE)" $(XTASK) kube-up

kube-down: setup ## Remove that cluster; nothing stays behind
	@$(XTASK) kube-down

test-kube: setup ## The end-to-end tests on a cluster of their own; at most 20 minutes
	@NODES="$(or $(NODES),2)" KUBE="$(KUBE)" $(XTASK) test-kube

bench-kube: setup ## On a cluster, against Multus; writes bench/results/kube.json
	@NODES="$(or $(NODES),2)" KUBE="$(KUBE)" $(XTASK) bench-kube

soak: setup ## Churn, restarts and faults on a cluster for an hour
	@NODES="$(or $(NODES),2)" KUBE="$(KUBE)" $(XTASK) soak

clean: ## Forget this toolchain's build output (the tools stay)
	rm -rf "$(CARGO_TARGET_DIR)"
