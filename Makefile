# looptape's chores. Each target installs the Debian packages that it needs and
# lacks, if it may; Go fetches its modules by itself.

export CGO_ENABLED ?= 0
GO          ?= go
STATICCHECK  = honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME    ?= 60s
# Where asciinema-player is, for the test that plays recordings in it.
export LOOPTAPE_PLAYER ?= $(CURDIR)/bin/player

.PHONY: build test race lint fuzz crash bench demo conformance tools player

build: ## bin/looptape
	$(GO) build -o bin/looptape ./cmd/looptape

test: tools player ## every test, with the seeds of the fuzz targets
	$(GO) test ./...

race: tools ## the concurrent packages, and a real daemon, under the race detector
	@sh .ci/tools gcc
	CGO_ENABLED=1 $(GO) test -race -short ./store ./recorder ./capture ./cmd/internal/...
	CGO_ENABLED=1 $(GO) test -race -short -run 'TestScript/(attach|delete|events|import|respawn|restart|wait)$$|TestAnswered|TestKillRaces|TestAttach(Size|Ends|Respawn)|TestRespawn|TestEvictionStress' ./cmd/looptape

lint: ## formatting, vet, staticcheck, and the other platforms
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo 'these files are not gofmt-ed'; exit 1; }
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...
	GOOS=linux GOARCH=arm64 $(GO) build -o /dev/null ./cmd/looptape
	GOOS=darwin GOARCH=arm64 $(GO) build -o /dev/null ./cmd/looptape

fuzz: ## each fuzz target for FUZZTIME
	@for pkg in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "== $$pkg $$target"; \
	    $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x $$pkg || exit 1; \
	  done; \
	done

crash: tools ## kill -9 the daemon 200 times
	LOOPTAPE_CRASHES=200 $(GO) test -run TestKill9 -count=1 -v -timeout 60m ./cmd/looptape

bench: ## benchmarks, as ratios
	$(GO) test -run '^$$' -bench . ./...

conformance: ## the terminal against xterm.js and tmux, agreement by group; pages in a browser
	@sh .ci/tools node npm tmux chromium
	$(GO) test -tags conformance -run TestConformance -v -count=1 -timeout 30m ./replay
	$(GO) test -tags conformance -run TestConformanceAttach -v -count=1 ./cmd/looptape
	$(GO) test -tags conformance -run TestHostileBrowser -v -count=1 ./capture

demo: tools build ## the whole story on a real program, in under a minute
	@sh demo.sh bin/looptape

tools:
	@sh .ci/tools bash zsh jq vim less git script ps

player:
	@sh .ci/tools node npm asciinema
	@sh .ci/player $(LOOPTAPE_PLAYER)
