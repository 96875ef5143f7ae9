# The menu. `make` alone prints it.
SHELL := /bin/bash
BIN := $(CURDIR)/bin
# Of chaos and mutate; 0 draws one.
SEED ?= 0
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# Tools, pinned here and nowhere else (the temporal CLI: temporal-dev.sh).
GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
WORKFLOWCHECK := go.temporal.io/sdk/contrib/tools/workflowcheck@v0.6.0
HELM := helm.sh/helm/v3/cmd/helm@v3.17.0
HELM4 := helm.sh/helm/v4/cmd/helm@v4.1.4
GOTESTSUM := gotest.tools/gotestsum@v1.13.0
GORELEASER := github.com/goreleaser/goreleaser/v2@v2.15.1
KO := github.com/google/ko@v0.19.1
COSIGN := github.com/sigstore/cosign/v2/cmd/cosign@v2.6.5
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
VALE := github.com/vale-cli/vale/v3/cmd/vale@v3.22.0
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0

.PHONY: help
help: ## print this menu
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.PHONY: build
build: ## build the programs into ./bin: liqo-autoscaler, liqo-autoscaler-agent, externalgrpc-conformance
	@$(COMPILE) ./cmd/...

COMPILE = mkdir -p $(BIN) && internal/tools/go-progress.sh build -v -ldflags '-X main.version=$(VERSION)' -o $(BIN)/

.PHONY: program
program: # liqo-autoscaler alone, for `make run`
	@[ -x $(BIN)/liqo-autoscaler ] || echo "building liqo-autoscaler into ./bin: under 4 minutes the first time"
	@$(COMPILE) ./cmd/liqo-autoscaler

.PHONY: temporal
temporal: # the CLI and dev server; the first time it is built, and says so
	@./temporal-dev.sh install >/dev/null

.PHONY: ready
ready: program temporal # all programs of `make run`

.PHONY: run
run: ready ## run everything on this machine, with simulated Liqo; Ctrl-C stops it
	@exec $(BIN)/liqo-autoscaler dev

.PHONY: demo
GROUP ?= standard
demo: program ## drive a scale-out and a scale-in against `make run`, and show each phase: GROUP=standard or gpu
	@$(BIN)/liqo-autoscaler demo --group $(GROUP) --world .run/world.json

.PHONY: watch
watch: program ## node groups and instances of `make run`, and then a line for each change
	@exec $(BIN)/liqo-autoscaler status --watch

# What takes longest begins first: the worker's tests, which wait more than they compute, and the explorer. Without its
# tables for debuggers a test is linked in half the time. SQLite is C translated to Go, nothing but unsafe pointers: to
# check each of them takes a third of the time of its tests.
TESTFLAGS := -race -count=1 -parallel 8 -timeout 30m '-ldflags=-s -w' '-gcflags=modernc.org/...=-d=checkptr=0'
PACKAGES := ./worker ./internal/fleet ./...
# Linking takes as long as the tests themselves: a binary that is up to date is not linked again.
test test-all: TESTFLAGS += -toolexec '$(CURDIR)/internal/tools/keep-linked.sh $(BIN)/linked'
# Temporal's SDK takes a workflow task of more than a second for a deadlock, and a busy machine is no deadlock.
test test-all test-ci: export TEMPORAL_DEBUG := 1
# Each process with the race detector waits for a second before it ends, in case a race is still to come.
test test-all test-ci: export GORACE := atexit_sleep_ms=0

.PHONY: test
test: temporal ## the fast tests, with the race detector; under three minutes
	go test -short $(TESTFLAGS) $(PACKAGES)

.PHONY: test-all
test-all: temporal ## the slow tests too, a million steps of the explorer and 10,000 of each random case; under twelve minutes
	go test $(TESTFLAGS) $(PACKAGES)
	go test -count=1 -timeout 30m ./internal/fleet -run '^TestExplorer$$' -steps 1000000
	@$(MAKE) properties

.PHONY: properties
CASES ?= 10000
properties: ## the tests of random cases, CASES=10000 each; LIQO_AUTOSCALER_TEST_SEED=7: others
	LIQO_AUTOSCALER_TEST_CASES=$(CASES) internal/tools/properties.sh

.PHONY: test-ci
test-ci: temporal $(BIN)/gotestsum # every test once; the last lines say how many tests ran, and which failed
	go test -count=1 -timeout 30m ./internal/fleet -run '^TestExplorer$$' -steps 1000000
	$(BIN)/gotestsum --format pkgname --packages '$(PACKAGES)' -- $(TESTFLAGS)

.PHONY: everything
everything: check verify test-all defects chaos deploy-check e2e-all ## checks, tests, chaos and every suite of e2e; some two and a half hours
	@$(MAKE) chaos SUITE=crash
	@$(MAKE) chaos SUITE=soak

.PHONY: language
language: $(BIN)/vale ## the language of comments, documents and charts, by the style in .vale
	$(BIN)/vale --output line $$(git ls-files '*.go' '*.md' '*.yaml' | grep -v testdata)
	VALE=$(BIN)/vale go test -count=1 ./internal/tools/language

.PHONY: check
check: build language $(BIN)/golangci-lint $(BIN)/workflowcheck $(BIN)/helm ## formatting, vet, lint, determinism, tidy modules, the chart
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not gofmt'ed:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	go vet ./...
	$(BIN)/workflowcheck -config workflowcheck.yaml ./workflows/...
	$(BIN)/golangci-lint run ./...
	go -C e2e vet -tags externalgrpc ./...
	cd e2e && $(BIN)/golangci-lint run --build-tags externalgrpc ./...
	cd deploy/alerts && $(BIN)/golangci-lint run ./... && go test -count=1 ./...
	cd deploy/release && $(BIN)/golangci-lint run ./...
	@for m in . e2e; do go -C $$m mod tidy -diff >/dev/null || { echo "$$m/go.mod is not tidy: run go mod tidy"; exit 1; }; done
	HELM=$(BIN)/helm LIQO_AUTOSCALER=$(BIN)/liqo-autoscaler LIQO_AUTOSCALER_AGENT=$(BIN)/liqo-autoscaler-agent go test -count=1 ./deploy/...

.PHONY: e2e
SUITE ?= all
e2e: ## real Kubernetes, Liqo and Cluster Autoscaler: SUITE=ca (no lab), backend, network, first-node, failover, provider, watch, foreign, ratio, crash, decides, discovery, trust, attack, pods, installed, two-autoscalers, renewal, rights, production, faults, bundled or upgrade; LIQO=v1.1; the first time builds them, 11 minutes
	@$(MAKE) -C e2e SUITE=$(SUITE) $(if $(CA_BIN),CA_BIN=$(abspath $(CA_BIN))) $(if $(LIQO_SOURCE),LIQO_SOURCE=$(abspath $(LIQO_SOURCE)))

.PHONY: e2e-all
e2e-all: ## every suite of e2e, one after the other
	@$(MAKE) -C e2e SUITE=all

.PHONY: chaos
DURATION ?= 90s
CHAOS_short := (Chaos|Crash)
CHAOS_overload := Overload
CHAOS_crash := Crash
# Two more overloads, which need no processes: 200 acquires at once of a cold provider, and six stuck removals in five slots.
OVERLOAD_in_process := ^Test(TwoHundredAcquiresOfAStoppedProviderAreAnswered|StuckRemovalsDelayNoOtherInstance)$$
CHAOS_soak := Soak
KILLS ?= $(if $(filter short,$(SUITE)),40,200)
HOURS ?= 24
chaos: temporal ## kill, hang, cut off and overload everything, and check what must always be true: DURATION=90s SEED=n; SUITE=short without overload, but with KILLS=40 of the crash matrix; SUITE=overload alone; SUITE=crash: a kill before and after each side effect, at least KILLS=200; SUITE=soak: a day of HOURS=24
	go test ./worker/chaos -run '^Test$(or $(CHAOS_$(SUITE)),(Chaos|Overload))$$' -count=1 -v -timeout 60m \
		-chaos $(DURATION) -chaos-seed $(SEED) -overload -crash $(KILLS) -crash-short=$(if $(filter short,$(SUITE)),true,false) -soak $(HOURS)
	$(if $(filter short crash soak,$(SUITE)),,go test ./worker -run '$(OVERLOAD_in_process)' -count=1 -v -timeout 10m)

.PHONY: deploy-check
deploy-check: build $(BIN)/helm $(BIN)/4/helm ## the Helm chart and manifests, against the binary and, if `make e2e` has built one, a real API server
	@kube=$$(go -C e2e run ./lab/run -built); [ -n "$$kube" ] || { echo "no kube-apiserver here: what needs one is skipped; make e2e builds it"; }; \
	HELM=$(BIN)/helm HELM4=$(BIN)/4/helm LIQO_AUTOSCALER=$(BIN)/liqo-autoscaler LIQO_AUTOSCALER_AGENT=$(BIN)/liqo-autoscaler-agent KUBE_BIN=$$kube go test -count=1 ./deploy/...

.PHONY: bench
SHAPES ?=
PROBE ?= 1
ROUNDS ?= 2
CELLS ?= 10x20,50x200,200x1000
RTTS ?=
RTTS_hub := 0,25,100,250
RTTS_thousand := 0,250
THOUSAND ?= 1000
START ?= 320
OLD ?=
SLOTS ?= 0
bench: temporal ## benchmarks; lines BENCH <name> <value> <unit> <ratio> <against>; SUITE=burst: many nodes at once, SHAPES=1x150,15x10 PROBE=0 FAST=1 ROUNDS=2; SUITE=refuse: what refused requests cost the two servers and their clients; SUITE=hub: a whole hub far from Temporal, CELLS=10x20,50x200 RTTS=0,100 OLD=5aa83e5; SUITE=thousand: 1,000 nodes on 20 and on 1,000 offers; SUITE=start: first start of START=320 node groups; SLOTS=8: another number of driver slots in burst, hub, thousand and start
ifeq ($(SUITE),hub)
	go -C e2e test ./hub -run '^TestHub$$' -count=1 -v -timeout 8h -slots $(SLOTS) -cells $(CELLS) -rtts $(or $(RTTS),$(RTTS_hub)) $(if $(OLD),-old $(OLD))
else ifeq ($(SUITE),thousand)
	go -C e2e test ./hub -run '^TestThousand$$' -count=1 -v -timeout 8h -slots $(SLOTS) -thousand $(THOUSAND) -rtts $(or $(RTTS),$(RTTS_thousand))
else ifeq ($(SUITE),start)
	go -C e2e test ./hub -run '^TestStart$$' -count=1 -v -timeout 1h -slots $(SLOTS) -start $(START)
else ifeq ($(SUITE),refuse)
	go test -run '^$$' -bench Refuse -benchtime 1x ./discovery/server
	go -C e2e test ./attack -run '^TestServer$$' -count=1 -v -timeout 15m
else ifeq ($(SUITE),burst)
	go test ./worker/burst -run TestBurst -count=1 -v -timeout 6h -burst $(if $(SHAPES),-shapes $(SHAPES)) -probe=$(PROBE) -rounds $(ROUNDS) -slots $(SLOTS) \
		$(if $(FAST),-fsync=false -alone=false -warm= -idle 0)
else
	set -o pipefail; go test -run '^$$' -bench . -benchtime 2s ./grpcserver/... ./worker | tee /dev/stderr | grep '^BENCH'
	set -o pipefail; go test -run '^$$' -bench . -benchtime 1x ./activities/backend/sim | tee /dev/stderr | grep '^BENCH'
	set -o pipefail; go test -run '^$$' -bench 'List|Choose' -benchtime 2s ./discovery/server ./internal/fleet/choice | tee /dev/stderr | grep '^BENCH'
	set -o pipefail; go test -run '^$$' -bench Renewals -benchtime 1x ./discovery/server | tee /dev/stderr | grep '^BENCH'
endif

# Every decoder of what comes from outside. Without a bound Go spends up to a minute on making one input smaller, in which it
# tries no other.
FUZZERS := grpcserver/FuzzCalls grpcserver/FuzzExpander grpcserver/config/FuzzParse internal/strictyaml/FuzzUnmarshalNeverPanics \
	cmd/liqo-autoscaler/explain/manifest/FuzzRead discovery/agent/FuzzSlices discovery/client/FuzzPages activities/backend/liqo/FuzzKubeconfig
.PHONY: fuzz
SECONDS ?= 600
fuzz: ## feed random bytes to every decoder of requests and to the config loader, in parts that take SECONDS=600 together
	@for f in $(FUZZERS); do go test ./$${f%/*} -run '^$$' -fuzz "^$${f##*/}$$" -parallel 1 -fuzzminimizetime 10x \
		-fuzztime $$(($(SECONDS) / $(words $(FUZZERS))))s || exit 1; done

.PHONY: image
IMAGE ?=
PROGRAM ?= liqo-autoscaler
KO_FLAGS ?=
image: $(BIN)/ko ## build the image for amd64 and arm64 and push it: IMAGE=registry.example.com/liqo-autoscaler VERSION=0.1.0; PROGRAM=liqo-autoscaler-agent: the one for providers; TAR=image.tar: no push, for this machine's architecture
	@: $${IMAGE:?is not set}; KO_CONFIG_PATH=deploy/release/ko.yaml KO_DOCKER_REPO=$$IMAGE VERSION=$(VERSION) $(BIN)/ko build ./cmd/$(PROGRAM) \
		--bare --tags $(VERSION) --image-user 65532:65532 $(if $(TAR),--push=false --tarball $(TAR) --platform linux/$$(go env GOARCH),--platform linux/amd64,linux/arm64) $(KO_FLAGS)

.PHONY: release-tools
release-tools: $(BIN)/ko $(BIN)/cosign $(BIN)/helm $(BIN)/goreleaser # what make release needs

.PHONY: release
release: release-tools # what the release workflow runs: VERSION IMAGE CHARTS
	deploy/release/publish.sh
	$(BIN)/goreleaser release --config deploy/release/goreleaser.yaml --clean --parallelism 1 # the order of builds is the order in archives

.PHONY: release-check
release-check: $(BIN)/ko $(BIN)/cosign $(BIN)/helm $(BIN)/goreleaser $(BIN)/actionlint ## a release into a registry of its own, with a key of its own: binaries, image, charts, SBOM, signatures, workflows
	go -C deploy/release test -count=1 -v -timeout 30m ./...

.PHONY: vuln
vuln: $(BIN)/govulncheck ## known vulnerabilities of what this code calls; needs the internet
	$(BIN)/govulncheck ./...
	cd e2e && $(BIN)/govulncheck -tags externalgrpc ./...

.PHONY: docs-check
docs-check: temporal $(BIN)/helm ## run the steps of README and the guides that are marked as run here, in a copy, and compare what they print
	go test ./cmd/liqo-autoscaler -run '^TestGuides$$' -count=1 -v -timeout 90m -args -docs-check

.PHONY: recording
recording: ## record docs/images again, with asciinema, chromium, prometheus and npm; needs the ports of `make run`
	@docs/record.sh

.PHONY: mutate
N ?= 150
mutate: ## change the code at random, and list what no fast test notices: N=150 SEED=n
	@go run ./internal/tools/mutate -n $(N) -seed $(SEED)

.PHONY: defects
defects: ## make deliberate mistakes one at a time: the explorer must find those of internal/fleet/testdata/defects, the models those of internal/testkit/defect/testdata
	go test ./internal/testkit/defect -run '^TestModelsFindDefects$$' -count=1 -defects -timeout 1h -v
	go test ./internal/fleet -run '^TestExplorerFindsDefects$$' -count=1 -defects -steps 500000 -timeout 1h -v

.PHONY: lines
lines: ## count the lines of code, without tests, and in workflows and cmd the arrows between files
	@go run ./internal/tools/lines

.PHONY: update
update: ## rewrite what is generated: golden files, deploy/ca/values.yaml, docs/machine.md, docs/failure-codes.md, docs/configuration.md, docs/metrics.md, docs/reference/cli.md, docs/reference/values.md
	go test -count=1 ./internal/fleet ./grpcserver/config ./cmd/liqo-autoscaler/show -update
	go test -count=1 ./internal/serve/parts -run TestDocumentedMetrics -update
	go test -count=1 ./cmd/liqo-autoscaler -run 'TestSettingsOfCA|TestDocumentedCommandLine|TestDocumentedValues' -update

.PHONY: verify
verify: ## fail if `make update` would change anything; runs it in a copy
	@copy=$$(mktemp -d) && trap 'rm -rf "$$copy"' EXIT && \
	git ls-files -co --exclude-standard -z | tar --null --ignore-failed-read --warning=no-failed-read -T- -c 2>/dev/null | tar -x -C "$$copy" && \
	git -C "$$copy" init -q && git -C "$$copy" add -A && $(MAKE) -C "$$copy" --no-print-directory update >"$$copy/.git/update.log" 2>&1 || \
	{ cat "$$copy/.git/update.log"; exit 1; }; \
	git -C "$$copy" add -A -N && git -C "$$copy" --no-pager diff --exit-code || { echo "what is generated is not up to date: run make update and read the diff"; exit 1; }

.PHONY: histories
histories: temporal ## record the histories of workflows again; not needed after the first release
	rm -rf workflows/testdata/histories
	go test ./worker -count=1 -timeout 30m -record

# golangci-lint is what GOLANGCI_LINT names, and so on.
$(addprefix $(BIN)/,vale golangci-lint workflowcheck helm gotestsum goreleaser ko cosign actionlint govulncheck):
	GOBIN=$(BIN) go install $($(shell tr a-z- A-Z_ <<<$(@F)))

$(BIN)/4/helm: # Helm 4, whose program has the name of Helm 3's
	GOBIN=$(@D) go install $(HELM4)
