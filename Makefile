# make run     simulate the built-in default experiment
# make test    vet, and what can be tested within minutes
# make build   one binary, ./sparseserve, which needs nothing but the C library
# make figures the figures of the SparseServe paper, from nothing, into out/paper
# make site    the documents as a site with search, in out/site; needs npm
#
# The rest is for work on the code itself: test-all, lint, race, laws, fuzz, hunt, bench, clean,
# and what cuda.mk adds.

GO ?= go
FUZZTIME ?= 10s
CHECKS ?= 2000
COMMANDS ?= 100000

.PHONY: run test test-all build figures site lint race laws fuzz hunt bench clean

run: build
	./sparseserve simulate

test:
	$(GO) vet ./...
	$(GO) test -short -vet=off -timeout 30m ./...

# With the studies, the calibrator's searches, every case of the live loop; SKIP leaves tests out.
test-all:
	$(GO) vet ./...
	$(GO) test -vet=off -timeout 60m $(SKIP:%=-skip '%') ./...

# The commit is what `sparseserve version` names where go build does not record it.
COMMIT = $(shell git describe --always --dirty --abbrev=12 --exclude '*' 2>/dev/null)
build:
	CGO_ENABLED=0 $(GO) build -trimpath \
	  -ldflags="-s -w -X github.com/sparseserve/sparseserve/internal/cli.commit=$(COMMIT)" \
	  -o sparseserve .

# Runs are kept for as long as what they are made from is the same.
figures: build
	./sparseserve paper figures --all

# The documents as a site with search, in out/site; needs npm.
site:
	npm --prefix site ci
	npm --prefix site run build

lint:
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then \
	  echo "not formatted; run gofmt -w on:" >&2; echo "$$unformatted" >&2; exit 1; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

# Only packages in which goroutines meet without a GPU; the others are many times slower under the
# detector and have nothing for it to find: sim starts no goroutine, which a test holds; studies,
# validations, plans and what-ifs run points as experiments/run does, and so do commands, of which
# one of each kind is enough. Left out are tests of one thread, and of the live device's those that
# compare results, or memory, of the same threads as TestLiveRunDoesWhatTheSimulationSays.
RACELESS := figures hw hw/.* calibrate emulator reference papers validate capacity whatif cli \
  traces sim sim/.* config diff answers show doc nearest stats units
RESULTS := TestProgressiveAttentionIsAlike|TestOneUpload|TestLogitsMatch
MEMORY := TestMemoryNeeded|TestIndicesAllocateNothing
ONETHREAD := TestLaw11MoreIsNotSlower|TestFiguresAreARecount|TestDrawnLinesKeepWhatIsPriced
ONETHREAD := $(ONETHREAD)|TestModelVersion|TestKeysHaveAnEffectOrAWarning|TestLaw9EveryKindOfSystem
ONETHREAD := $(ONETHREAD)|EvidencePage|Published|TestStepTime|TestLaw2TheCardHoldsItAll
ONETHREAD := $(ONETHREAD)|TestSelectionPerQuery
race:
	$(GO) test -race -short -vet=off -timeout 20m -skip '$(RESULTS)|$(MEMORY)|$(ONETHREAD)' \
	  $$($(GO) list ./... | grep -v $(RACELESS:%=-e '/%$$'))
	$(GO) test -race -short -vet=off -skip 'TestSimulate/(seeds|one)' \
	  -run '^TestSimulate$$|^TestSweep$$|Interrupt|Progress|TestLiveSelect' ./internal/cli

# The conservation laws, checked after every event of the simulation; hunt draws more.
laws:
	$(GO) test -short -timeout 30m -tags lawcheck ./sim/...

# Every fuzz target for FUZZTIME.
fuzz:
	@set -e; for file in $$(grep -rl --include='*_test.go' '^func Fuzz' .); do \
	  for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' $$file); do \
	    echo "$(GO) test $$(dirname $$file) -fuzz $$target"; \
	    $(GO) test $$(dirname $$file) -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME); \
	  done; \
	done

# New random cases of every property, many more than a test run draws; command lines by themselves.
hunt: fuzz
	RAPID_CHECKS=$(COMMANDS) $(GO) test -count 1 -timeout 24h -run TestHostileCommands ./internal/cli
	RAPID_CHECKS=$(CHECKS) $(GO) test -count 1 -timeout 1h -tags lawcheck $$(grep -rl \
	  --include='*_test.go' pgregory.net/rapid . | xargs -n1 dirname | sort -u)

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

clean:
	rm -rf sparseserve out

-include cuda.mk
-include calibrate/calibrate.mk
