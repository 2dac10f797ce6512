# Everything here needs the Go toolchain and make, nothing else; race tests also need a C compiler.
GO       ?= go
BIN      := bin/tidemark
PLUGINS  := csv nmon alert
MODULES  := $(PLUGINS:%=plugins/dist/%.wasm)
SOURCES  := $(shell find . -name '*.go' -not -name '*_test.go' -not -path './.*')
FUZZTIME ?= 20s

# One folder of compiled plugins serves the server under test and all tests.
export TIDEMARK_COMPILE_CACHE ?= $(CURDIR)/.cache/wasm
export CGO_ENABLED ?= 0

.DEFAULT_GOAL := help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: warm ## build and start the server on 127.0.0.1:8088, with its data in ./tidemark-data
	./$(BIN) serve --data ./tidemark-data --config ./examples/quickstart/config

build: $(BIN) ## build bin/tidemark with its plugins in it

plugins: $(MODULES) ## compile the built-in plugins to WebAssembly

# The server compiles a plugin when it is first used; here it is done before, for the tests and for make run.
warm: $(BIN)
	@./$(BIN) plugin warm

$(BIN): $(SOURCES) $(MODULES) go.mod go.sum
	$(GO) build -buildvcs=false -trimpath -ldflags='-s -w' -o $@ ./cmd/tidemark

plugins/dist/%.wasm: $(SOURCES) go.mod go.sum
	GOOS=wasip1 GOARCH=wasm $(GO) build -buildvcs=false -trimpath -buildmode=c-shared -ldflags='-s -w' -o $@ ./plugins/$*/module

test: warm ## run all tests: unit, scripts, 500 crash seeds
	TIDEMARK_CRASH_SEEDS=500 $(GO) test ./...

check: warm ## vet, format, race detector and invariants, 32-bit, import policy, documents, numbers that are the same on arm64
	test -z "$$(gofmt -l $$(git ls-files '*.go'))"
	$(GO) vet ./...
	GOOS=wasip1 GOARCH=wasm $(GO) vet ./wasm/guest ./plugins/...
	GOOS=darwin $(GO) vet ./...
	GOARCH=arm64 $(GO) vet ./storage/... ./wasm/...
	CGO_ENABLED=1 TIDEMARK_CRASH_SEEDS=100 TIDEMARK_SQL_ROUNDS=200 $(GO) test -race -tags invariants -timeout 15m ./...
	GOARCH=386 TIDEMARK_CRASH_SEEDS=100 TIDEMARK_SQL_ROUNDS=200 $(GO) test ./core/... ./storage/... ./rules/... ./wasm/... ./plugins/...
	TIDEMARK_FUSED=1 $(GO) test -count=1 -run 'TestImportPolicy|TestNamesInDocsExist|TestPackagesHaveDocs|TestProductsAreRounded' ./cmd/tidemark

# An emulator takes some fifteen times as long: few seeds, coarse steps, and without the tests that take minutes. Tests of deadlines give plugins less
# time than an interpreter in an emulator needs; and of a fault in mapped memory QEMU does not tell an arm64 program the address, as processors do, so that two
# tests of faults cannot run. CROSS="arm" or "arm64" is one of the two, CROSS_PACKAGES fewer packages.
CROSS          ?= arm arm64
CROSS_PACKAGES ?= ./storage/... ./wasm/... ./plugins/...
cross: $(MODULES) ## storage, plugins and their host built for linux/arm and linux/arm64 and tested under qemu-user, some 10 minutes; without qemu it says what it skips
	@for arch in $(CROSS); do \
	  qemu=qemu-$$arch skip='TestMovingHistories|TestLongHistory|TestFaultsOfOpen|TestSoak|TestInitIsBounded|Deadline'; \
	  if [ $$arch = arm64 ]; then qemu=qemu-aarch64 skip="$$skip|TestContract/os/mapping|TestCutUnderQuery"; fi; \
	  find_qemu() { command -v $$qemu-static || command -v $$qemu; }; \
	  find_qemu >/dev/null || { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends qemu-user-static; } >/dev/null 2>&1 || true; \
	  if ! run=$$(find_qemu); then \
	    echo "SKIPPED: NOTHING WAS TESTED FOR linux/$$arch: $$qemu is not there and could not be installed (Debian: apt-get install qemu-user-static)" >&2; continue; \
	  fi; \
	  echo "linux/$$arch under $$run"; \
	  CGO_ENABLED=0 GOARCH=$$arch TIDEMARK_CRASH_SEEDS=5 TIDEMARK_CRASH_PREFIX_SEEDS=1 TIDEMARK_FAULT_STEP=60 TIDEMARK_FLIP_STEP=997 \
	    $(GO) test -short -vet=off -timeout 20m -exec $$run -skip "$$skip" $(CROSS_PACKAGES) || exit 1; \
	done

fuzz: ## run every fuzz target for FUZZTIME (20s)
	@for pkg in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "$$pkg $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
	  done; \
	done

crash: warm ## 10,000 crash seeds, every prefix of writes for 200 of them, 100 rounds of kill -9
	TIDEMARK_CRASH_SEEDS=10000 TIDEMARK_CRASH_PREFIX_SEEDS=200 $(GO) test -count=1 -timeout 60m -run 'Crash' ./storage/...
	TIDEMARK_KILL_ROUNDS=100 $(GO) test -count=1 -timeout 60m -run 'TestKill' ./cmd/tidemark

SOAK ?= 10m
soak: ## random load on the storage engine under the race detector for SOAK (10m), histories of 100 times the length, every 7th byte turned over
	CGO_ENABLED=1 TIDEMARK_SOAK=$(SOAK) $(GO) test -race -count=1 -timeout 60m -run 'TestSoak' ./storage
	TIDEMARK_HISTORY_FACTOR=100 $(GO) test -count=1 -timeout 60m -run 'TestMovingHistories' ./storage
	TIDEMARK_FLIP_STEP=7 TIDEMARK_FAULT_STEP=1 $(GO) test -count=1 -timeout 60m -run 'TestBitFlips|TestFaultsWhileMoving' ./storage

ROUNDS ?= 100000
random-sql: ## ROUNDS (100,000) random queries against an evaluation that is slow and obvious
	TIDEMARK_SQL_ROUNDS=$(ROUNDS) $(GO) test -count=1 -timeout 60m -run 'TestRandomQueries' ./core/sql

clients: warm ## run real clients against the server: Java, Python, Node, Telegraf, StatsD, collectd and more; what cannot be installed is skipped
	$(GO) run ./examples/clients -server $(BIN)

bench: warm ## the figures of BENCH.md: end to end through HTTP, then the packages
	./$(BIN) bench
	$(GO) test -run '^$$' -bench . -benchtime 1s ./core/... ./storage/... ./rules/... ./wasm/...

bench-peers: warm ## the table of storage/BENCH.md: against VictoriaMetrics, InfluxDB, DuckDB, half an hour; PEERS='-quick' is a try
	$(GO) run ./examples/bench-peers -server $(BIN) -out storage/BENCH.md $(PEERS)

clean: ## remove what was built, not your data
	rm -rf bin .cache plugins/dist/*.wasm


.PHONY: warm help run build plugins test check cross fuzz crash soak random-sql clients bench bench-peers clean
