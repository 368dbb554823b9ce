# reliable-channel: `make demo` and `make test` need Python 3.11+ and make, and nothing else.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
SPARK_READY := $(VENV)/.spark-ready
SITE_READY := $(VENV)/.site-ready
RELEASE_READY := $(VENV)/.release-ready
# Half as many again as cores: tests of real processes and sockets wait for a third of their time.
WORKERS ?= $(shell echo $$((($$(getconf _NPROCESSORS_ONLN) * 3 + 1) / 2)))
# Else each worker compiles all tests again, and each process that a test starts all of ours.
export PYTHONDONTWRITEBYTECODE :=
PYTEST = $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal
QUICK  := $(wildcard $(addprefix tests/,sds segmentation engine state))
JS_PEER := plugins/reliable_channel_conformance/peers/js
PLUGINS := $(wildcard plugins/*/pyproject.toml)
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps
protoc  = PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m grpc_tools.protoc -I proto \
	--python_out=$(2) --mypy_out=quiet:$(2) proto/$(1).proto

.DEFAULT_GOAL := help
# What `make help` lists is a command and no file.
.PHONY: check-python $(shell sed -nE 's/^([a-z-]+):.*##.*/\1/p' $(firstword $(MAKEFILE_LIST)))

help: ## list what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

demo: $(if $(AUDIT),$(SPARK_READY),$(READY)) ## five participants, a lossy network, one log: the main job in under a minute (AUDIT=1: with journals and their audit; Java 17 or 21)
	@$(if $(AUDIT),rm -rf build/demo-journals)
	@$(BIN)/reliable-channel demo $(if $(AUDIT),--journals build/demo-journals) $(ARGS)
	@$(if $(AUDIT),$(BIN)/reliable-channel audit build/demo-journals --out build/demo-report)

quick: $(READY) ## the tests of the cores and of state, in some 20 s; or those of the module FILE=
	@tests="$(if $(FILE),$$($(BIN)/python -m tests.mirror $(FILE)),$(QUICK))" && $(PYTEST) -m "not slow" $$tests $(ARGS)

test: $(READY) ## all tests but the slow ones and those of Spark and interop, on all cores (WORKERS=1)
	@$(PYTEST) -m "not slow" $(ARGS)

test-slow: $(READY) ## the long tests: planted defects, kills, full disks, whole simulations, pages
	@$(PYTEST) -m slow $(ARGS)

test-spark: $(SPARK_READY) ## the tests of the pipeline on Spark: they need Java 17 or 21
	@$(BIN)/python -m pytest tests/plugins/audit/on_spark $(ARGS)

lint: $(READY) ## ruff, the arrows of the design, and that the tests mirror the code
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python -m tests.mirror

types: $(READY) ## mypy --strict
	@$(BIN)/mypy

size: $(READY) ## lines, statements and files of each room, and pages and make targets
	@$(BIN)/python -m tests.size

sim: $(READY) ## 300 simulated groups in virtual time, each seed with faults of its own; then 60 of which a majority heals (FOREVER=1: without end, from a seed nobody ran before; Ctrl-C tells how it went)
ifdef FOREVER
	@$(BIN)/reliable-channel simulate --forever --first-seed $$(date +%s)000 $(ARGS)
else
	@$(BIN)/reliable-channel simulate --seeds 300 --first-seed 1 $(ARGS)
	@$(BIN)/reliable-channel simulate --seeds 60 --first-seed 1 --liveness $(ARGS)
endif

conformance: $(READY) ## the formal model (WHAT=model: nothing else), then the kit with our peer and with stock js-waku (which needs node and npm); build/conformance
	@$(BIN)/python -m reliable_channel_conformance.model
ifneq ($(WHAT),model)
	@$(BIN)/reliable-channel conformance --out build/conformance/ours $(ARGS)
	@rm -rf build/conformance/peer-js && mkdir -p build/conformance && cp -r $(JS_PEER) build/conformance/peer-js
	@cd build/conformance/peer-js && npm ci --no-audit --no-fund --ignore-scripts --silent
	@# What js-waku breaks is a result, and no failure of this run.
	-@$(BIN)/reliable-channel conformance --peer "node build/conformance/peer-js/peer.mjs" \
		--out build/conformance/js-waku $(ARGS)
endif

format: $(READY) ## let ruff tidy the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

BENCHES := core runtime native state pipeline hub
bench: $(if $(filter pipeline,$(WHAT)),$(SPARK_READY),$(READY)) ## WHAT=core (the default, beside js-waku), runtime, native, state, pipeline or hub: docs/benchmark.md; ARGS=--help
	@$(if $(filter-out $(BENCHES),$(WHAT)),echo "WHAT must be one of $(BENCHES) (got '$(WHAT)')" >&2; exit 2)
	@$(BIN)/python -m bench.$(or $(WHAT),core) $(ARGS)

fuzz: $(READY) ## every decoder, for FUZZ_SECONDS=600 in all; ARGS="sds_spec" fuzzes one alone
	@$(BIN)/python -m tests.fuzz $(ARGS)

vectors: $(READY) ## the golden vectors of other implementations
	@$(BIN)/python -m tests.vectors tests/vectors/data/js-waku tests/vectors/data/waku \
		tests/vectors/data/nim-sds tests/vectors/data/mvds tests/vectors/data/svs \
		tests/vectors/data/status tests/vectors/data/status-real tests/vectors/data/status-ratchet \
		tests/vectors/data/libp2p

interop: $(READY) ## other implementations, real ones: js-waku and Waku nodes in containers (FULL=1: all cells; TABLE=docs/interop.md writes its table), MVDS, SVS, a Status bot
	@INTEROP_FULL=$(FULL) INTEROP_TABLE=$(TABLE) $(BIN)/python -m pytest $(if $(TABLE),interop/waku,interop) -s $(ARGS)

compat: $(READY) ## the official suites of a checkout, SUITES=DIR, unmodified, on the shipped node: REST and bindings; COMPAT_PYTHON has their requirements; build/compat
	@test -n "$(SUITES)" || { echo "make compat needs SUITES=DIR, a checkout of logos-delivery or of logos-delivery-interop-tests (docs/compat.md)"; exit 1; }
	@$(BIN)/python -m interop.compat.official $(SUITES) --python $(or $(COMPAT_PYTHON),$(SUITES)/.venv/bin/python) $(ARGS)

crash: $(READY) ## kill participants and node under load, 200 times; nothing may be lost (ARGS="--kills 20 --seed 5 --auto")
	@$(BIN)/python -m tests.crash $(ARGS)

mutation: $(READY) ## every small defect in sds and engine, one at a time: which do their tests miss? (hours; ARGS="--sample 100 --seed 5")
	@$(BIN)/python -m tests.mutation $(ARGS)

DOCS_compat = $(BIN)/python -m interop.compat.page build/compat docs/compat-tests.md
DOCS_tuning = $(BIN)/reliable-channel sweep docs/tuning.toml --results build/tuning --page docs/tuning.md $(ARGS)
docs: $(READY) ## write docs/reference.md from the docstrings, docs/api/commands.md from the commands, docs/conformance.md from the tests, the figures of docs/choosing.md; or one page that takes longer, WHAT=compat or tuning
ifdef WHAT
	@$(or $(DOCS_$(WHAT)),echo "WHAT must be one of compat tuning (got '$(WHAT)')" >&2; exit 2)
else
	@$(BIN)/python -m docs.generate
	@$(BIN)/python -m docs.commands
	@$(BIN)/python -m docs.conformance
	@$(BIN)/python -m docs.choosing
	@$(BIN)/python -m docs.message_states
endif

proto: $(READY) ## generate the protobuf modules from proto/
	@$(call protoc,sds,reliable_channel/sds/dialects)
	@$(call protoc,nim_sds,reliable_channel/sds/dialects)
	@$(call protoc,segmentation,reliable_channel/segmentation)
	@$(call protoc,libp2p,waku/libp2p)
	@$(call protoc,gossipsub,waku/libp2p)
	@$(call protoc,waku_libp2p,waku/p2p)
	@$(call protoc,mvds,plugins/reliable_channel_mvds/reliable_channel_mvds)
	@$(call protoc,mvds_later,plugins/reliable_channel_mvds/reliable_channel_mvds)
	@$(call protoc,mvds_channel,plugins/reliable_channel_mvds/reliable_channel_mvds/channel)
	@$(call protoc,status,plugins/reliable_channel_status/reliable_channel_status/wire)

lock: $(READY) ## pin the newest dependencies again, with hashes and without addresses
	@$(BIN)/python -m pip install --quiet uv
	@$(BIN)/uv pip compile pyproject.toml --extra cli requirements/dev.in --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-header --no-annotate --quiet --upgrade -o requirements/dev.txt
	@$(BIN)/uv pip compile pyproject.toml --extra cli --extra libp2p --constraint requirements/dev.txt --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-header --no-annotate --quiet -o requirements/base.txt
	@$(BIN)/uv pip compile requirements/spark.in --constraint requirements/dev.txt --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-header --no-annotate --quiet -o requirements/spark.txt
	@$(BIN)/uv pip compile requirements/release.in --constraint requirements/dev.txt --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-header --no-annotate --quiet -o requirements/release.txt
	@$(BIN)/uv pip compile requirements/site.in --constraint requirements/dev.txt --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-header --no-annotate --quiet -o requirements/site.txt

site: $(SITE_READY) $(SPARK_READY) ## the documentation as a site in build/site: it loads nothing from the network
	@$(BIN)/python -m docs.site

dist: $(RELEASE_READY) ## wheels and sdists of all packages in dist/, and tried in bare environments (PYTHONS="python3.12 python3.13")
	@PYTHONS="$(PYTHONS)" $(BIN)/python -m release $(ARGS)

stranger: $(RELEASE_READY) ## the pages of a newcomer in a bare environment (ARGS=--container: in a bare Debian container), from the wheels: install, tutorial, bot, breaking it; with times
	@$(BIN)/python -m release.stranger $(ARGS)

clean: ## remove what was built
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

check-python:
	@test -n "$(PYTHON)" || { echo "reliable-channel needs Python 3.11 or newer; set PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) cannot make virtual environments; on Debian: apt install python3-venv"; exit 1; }

$(READY): requirements/dev.txt $(PLUGINS) | check-python
	@echo "setting up $(VENV) (once; about a minute)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --require-hashes -r requirements/dev.txt
	@$(PIP) --no-build-isolation $(addprefix --editable ,. $(dir $(PLUGINS)))
	@touch $@

$(SITE_READY): requirements/site.txt $(READY)
	@echo "adding what builds the documentation to $(VENV) (once)"
	@$(PIP) --require-hashes -r requirements/site.txt
	@touch $@

$(RELEASE_READY): requirements/release.txt $(READY)
	@echo "adding what builds and checks distributions to $(VENV) (once)"
	@$(PIP) --require-hashes -r requirements/release.txt
	@touch $@

$(SPARK_READY): requirements/spark.txt $(READY)
	@echo "adding Spark to $(VENV) (once; half a gigabyte)"
	@$(PIP) --require-hashes --no-build-isolation -r requirements/spark.txt
	@touch $@
