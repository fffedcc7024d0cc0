# Everything that CI does, one target each. "make" alone lists them.

SHELL := /bin/bash -o pipefail
GO ?= go
FUZZTIME ?= 30s
LINT = $(GO) tool -modfile=$(CURDIR)/tools/go.mod golangci-lint

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1\t\2/' | \
		while IFS=$$'\t' read -r name text; do printf '  %-13s %s\n' "$$name" "$$text"; done

.PHONY: check
check: ## everything that CI runs, without its installs
	@.ci/run --without-install

.PHONY: nightly
nightly: ## what takes too long for every change: beside, collector, peers, Temporal, race on everything, crashes, fuzzing, attacks, vulnerabilities
	@.ci/run vulnerabilities beside-again collector-again peers-again temporal race-all crash fuzz random attack

.PHONY: fresh
fresh: ## the tests as on a machine that has Go and nothing else
	@scripts/fresh

.PHONY: prose
prose: ## how names and comments read, package by package
	@scripts/prose

.PHONY: test
test: ## the tests
	$(GO) test ./...

.PHONY: race
race: ## the tests under the race detector
	$(GO) test -race ./...

.PHONY: bench
bench: ## the side-by-side benchmarks; "make -C bench table" writes their table
	cd bench && $(GO) test -run '^$$' -bench . .
	cd bench/contenders/grapnel && $(GO) test -run '^$$' -bench . .

.PHONY: crash
crash: ## kill runs with SIGKILL, more than 300 of them runs that pay, 200 workers of pipelines, programs with hooks in Go, and coordinators and runners 300 times
	GRAPNEL_CRASH_RUNS=200 $(GO) test -count=1 -timeout 60m -run 'TestCrash|TestKills|TestCoordinatorKills' -v ./durable ./pipeline ./coordinator ./cmd/grapnel | grep -vE '^ *(===|--- PASS: Test(Crash[A-Za-z]*|Kills)/)'

.PHONY: attack
attack: ## give the policies of the library all attack lines, and run in a jail what they let through; a quarter of an hour
	GRAPNEL_ATTACK_ALL=1 $(GO) test -count=1 -timeout 120m -run 'TestAttackLinesHurtNothing' -v ./policy/library | grep -avE 'is let through:|^ *=== '

.PHONY: policy-report
policy-report: ## what library:assistant does to the recorded runs that it is developed with, as a table; two minutes
	GRAPNEL_POLICY_REPORT=1 $(GO) test -count=1 -timeout 20m -run 'TestPolicyReport' -v ./policy/library | grep -vE '^ *(===|---)'

.PHONY: shell-report
shell-report: ## what workspace, safe-shell and secrets do to ordinary and dangerous shell lines, as a table
	GRAPNEL_SHELL_REPORT=1 $(GO) test -count=1 -run 'TestOrdinaryLines' -v ./policy/library | grep -vE '^ *(===|---)'

.PHONY: parked
parked: ## park 100,000 runs in a SQLite file, and measure what they cost
	GRAPNEL_PARKED_RUNS=100000 $(GO) test -count=1 -timeout 60m -run 'TestParkedRuns' -v ./durable

.PHONY: compaction
compaction: ## what compaction saves on the longest recorded runs, as a table
	$(GO) test -count=1 -run 'TestCompactionOfRecordedRuns' -v ./capability | grep -E '^ *\||^(ok|FAIL|---)'

.PHONY: screenshots
screenshots: ## the pictures of docs/coordinator.md, from "grapnel serve" in Chromium; all pages are in the folder GRAPNEL_SCREENSHOTS
	dir=$${GRAPNEL_SCREENSHOTS:-$$(mktemp -d)} && GRAPNEL_SCREENSHOTS=$$dir $(GO) test -count=1 -run '^TestScreenshots$$' ./cmd/grapnel && ls $$dir

.PHONY: fuzz
fuzz: ## every fuzz target of the module for FUZZTIME (30s) each
	@scripts/fuzz $(FUZZTIME)

.PHONY: lint
lint: ## the linters; the first run builds them, which takes minutes
	$(LINT) run ./...
	for module in $(wildcard adapters/*/go.mod examples/*/go.mod); do (cd $$(dirname $$module) && $(LINT) run ./...) || exit; done
	cd bench && $(LINT) run ./...
	cd bench/contenders/grapnel && $(LINT) run ./...
	cd bench/engine && $(LINT) run ./...

.PHONY: vulncheck
vulncheck: ## known vulnerabilities of the code that we call; GOVULNDB names another database
	@scripts/vulncheck

.PHONY: cover
cover: ## the share of statements that tests reach, package by package
	@scripts/cover

.PHONY: examples
examples: ## build and run every example program
	@scripts/examples

.PHONY: golden
golden: ## write the golden files anew; read the diff before you commit it
	@scripts/golden

.PHONY: evidence
evidence: ## measure and write docs/evidence.md; BASE_URL and MODEL add a run with a local model
	@BASE_URL="$(BASE_URL)" MODEL="$(MODEL)" scripts/evidence

.PHONY: parts
parts: ## install the servers that tests talk to (needs Node.js with npm); PostgreSQL is a package of the system
	cd tools/npm && npm ci --no-audit --no-fund --loglevel=error

.PHONY: collector
collector: ## build the OpenTelemetry collector that tests send to; minutes at first
	@scripts/collector

.PHONY: parts-nightly
parts-nightly: ## build Temporal's dev server that tests of "make nightly" talk to; minutes at first
	@scripts/temporal

.PHONY: fmt
fmt: ## format the code
	$(LINT) fmt ./...
	cd bench && $(LINT) fmt ./...
