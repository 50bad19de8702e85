# Weir's commands; `make` alone lists them. CARGO_TARGET_DIR moves Rust's build folder out of the clone.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

export PATH := $(CURDIR)/.venv/bin:$(PATH)
export CARGO_TARGET_DIR ?= $(CURDIR)/host/target
export PYTHONDONTWRITEBYTECODE := 1

# Captures kept outside the repository; tests over them say so and skip where the folder is absent.
export WEIR_CORPUS ?= $(CURDIR)/../shared/corpus

CARGO := cargo --config net.retry=5
MANIFEST := --manifest-path host/Cargo.toml --locked
PYTHON_SOURCES := proto firmware rtl-tests hw/registers hw/synth .ci $(wildcard host/*/tests) host/python
C_SOURCES = $(shell git ls-files '*.c' '*.h' '*.cpp')
SV_SOURCES = $(shell git ls-files 'hw/*.sv' 'rtl-tests/*.sv')

##@ Use
.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^##@/ { printf "\n%s\n", substr($$0, 5) } /^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

.PHONY: setup
setup: ## install what is missing: apt packages, Rust, .venv (run by the others)
	@.ci/setup.sh

# Which branches weir takes, as counted by `make profile`: of use to the compiler that names its file alone, others build
# without. What was changed since is compiled as if nothing was known of it. The target is named, so that the flags are not
# those of build scripts, too; names of functions depend on that.
RUST_HOST = $(shell rustc -vV | sed -n 's/^host: //p')
PROFILE = $(wildcard $(CURDIR)/host/weir/profile/rustc-$(shell rustc -V | cut -d ' ' -f 2).profdata)
RELEASE_FLAGS = $(MANIFEST) --release --target $(RUST_HOST)
RELEASE = $(if $(PROFILE),RUSTFLAGS="-Cprofile-use=$(PROFILE) -Cllvm-args=-no-pgo-warn-mismatch") $(CARGO)

.PHONY: build
build: setup ## build bin/weir, optimised
	@$(RELEASE) build $(RELEASE_FLAGS) -p weir
	@mkdir -p bin && cp -f $(CARGO_TARGET_DIR)/$(RUST_HOST)/release/weir bin/weir

.PHONY: sql
sql: setup ## build bin/weir-sql, the SQL engine of weir query "SELECT ..." and its Flight SQL server
	@$(CARGO) build $(MANIFEST) --profile sql -p weir-sql
	@mkdir -p bin && ln -f $(CARGO_TARGET_DIR)/sql/weir-sql bin/weir-sql 2>/dev/null || cp -f $(CARGO_TARGET_DIR)/sql/weir-sql bin/weir-sql

.PHONY: run
run: build $(if $(filter sim,$(NIC)),nic-sim) ## replay a capture through DPDK, records and gRPC to the answer; PCAP=file for your own, NIC=sim: the simulated card measures
	@NIC=$(NIC) .ci/demo.sh bin/weir $(if $(PCAP),"$(PCAP)")

.PHONY: nic-sim
nic-sim: setup ## build the simulated card, bin/weir-nic-sim (5 minutes); weir nic-sim runs it
	@rtl-tests/nic_sim.py

.PHONY: lab
lab: build ## real TCP over a wire that misbehaves on purpose, and how much of it Weir finds (root, 3 minutes); SEED=n for another run
	@bin/weir lab --all -o build/lab $(if $(SEED),--seed $(SEED))

.PHONY: compare-peers
compare-peers: build ## Weir beside tshark and tcptrace, segment by segment, disagreements in groups; PCAP=file or folder of your own
	@.ci/setup.sh bench
	@host/weir/tests/python/compare_peers.py $(if $(PCAP),"$(PCAP)")

.PHONY: bench
bench: build ## CPU time of weir analyze beside tshark and tcptrace on large captures; SCALE=0.1 for a quick look
	@.ci/setup.sh bench
	@$(RELEASE) run $(RELEASE_FLAGS) -p weir-bench -- compare --weir bin/weir $(if $(SCALE),--scale $(SCALE))

.PHONY: profile
profile: setup ## count anew which branches weir takes, for make build (20 minutes)
	@.ci/setup.sh profile
	@.ci/profile.sh

.PHONY: firmware
firmware: setup ## build the card's firmware image and boot ROM (build/firmware)
	@$(MAKE) -C firmware image

# What npm wrote last says whether the packages are those of the lock file.
NODE_MODULES := host/web/node_modules/.package-lock.json
$(NODE_MODULES): host/web/package-lock.json
	@.ci/setup.sh node
	@cd host/web && npm ci --no-audit --no-fund --loglevel=error && touch node_modules/.package-lock.json

.PHONY: page
page: $(NODE_MODULES) ## build the analyst's page, bin/page (Node; weir view and weir serve --page show it)
	@cd host/web && npm run --silent build -- --logLevel warn

##@ Check (each is a stage of make test)
.PHONY: test
test: ## everything below, with minutes per stage
	@command -v python3 >/dev/null || .ci/setup.sh
	@.ci/stages.py

.PHONY: generated
generated: ## generated files are fresh
	@proto/gen_records.py --check
	@hw/registers/gen.py --check
	@proto/gen_card.py --check
	@rtl-tests/record_vectors.py --check

.PHONY: format
format: ## sources are formatted (make fmt mends)
	@cargo fmt --manifest-path host/Cargo.toml --all --check
	@ruff format --check $(PYTHON_SOURCES)
	@clang-format --dry-run -Werror $(C_SOURCES)
	@verible-verilog-format --flagfile=hw/verible-format.flags --verify --inplace $(SV_SOURCES)

.PHONY: lint
lint: ## Python and shell scripts
	@ruff check $(PYTHON_SOURCES)
	@shellcheck .ci/run $$(git ls-files '*.sh')

.PHONY: rtl-lint
rtl-lint: ## SystemVerilog: verible and verilator -Wall
	@verible-verilog-lint --rules_config_search $(SV_SOURCES)
	@rtl-tests/runner.py --lint

.PHONY: proto-lint
proto-lint: ## messages follow the buf STANDARD rules
	@buf lint proto
	@buf format --diff --exit-code proto

# The whole check (stages.py) builds the workspace once, with what all its parts ask of the libraries, and lints while it
# compiles, as cargo-clippy does: a package alone builds libraries a second time, lints alone check them all a second time.
ifdef WEIR_BUILT
export RUSTC_WORKSPACE_WRAPPER := clippy-driver
export CLIPPY_ARGS := -Dwarnings__CLIPPY_HACKERY__
clippy hls-test rtl-test rtl-compare rtl-mutate: test-weir
endif

.PHONY: clippy
clippy: ## Rust lints, warnings refused
ifdef WEIR_BUILT
	@! echo 'fn main() { let _ = 1 == 1; }' | clippy-driver rustc -o /dev/null - 2>/dev/null # it lints, and refuses
else
	@$(CARGO) clippy $(MANIFEST) --workspace --all-targets -- -D warnings
endif

.PHONY: rust-tests
rust-tests: ## Rust tests of all crates
	@$(CARGO) test $(MANIFEST) --workspace --no-fail-fast -- --show-output

.PHONY: layout-tests
layout-tests: ## record bytes agree between Python, C, SystemVerilog and Rust
	@pytest -q -rs rtl-tests/test_record_layout.py

.PHONY: firmware-test
firmware-test: ## the firmware: image, tests on the host, coverage, static analysis
	@$(MAKE) -C firmware test

.PHONY: hls-test
hls-test: ## the card's HLS kernels in C simulation, against the exact reference; PCAP=file for one of your own
	@hw/hls/test.sh $(if $(PCAP),"$(PCAP)")

.PHONY: rtl-formal
rtl-formal: ## proofs of the small control blocks, and mutants that must break them
	@pytest -q -rs -n auto --dist worksteal rtl-tests/test_formal.py

.PHONY: rtl-test
rtl-test: ## simulations of the hardware modules (rtl-tests/runner.py --list)
	@$(MAKE) -C firmware image >/dev/null
	@pytest -q -rs -n auto --dist worksteal rtl-tests/test_rtl.py rtl-tests/test_parser.py rtl-tests/test_lookup.py rtl-tests/test_core.py rtl-tests/test_boards.py rtl-tests/test_bar.py

.PHONY: rtl-coverage
rtl-coverage: ## lines and branches that the hardware's tests reach, and what of the engine they saw (20 minutes)
	@rtl-tests/coverage.py

.PHONY: synth
synth: ## synthesis estimates of what changed against hw/synth/report.md; ONLY=weir_fifo for some modules, ALL=1 for all; WRITE=1 renews them there
	@pytest -q -rs rtl-tests/test_synth.py
	@hw/synth/synth.py $(if $(WRITE),--write,--check) $(if $(ONLY),--only $(ONLY),$(if $(ALL),,--changed))

.PHONY: synth-ecp5
synth-ecp5: ## the same with place and route on ECP5; WRITE=1 renews hw/synth/report.md
	@hw/synth/synth.py --ecp5 $(if $(WRITE),--write,--check)

.PHONY: rtl-compare
rtl-compare: ## records of the hardware against those of the software: PCAP=file or folder of your own, else a small set
ifdef PCAP
	@rtl-tests/compare.py "$(PCAP)"
else
	@pytest -q -rs rtl-tests/test_compare.py
endif

.PHONY: rtl-compare-long
rtl-compare-long: ## the same with 10 million hostile packets (SEEDS=1-10), the corpus, traffic mixes, a tiny table
	@rtl-tests/compare.py --hostile 1000000 --seeds $(or $(SEEDS),1-10)
	@rtl-tests/compare.py --mix
	@rtl-tests/compare.py --contexts 256 --hostile 100000 --seeds $(or $(SEEDS),1-10)
	@if [ -d "$(WEIR_CORPUS)" ]; then rtl-tests/compare.py "$(WEIR_CORPUS)"; else echo "no corpus at $(WEIR_CORPUS)"; fi

.PHONY: rtl-mutate
rtl-mutate: ## do the hardware's tests notice small changes? COUNT=200 SEED=1 MODULE=weir_fifo (12 of all, or as many as end in 4 minutes)
	@pytest -q -rs rtl-tests/test_mutate.py
	@rtl-tests/mutate.py $(if $(COUNT),--count $(COUNT),--minutes 4) $(if $(SEED),--seed $(SEED)) $(addprefix --module ,$(MODULE))

# The dev profile, as in rust-tests: what that stage built is used again.
TEST_WEIR := $(CARGO_TARGET_DIR)/debug/weir

.PHONY: test-weir
test-weir:
	@$(CARGO) build $(MANIFEST) --workspace --all-targets

.PHONY: client-tests
client-tests: test-weir ## the command from outside: Python clients, real captures
	@WEIR_BIN=$(TEST_WEIR) WEIR_SQL=$(CARGO_TARGET_DIR)/debug/weir-sql \
		WEIR_SERVER_CMD=$(CARGO_TARGET_DIR)/debug/examples/serve_log \
		pytest -q -rs $(wildcard host/*/tests/python)

.PHONY: end-to-end
end-to-end: test-weir ## what make run does, on the demo capture
	@WEIR_BIN=$(TEST_WEIR) pytest -q -rs .ci

.PHONY: nic-sim-test
nic-sim-test: test-weir nic-sim ## the simulated card: records and make run NIC=sim equal to the software's; weir serve keeps it through faults
	@# In this order each worker has one of the two long tests.
	@WEIR_BIN=$(TEST_WEIR) WEIR_NIC_SIM=$(CURDIR)/bin/weir-nic-sim \
		pytest -q -rs -n 2 --dist worksteal rtl-tests/test_nic_sim.py rtl-tests/test_card_service.py
	@WEIR_NIC_SIM=$(CURDIR)/bin/weir-nic-sim $(CARGO) test $(MANIFEST) --workspace --test nic_sim -- --show-output

.PHONY: page-tests
page-tests: page test-weir ## the analyst's page: types, lint, format, its modules, each view in a real browser (Chromium)
	@.ci/setup.sh node web
	@cd host/web && npm run --silent types && npm run --silent lint
	@cd host/web && NO_COLOR=1 WEIR_BIN=$(TEST_WEIR) node_modules/.bin/vitest run

.PHONY: docs
docs: ## the book (build/docs) and its links
	@mdbook build docs
	@.ci/links.py

##@ Tidy
.PHONY: fmt
fmt: setup ## format all sources and refresh generated files
	@proto/gen_records.py
	@hw/registers/gen.py
	@proto/gen_card.py
	@rtl-tests/record_vectors.py
	@cargo fmt --manifest-path host/Cargo.toml --all
	@ruff format $(PYTHON_SOURCES)
	@ruff check --fix $(PYTHON_SOURCES)
	@clang-format -i $(C_SOURCES)
	@buf format --write proto
	@verible-verilog-format --flagfile=hw/verible-format.flags --inplace $(SV_SOURCES)
	@[ ! -e $(NODE_MODULES) ] || npm --prefix host/web run --silent format >/dev/null

.PHONY: clean
clean: ## remove what builds made, keep .venv
	@rm -rf bin build host/target
