# Every target does its own set-up: `setup` installs what is missing from the registries and does nothing the second time.

.PHONY: help demo test bench lint format docs dependencies fuzz audit setup setup-tools setup-bench setup-buf setup-sdk setup-agents protocol picture clean

CARGO ?= cargo
# Outside the checkout, so that a fresh clone does not build them again.
TOOLS ?= $(HOME)/.cache/sayso/tools
# Its version is the end of the name.
BUF ?= $(HOME)/.cache/sayso/buf-1.74.0
export PATH := $(TOOLS)/bin:$(HOME)/.cargo/bin:$(PATH)

FUZZ_RUNS ?= 20000
FUZZ_TARGETS := diff hook like merge patch proposal request sections shell stream

help:
	@echo 'make demo    the main job, on real files; needs no terminal, key or network'
	@echo 'make test    format, lints, docs, dependencies, fuzz targets, all tests'
	@echo 'make bench   speed and memory beside the peers, as ratios'
	@echo 'make lint    formats and lints alone'

demo: setup
	$(CARGO) build --locked --release --package sayso
	demo/run target/release/sayso

test: setup-tools setup-sdk setup-agents lint docs dependencies fuzz
	$(CARGO) test --locked --workspace --doc --quiet
	@if $(CARGO) nextest --version >/dev/null 2>&1; then \
	  $(CARGO) nextest run --locked --workspace; \
	else \
	  $(CARGO) test --locked --workspace; \
	fi

lint: setup format protocol
	$(CARGO) clippy --locked --workspace --all-targets -- --deny warnings
	$(CARGO) clippy --locked --manifest-path benches/Cargo.toml --all-targets -- --deny warnings
	$(CARGO) clippy --locked --manifest-path fuzz/Cargo.toml -- --deny warnings

format:
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path benches/Cargo.toml --check
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check

protocol: setup-buf
	@scripts/protocol '$(BUF)/node_modules/.bin/buf'

docs:
	RUSTDOCFLAGS='--deny warnings' $(CARGO) doc --locked --workspace --no-deps --document-private-items --quiet

dependencies: setup-tools
	cargo-deny --locked --all-features check --hide-inclusion-graph bans licenses sources
	cargo-machete crates fuzz benches

# Coverage by the stable compiler's own flags, so that neither a nightly nor cargo-fuzz is needed. A bounded number of inputs:
# `make fuzz FUZZ_RUNS=-1 FUZZ_TARGETS=diff` goes on until stopped.
fuzz: export RUSTFLAGS := --cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
  -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1
fuzz: setup
	$(CARGO) build --locked --release --manifest-path fuzz/Cargo.toml --target $(HOST)
	@for target in $(FUZZ_TARGETS); do \
	  mkdir -p fuzz/corpus/$$target; \
	  fuzz/target/$(HOST)/release/$$target -runs=$(FUZZ_RUNS) -max_len=4096 -seed=1 -timeout=10 -dict=fuzz/dictionary \
	    -artifact_prefix=fuzz/ fuzz/corpus/$$target fuzz/seeds/$$target >fuzz/target/$$target.log 2>&1 \
	    || { cat fuzz/target/$$target.log; exit 1; }; \
	  echo "fuzz $$target: $(FUZZ_RUNS) inputs"; \
	done

# The host's name, which keeps the flags above away from build scripts.
HOST = $(shell rustc -vV | sed -n 's/^host: //p')

bench: setup-bench
	$(CARGO) build --locked --release --package sayso
	$(CARGO) run --locked --release --manifest-path benches/Cargo.toml -- $(BENCH)

audit: setup-tools
	cargo-deny --locked check advisories

picture: setup
	$(CARGO) build --locked --release --package sayso
	docs/picture/draw target/release/sayso

setup:
	@scripts/setup

setup-tools:
	@scripts/setup --tools '$(TOOLS)'

setup-bench:
	@scripts/setup --bench

setup-buf:
	@scripts/setup --buf '$(BUF)'

setup-sdk:
	@scripts/setup --sdk >/dev/null

setup-agents:
	@scripts/setup --agents >/dev/null

clean:
	$(CARGO) clean
	rm -rf benches/target fuzz/target fuzz/corpus
