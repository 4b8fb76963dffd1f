# Every target does its own set-up: `setup` installs what is missing from the registries and does nothing the second time.
# `scripts/test --help` says what the checks are.

.PHONY: help ui browser demo demo-all test check bench lint format docs fuzz audit setup setup-tools setup-bench protocol picture clean

CARGO ?= cargo
# Outside the checkout, so that a fresh clone does not build them again.
TOOLS ?= $(HOME)/.cache/sayso/tools
export PATH := $(TOOLS)/bin:$(HOME)/.cargo/bin:$(PATH)

help:
	@echo 'make demo    the built-in agent with a scripted model; needs no terminal, key or network'
	@echo 'make demo-all  the same, then the main job on real files'
	@echo 'make test    format, lints, docs, dependencies, fuzz targets, all tests'
	@echo 'make check   format, lints and tests of the crates that changed, in two minutes'
	@echo 'make bench   speed and memory beside the peers, as ratios'
	@echo 'make lint    formats and lints alone'
	@echo 'make ui      the web app, which the next build of the binary embeds'

demo: setup ui
	$(CARGO) build --locked --profile demo --package sayso
	target/demo/sayso demo --auto

demo-all: demo
	demo/run target/demo/sayso

ui:
	@scripts/ui build

test: setup
	@scripts/test

check: setup
	@scripts/test --changed

lint: setup
	@scripts/test format protocol clippy

# `make fuzz FUZZ_RUNS=-1 FUZZ_TARGETS=diff` goes on until it is stopped.
format protocol docs fuzz browser: setup
	@scripts/test $@

bench: setup-bench
	$(CARGO) build --locked --release --package sayso
	$(CARGO) run --locked --release --package sayso-bench -- $(BENCH)

audit: setup-tools
	cargo-deny --locked check advisories

picture: setup ui
	$(CARGO) build --locked --profile demo --package sayso
	docs/picture/draw target/demo/sayso
	SAYSO_BIN=$(CURDIR)/target/demo/sayso scripts/ui picture

setup:
	@scripts/setup

setup-tools:
	@scripts/setup --tools '$(TOOLS)'

setup-bench:
	@scripts/setup --bench

clean:
	$(CARGO) clean
	rm -rf fuzz/corpus
