# `make` alone lists the targets. Those that start jails need root: as another
# user they go through sudo.

GO      ?= go
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)

# bin/toolchain is the Go that .ci/deps downloads if the system's is too old.
export PATH := $(CURDIR)/bin/toolchain/bin:$(PATH):/usr/local/go/bin

ROOT := $(if $(filter 0,$(shell id -u)),,sudo -E env "PATH=$$PATH")

BIN ?= bin/gaol

# Where make install puts things. DESTDIR is a folder for packages.
PREFIX  ?= /usr/local
DESTDIR ?=

# Flags of make serve.
FLAGS ?=

# The binary is linked statically: it needs neither the C library nor libseccomp of
# the machine that it runs on. The tags replace glibc's resolver, which would need
# shared libraries, by Go's. Where the static libraries are missing: make build STATIC=
STATIC ?= netgo,osusergo

STATIC_LINK := -linkmode external -extldflags -static
LINK        := $(if $(STATIC),$(STATIC_LINK))
LDFLAGS     := -s -w -X main.version=$(VERSION) $(LINK)

# Since the binary has no DWARF, the compiler writes none, which takes a tenth of its time. Stack traces do not need it.
COMPILE := -trimpath -gcflags=all=-dwarf=false

# Compilers and linkers collect garbage only above 512 MiB, which takes some 5 % less time. Two of them run at once.
LAZY_GC := env GOGC=off GOMEMLIMIT=512MiB

# runc of go.mod's version, which gaol finds beside itself. runc's Makefile also has the tag libpathrs,
# which needs a library in Rust. gaol rejects a runc that the file's group can write.
RUNC       := github.com/opencontainers/runc
BUILD_RUNC := $(LAZY_GC) $(GO) build $(COMPILE) -tags seccomp,netgo,osusergo,urfave_cli_no_docs

# nats-server of go.mod's version, the engine of a fleet. gaol finds it as it finds runc.
NATS       := github.com/nats-io/nats-server/v2
BUILD_NATS := CGO_ENABLED=0 $(LAZY_GC) $(GO) build $(COMPILE) -ldflags -s

# The linters have many dependencies, so that each has a module file of its own,
# as golangci-lint recommends: in go.mod they would be dependencies of gaol.
LINT  := $(GO) tool -modfile=.ci/lint.mod golangci-lint
PROSE := $(GO) tool -modfile=.ci/prose.mod vale

# Packages of tests at once: more than processors, because tests wait for a part of their time, and
# one because test/exhaust waits until it is alone.
AT_ONCE := $(shell echo $$((2 * $$(nproc) + 1)))

# Links test binaries without symbols, and by mold, which .ci/deps test installs: that takes a fifth
# less time. Where its folder is missing, gcc uses its own linker.
FAST_LINK := -ldflags='-s -extldflags=-B/usr/libexec/mold'

GO_TEST = env GAOL_TEST_BINARY=$(abspath $(BIN)) GAOL_TEST_NATS=$(abspath $(dir $(BIN)))/nats-server $(GO) test -p $(AT_ONCE) -count=1 -timeout 25m -vet=off $(FAST_LINK)

# Fails if tests have changed the default image. It is silent otherwise: the output ends on go test's own lines.
VERIFY = @found=$$($(ROOT) $(BIN) image verify default) || { echo "$$found"; exit 1; }

# How long make soak takes: some ten minutes. For a day's worth of runs:
#	make soak KILLS=2000 RUNS=100000
KILLS ?= 40
RUNS  ?= 1000

# How long a thousand sandboxes of fifty tenants are used.
SANDBOXES ?= 10s

# How long nodes of a fleet and their engine are killed. By default half a minute by make soak, and ten by make test-fleet.
CHAOS ?=

# $(call MARKED,Soak) matches the tests that begin with tier.Soak, which make test leaves out, and
# $(call MARKED_IN,Soak) lists their folders. go doc ./test/tier describes the tiers.
TESTED    := cmd examples internal jail policy rootfs runtime test vfs
MARKED     = ^($(shell grep -rh -B1 --include='*_test.go' '^	tier\.$(1)(t)' $(TESTED) | sed -n 's/^func \(Test[A-Za-z0-9_]*\).*/\1/p' | paste -sd '|'))$$
MARKED_IN  = $(shell grep -rl --include='*_test.go' '^	tier\.$(1)(t)' $(TESTED) | xargs -n1 dirname | sort -u | sed 's|^|./|')

# Folders whose tests make soak repeats with the other launcher, and make test-runc in containers. Those of
# the server, of npm and of gaol's own files make their sandboxes natively.
SANDBOXED := escape evaluate host lifecycle network permissions run tools zygote

# The tests of sandboxes with an agent, which is gaol in PATH, and those of them that make test runs: one or two of each kind.
REMOTE_TEST   = $(ROOT) env GAOL_TEST_ISOLATION=remote PATH="$(abspath $(dir $(BIN))):$$PATH" $(GO_TEST) -short
REMOTE_SAMPLE := ^Test(Programs|FilesPersist|LimitsReached|Resources|SpawnStreams|SpawnSignals|TerminalLosesNothing|StreamCalls|Pool.*Fresh|Files|FilesViewOfGuest|$\
	Snapshot|Commands|Bindings|Mounts|HalfClose|UnreadData|FetchByName|NetworkLimits|DeniedConnect|PermissionDenials|PermissionsOfRun|$\
	ContextPermissions|ContextTimeout|Evaluate|EvaluateErrors|HostIsKilled|WithoutDescriptors|ZygoteIsKilledDuringRuns|PublicCVEs)$$

GVISOR_TEST = $(ROOT) env GAOL_TEST_BINARY=$(abspath $(BIN)) GAOL_TEST_RUNSC=$(abspath $(dir $(BIN)))/runsc \
	PATH="$(abspath $(dir $(BIN))):$$PATH" GAOL_TEST_ISOLATION=$(1) $(GO) test -count=1 -vet=off

# Tests of sandboxes in virtual machines, without KVM: each sandbox takes seconds to boot, and Node to start.
MICROVM_TEST   = $(ROOT) env GAOL_TEST_BINARY=$(abspath $(BIN)) PATH="$(abspath $(dir $(BIN))):$$PATH" GAOL_TEST_ISOLATION=microvm GAOL_SLOW=20 $(GO) test -count=1 -vet=off
MICROVM_SAMPLE := ^Test(Programs|FilesPersist|CanceledByDeadline|LimitsReached|SpawnStreams|StreamCalls)$$

.DEFAULT_GOAL := help
.NOTPARALLEL: # several targets use the machine as a whole
.PHONY: help deps prebuilt build build-arm64 gvisor microvm image run serve install uninstall deb container test test-remote test-runc test-gvisor test-microvm test-vm test-fleet test-kubernetes page race fuzz attack soak packages fidelity mcp openapi check fmt vet lint lines bench clean generate npm npm-test bench-npm bench-snippets

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

deps: ## install missing packages on Debian or Ubuntu
	@.ci/deps

# The programs for images are made first and embedded, so that no machine that runs
# bin/gaol needs a compiler. go doc ./rootfs/programs has the details. They are beside the
# binary: tests that build another one may run at the same time.
PREBUILT = $(patsubst %/,%,$(dir $(BIN)))/prebuilt

# With the flags of the build of bin/gaol, so that it compiles no package for a second time. Meanwhile, go list
# downloads the other modules.
SETUP       = $(PREBUILT)/setup
BUILD_SETUP = $(LAZY_GC) $(GO) build $(COMPILE) -tags '$(STATIC)' -ldflags=-s -o $(SETUP) rootfs/setup.go

# bin/gaol lacks the commands that need the libraries of the server, and executes bin/gaol-server, which has all, for them. See
# cmd/gaol/noserver.go.
BUILD_PROGRAM = $(LAZY_GC) $(GO) build -overlay $(PREBUILT)/native.json $(COMPILE) -ldflags '$(LDFLAGS)'
BUILD_GAOL    = $(BUILD_PROGRAM) -tags 'noserver$(STATIC:%=,%)' -o $(BIN) ./cmd/gaol
BUILD_SERVER  = umask 022; $(BUILD_PROGRAM) -tags '$(STATIC)' -o $(dir $(BIN))gaol-server ./cmd/gaol

prebuilt: deps
	@$(GO) list -deps ./cmd/gaol >/dev/null & $(BUILD_SETUP) && $(SETUP) programs $(PREBUILT)/native; made=$$?; wait; exit $$made

build: prebuilt ## build bin/gaol, bin/gaol-server, bin/runc and bin/nats-server, which need no shared library and no compiler
	(umask 022; $(BUILD_RUNC) -ldflags '-s $(LINK)' -o $(dir $(BIN))runc $(RUNC) && $(BUILD_NATS) -o $(dir $(BIN))nats-server $(NATS)) & \
		($(BUILD_GAOL)) && ($(BUILD_SERVER)); built=$$?; wait $$! && exit $$built

# Debian's packages for arm64 are unpacked into bin/arm64: nothing but the compiler is installed.
# The result is tested for what can be seen without such a machine. CGO_LDFLAGS has the folder, too:
# Go's build cache distinguishes folders by it, and not by what pkg-config prints.
ARM64_LIB = $(CURDIR)/bin/arm64/root/usr/lib/aarch64-linux-gnu
ARM64_ENV = PKG_CONFIG_LIBDIR='$(ARM64_LIB)/pkgconfig' PKG_CONFIG_SYSROOT_DIR='$(CURDIR)/bin/arm64/root' \
	CGO_LDFLAGS='-L$(ARM64_LIB)' GOARCH=arm64 CGO_ENABLED=1 CC=aarch64-linux-gnu-gcc

build-arm64: deps ## build bin/gaol-arm64, with all commands, bin/runc-arm64 and bin/nats-server-arm64 with Debian's cross compiler
	@.ci/deps arm64
	.ci/arm64 bin/arm64
	$(BUILD_SETUP)
	$(SETUP) programs -arch arm64 -cc aarch64-linux-gnu-gcc -root bin/arm64/root bin/prebuilt/arm64
	$(ARM64_ENV) $(GO) build -overlay bin/prebuilt/arm64.json $(COMPILE) \
		-tags netgo,osusergo -ldflags '-s -w -X main.version=$(VERSION) $(STATIC_LINK)' -o bin/gaol-arm64 ./cmd/gaol
	umask 022; $(ARM64_ENV) $(BUILD_RUNC) -ldflags '-s $(STATIC_LINK)' -o bin/runc-arm64 $(RUNC)
	umask 022; GOARCH=arm64 $(BUILD_NATS) -o bin/nats-server-arm64 $(NATS)
	GAOL_TEST_ARM64='$(CURDIR)/bin/gaol-arm64' $(GO) test -count=1 -run '^TestARM64Binary$$' ./test/cli

gvisor: deps ## build bin/runsc, the program of gVisor with the corrections of .ci/gvisor.patch
	@.ci/deps gvisor
	$(LAZY_GC) .ci/gvisor $(dir $(BIN))runsc $(COMPILE)

# Nothing of it is installed, except for QEMU and mkfs.erofs.
microvm: deps ## fetch the kernel of virtual machines into bin/microvm
	@.ci/deps microvm
	.ci/microvm $(dir $(BIN))microvm

image: build ## build the default image if this version's is missing
	@$(ROOT) bin/gaol image build --if-missing

# Without the other programs, which only servers and the isolation runc need. The image is built while bin/gaol is compiled, and with less
# priority: both end at about the same time, and the linker, which uses one processor, does not leave the other one idle.
run: prebuilt ## set everything up and run two programs in a jail
	$(ROOT) nice -n 5 $(SETUP) image & $(BUILD_GAOL); built=$$?; wait $$! && exit $$built
	$(ROOT) bin/gaol run --json cmd/gaol/testdata/fibonacci.mjs
	$(ROOT) bin/gaol run cmd/gaol/testdata/hostname.mjs

serve: image ## serve the HTTP API on /run/gaol/gaol.sock; with other flags: make serve FLAGS='--socket /tmp/s'
	$(ROOT) bin/gaol serve $(FLAGS)

# It does not build, because that needs no root: make build && sudo make install.
install: ## install bin/gaol, bin/gaol-server, bin/runc and bin/nats-server below DESTDIR and PREFIX, with systemd units, group, completion and manual pages
	.ci/install $(BIN) '$(DESTDIR)' $(PREFIX)

# The configuration is kept if it was edited.
uninstall: ## remove what make install has installed; PURGE=1 also removes the configuration, images, snapshots, caches and logs
	.ci/uninstall '$(DESTDIR)' $(PREFIX) $(PURGE)

deb: build ## build the Debian package bin/gaol_VERSION_ARCH.deb
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) .ci/deb/build $(BIN) $(VERSION) bin/gaol_$(VERSION)_$$(dpkg --print-architecture).deb -Zzstd -z9

container: image ## build bin/gaol-container.tar, the container image of deploy/kubernetes
	$(ROOT) .ci/container $(BIN) $(VERSION) /var/lib/gaol $(dir $(BIN))gaol-container.tar

# The tests of the page need a browser, and axe-core from npm.
PAGE         := cmd/gaol/playground/page
PAGE_MODULES := $(PAGE)/node_modules/.package-lock.json

# The npm package needs Node and npm: see .ci/npm.
NPM_MODULES := cmd/npm/node_modules/.package-lock.json

test: image $(PAGE_MODULES) ## run the tests, except those that make soak runs: less than five minutes
	@.ci/deps test
	$(ROOT) $(GO_TEST) -short ./test/... ./...
	$(REMOTE_TEST) -run '$(REMOTE_SAMPLE)' $(addprefix ./test/,$(SANDBOXED))
	$(VERIFY)

test-vm: image ## run the tests of kernel features on Debian 12's kernel, in an emulated machine
	@.ci/deps vm
	$(ROOT) test/vm/run

test-remote: image ## run the tests of sandboxes that an agent makes in another process
	@.ci/deps test
	$(REMOTE_TEST) $(addprefix ./test/,$(SANDBOXED))
	$(VERIFY)

test-runc: image ## run the tests of sandboxes in containers of runc
	@.ci/deps test
	$(ROOT) env GAOL_TEST_BINARY=$(abspath $(BIN)) GAOL_TEST_ISOLATION=oci=$(abspath $(dir $(BIN))runc) $(GO) test -p 2 -count=1 -timeout 60m -short -vet=off $(addprefix ./test/,$(SANDBOXED))
	$(VERIFY)

# gaol and runsc are looked up in PATH.
test-gvisor: image gvisor ## run programs in jails inside gVisor, and the tests of sandboxes in gVisor
	@.ci/deps test
	$(call GVISOR_TEST,native) -v ./test/gvisor
	$(call GVISOR_TEST,gvisor) -p 2 -timeout 60m -short $(addprefix ./test/,$(SANDBOXED))
	$(VERIFY)

# gaol is looked up in PATH.
test-microvm: image microvm ## run the tests of sandboxes that virtual machines support, in emulated ones
	@.ci/deps test
	$(MICROVM_TEST) -p 1 -parallel 1 -timeout 30m -short -run '$(MICROVM_SAMPLE)' ./test/run
	$(MICROVM_TEST) -timeout 30m -v ./test/microvm
	$(VERIFY)

test-fleet: image $(NPM_MODULES) ## test fleets in full, kill nodes and engines under load for ten minutes, or as long as CHAOS says, and test servers, the clients and the npm package through another node
	@.ci/deps test
	$(NPM_BUILD) && ../../.ci/npm npx tsc -p test
	$(ROOT) env GAOL_TEST_CHAOS=$(or $(CHAOS),10m) $(GO_TEST) -timeout 1h -v ./test/fleet
	$(ROOT) .ci/npm env GAOL_TEST_FLEET=yes GAOL_TEST_NPM=yes $(GO_TEST) -short -p 1 ./test/server ./test/server/session ./test/server/mcp
	$(ROOT) env GAOL_TEST_FLEET=yes $(GO_TEST) -run '^TestClientScripts$$' ./test/cli
	$(ROOT) env GAOL_TEST_FLEET=yes test/conformance/run

# The first time, it builds Kubernetes. Nothing is installed.
test-kubernetes: container ## test deploy/kubernetes on a node of Kubernetes in namespaces, and the container image in a folder
	@.ci/deps test
	test/kubernetes/build
	$(ROOT) env GAOL_TEST_KUBERNETES=$(CURDIR)/bin/kubernetes GAOL_TEST_CONTAINER=$(abspath $(dir $(BIN)))/gaol-container.tar $(GO_TEST) -v ./test/kubernetes

race: image ## race hostile guests against the host's file operations, a minute each
	$(ROOT) env GAOL_TEST_RACE=1m $(GO) test -count=1 -v -run '^(TestRace|TestFilesWhileGuestRaces)$$' ./vfs/hostfs ./test/host

fuzz: image ## compare 300 random sets of permissions with what the kernel enforces
	$(ROOT) env GAOL_TEST_FUZZ_SEED=$$(date +%s) GAOL_TEST_FUZZ_SETS=300 $(GO) test -count=1 -v -run '^TestPermissionFuzz$$' ./test/permissions

attack: image ## run all attacks of snippets, try the entry points of public exploits, attack a server beside a measured neighbour, exhaust each kind of kernel object from inside a jail, and print what was charged
	$(ROOT) $(GO) test -count=1 -timeout 15m -run '^Test((Shared)?SnippetsWithoutLint|PublicCVEs|EscapeImageCache)$$' ./test/escape
	$(ROOT) env GAOL_TEST_ATTACK=2s GAOL_TEST_BINARY=$(abspath $(BIN)) $(GO) test -count=1 -timeout 15m -v -run '^TestNeighbour$$' ./test/server/attack
	$(ROOT) env GAOL_TEST_ATTACK=2s $(GO) test -count=1 -timeout 15m -v -run '^Test(Exhaust|(E|In)gressMemory)$$' ./test/exhaust

soak: image ## run what make test leaves out, repeat tests with the other launcher, kill hosts, and look for leaks after many runs
	$(ROOT) env GAOL_TEST_LAUNCHER=exec $(GO_TEST) -short $(addprefix ./test/,$(SANDBOXED))
	$(ROOT) $(GO_TEST) -run '$(call MARKED,Soak)' $(call MARKED_IN,Soak)
	$(ROOT) env GAOL_TEST_CHAOS=$(CHAOS) GAOL_TEST_SANDBOXES=$(SANDBOXES) GAOL_TEST_KILLS=$(KILLS) GAOL_TEST_RUNS=$(RUNS) \
		$(GO) test -p 1 -count=1 -vet=off $(FAST_LINK) -timeout 3h -v -run '$(call MARKED,Alone)' $(call MARKED_IN,Alone)
	$(VERIFY)

# Snippets with zustand, read by the adapter that docs/snippets.md shows.
SNIPPET_MODULES := test/packages/snippets/node_modules/.package-lock.json

packages: image $(SNIPPET_MODULES) ## compare programs that use popular npm packages with plain Node, check snippets with zustand, and try the recipes of the documentation
	@.ci/deps packages
	sed -n '/^\/\/ zustand\.mjs$$/,/^```$$/{/^```/!p}' docs/snippets.md >bin/zustand.mjs
	$(ROOT) bin/gaol snippet check -v --adapter bin/zustand.mjs --node-modules test/packages/snippets/node_modules test/packages/snippets
	$(ROOT) $(GO) run ./test/packages
	$(ROOT) env GAOL_TEST_BINARY=$(abspath $(BIN)) $(GO) test -count=1 -vet=off -timeout 1h -v -run '$(call MARKED,Packages)' $(call MARKED_IN,Packages)

fidelity: image ## compare Node's own tests in jails with plain Node: two hours
	@.ci/deps fidelity
	$(ROOT) $(GO) run ./test/fidelity
	$(ROOT) $(GO) run ./test/fidelity -defaults

mcp: image ## judge the MCP server by the MCP project's conformance suite and inspector, from npm
	$(ROOT) test/conformance/run

NPM_BUILD    = cd cmd/npm && ../../.ci/npm npm run --silent build

NPM_CPU     := $(if $(filter aarch64,$(shell uname -m)),arm64,x64)

NPM_NODES   := cmd/npm/judge/node_modules/.package-lock.json

%/node_modules/.package-lock.json: %/package-lock.json
	cd $* && $(CURDIR)/.ci/npm npm ci --no-audit --no-fund --loglevel=error
	@touch $@

# Whether make npm also packs the programs for arm64, which needs a cross compiler: make npm ARM64=yes
ARM64     ?=
NPM_ARM64 := arm64=bin/gaol-arm64,bin/runc-arm64

npm: build $(if $(ARM64),build-arm64) $(NPM_MODULES) ## build the npm packages bin/npm/*.tgz, with ARM64=yes also for arm64; nothing is published
	$(NPM_BUILD)
	rm -rf bin/npm
	.ci/npm node cmd/npm/scripts/pack.mjs bin/npm '$(VERSION)' $(NPM_CPU)=$(dir $(BIN))gaol-server,$(dir $(BIN))runc $(if $(ARM64),$(NPM_ARM64))

npm-test: image $(NPM_MODULES) $(NPM_NODES) $(PAGE_MODULES) ## test the npm package, as it is and as it is installed, by all versions of Node, and the playground's modules
	cd $(PAGE) && $(CURDIR)/.ci/npm npm run --silent check && $(CURDIR)/.ci/npm npm test --silent && $(CURDIR)/.ci/npm node build.mjs --check
	$(NPM_BUILD) && ../../.ci/npm npx tsc -p test
	$(ROOT) .ci/npm env GAOL_TEST_NPM=yes $(GO_TEST) -run '^TestDoors$$' ./test/server/session
	cd cmd/npm && $(ROOT) ../../.ci/npm node scripts/judge.mjs '$(abspath $(BIN))'

page: $(PAGE_MODULES) ## bundle the playground's page after a change of its source, by Node, into the folder that bin/gaol embeds
	cd $(PAGE) && $(CURDIR)/.ci/npm node build.mjs

# How often make bench-npm measures each.
TIMES ?= 50

bench-npm: image $(NPM_MODULES) $(NPM_NODES) ## compare the npm package's speed with the SDK's, and that of secure-exec, which takes 1.2 GB
	$(NPM_BUILD)
	.ci/npm npm install --silent --no-audit --no-fund --prefix bin/secure-exec secure-exec@0.2.21
	$(ROOT) env GAOL_NODE='$(wildcard $(CURDIR)/cmd/npm/judge/node_modules/node24/bin/node)' GAOL_SECURE_EXEC=$(CURDIR)/bin/secure-exec \
		$(GO) test -run '^$$' -bench . -benchtime $(TIMES)x -timeout 1h ./test/npm

# The in-process equivalent bundles with the version of esbuild that gaol has.
bench-snippets: image $(NPM_MODULES) $(NPM_NODES) ## compare snippets with esbuild and a worker thread in the caller's process, without a sandbox
	$(NPM_BUILD)
	.ci/npm npm install --silent --no-audit --no-fund --prefix bin/esbuild esbuild@$$($(GO) list -m -f '{{.Version}}' github.com/evanw/esbuild | sed s/^v//)
	for bench in Snippet:$(TIMES) SnippetCheck:5; do \
		$(ROOT) env GAOL_TEST_BINARY=$(abspath $(BIN)) GAOL_NODE='$(wildcard $(CURDIR)/cmd/npm/judge/node_modules/node24/bin/node)' GAOL_ESBUILD=$(CURDIR)/bin/esbuild \
			$(GO) test -run '^$$' -bench "^Benchmark$${bench%:*}\$$" -benchtime $${bench#*:}x -timeout 1h ./test/npm || exit; \
	done

generate: ## write the files that derive from the table of operations: the npm package's types, and the list of docs/session.md
	$(GO) test -count=1 ./cmd/gaol/server/operation -update

openapi: image ## lint the server's OpenAPI document with spectral, from npm
	$(ROOT) env GAOL_TEST_OPENAPI=$(CURDIR)/bin/openapi.json $(GO) test -count=1 -run '^TestDocument$$' ./test/server
	npx --yes @stoplight/spectral-cli@6.16.3 lint --fail-severity=warn --ruleset test/server/spectral.yaml bin/openapi.json

check: deps fmt $(if $(wildcard .git),lines) lint test ## check the format, the budget of lines and lint, which includes vet, and test

fmt: deps ## fail if gofmt would change a file
	@unformatted=$$(gofmt -l .) && if [ -n "$$unformatted" ]; then echo "run gofmt -w on: $$unformatted"; exit 1; fi

vet: deps ## run go vet
	$(GO) vet ./...

lint: deps ## run golangci-lint on the code, vale on the prose, as .ci pins them, and count phrases in the text
	@.ci/deps lint
	$(LINT) run ./...
	$(if $(wildcard .git),$(GO) run ./test/count -words $(WORDS))
	$(PROSE) test --coverage .ci/vale
	$(PROSE) --no-global --output=line --glob='!{bin,cmd/npm/node_modules,cmd/npm/judge/node_modules,cmd/npm/dist,cmd/npm/build,cmd/gaol/playground/built,cmd/gaol/playground/page/node_modules,test/packages/snippets/node_modules}/**' .

# How many phrases that name things by clauses instead of terms make lint allows in 1,000 lines of each kind of text.
WORDS ?= -comments 4 -strings 4 -docs 4

# What make lines allows, by the count of test/count.
BUDGET ?= -lines 70139 -files 515 -packages 86 -typescript 4200

lines: deps ## count the product's lines, files and packages by folder, and fail above the budget
	@$(GO) run ./test/count $(BUDGET)

bench: image ## measure jails beside bare node, with bars
	$(ROOT) $(GO) run ./test/bench

clean: ## remove what was built; images stay (gaol image rm)
	rm -rf bin coverage.out
