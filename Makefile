# Run `make help` for what each target does.
SHELL := /bin/bash
BIN := bin
GOFLAGS_TEST ?=
RACE_PKGS := ./coord/... ./pgwire/... ./storage/... ./sources/...
BENCH ?= .
BENCHTIME ?= 1s
BENCHCOUNT ?= 1

.PHONY: help build test check bench services services-down fmt clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 18

build: ## build bin/streamdb
	go build -o $(BIN)/streamdb ./cmd/streamdb

test: ## start the services that tests need, run every test, stop the services
	@scripts/test.sh $(GOFLAGS_TEST)

check: ## gofmt, vet, staticcheck, and the race detector on the concurrent packages
	@scripts/check.sh $(RACE_PKGS)

bench: ## run the benchmarks (BENCH=regexp BENCHTIME=1s BENCHCOUNT=10), benchstat-comparable
	go test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -count $(BENCHCOUNT) ./...

services: ## start PostgreSQL, Kafka and the schema registry and leave them running
	@scripts/services.sh up && scripts/services.sh env

services-down: ## stop them
	@scripts/services.sh down

fmt: ## format the code
	gofmt -w $$(git ls-files '*.go')

clean: ## stop the services and remove what was built
	scripts/services.sh down
	rm -rf $(BIN)
