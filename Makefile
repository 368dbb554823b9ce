# reliable-channel: `make demo` and `make test` need Python 3.11+ and make, and nothing else.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
SPARK_READY := $(VENV)/.spark-ready
SITE_READY := $(VENV)/site/.ready
RELEASE_READY := $(VENV)/.release-ready
PROTO_READY := $(VENV)/proto/.ready
# Twice as many as cores: tests of real processes and sockets wait for a third of their time.
WORKERS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) * 2)))
# Else each worker compiles all tests again, and each process that a test starts all of ours.
export PYTHONDONTWRITEBYTECODE :=
MEASURED = $(if $(COVERAGE),$(BIN)/coverage erase && )$(BIN)/python -m $(if $(COVERAGE),coverage run -m) pytest
QUICKLY = "not slow and not long"
PYTEST = $(MEASURED) --numprocesses $(WORKERS) --dist worksteal
SHOWN  = $(if $(COVERAGE), && $(BIN)/coverage combine --quiet && $(BIN)/python -m tests.branch_coverage)
QUICK  := $(wildcard $(addprefix tests/,sds segmentation engine state))
JS_PEER := plugins/reliable_channel_conformance/peers/js
PLUGINS := $(wildcard plugins/*/pyproject.toml)
# Bytecode is made when a module is imported, and most are never: 13 CPU seconds less of 61 for `make demo`.
pip     = $(1)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile
PIP    := $(call pip,$(BIN))
one_of  = $(if $(filter-out $(1),$(WHAT)),echo "WHAT must be one of: $(1) (got '$(WHAT)')" >&2; exit 2)
protoc  = PATH="$(abspath $(VENV)/proto/bin):$$PATH" $(VENV)/proto/bin/python -m grpc_tools.protoc -I proto \
	--python_out=$(2) --mypy_out=quiet:$(2) proto/$(1).proto

.DEFAULT_GOAL := help
# What `make help` lists is a command and no file.
.PHONY: check-python $(shell sed -nE 's/^([a-z-]+):.*##.*/\1/p' $(firstword $(MAKEFILE_LIST)))

help: ## list what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

demo: $(if $(AUDIT),$(SPARK_READY),$(READY)) ## five participants, a lossy network, one log (AUDIT=1: and its audit; Java 17 or 21)
	@$(if $(AUDIT),rm -rf build/demo-journals)
	@$(BIN)/reliable-channel demo $(if $(AUDIT),--journals build/demo-journals) $(ARGS)
	@$(if $(AUDIT),$(BIN)/reliable-channel check build/demo-journals --out build/demo-report)

quick: $(READY) ## the tests of the cores and of state, or those of the module FILE= (COVERAGE=1)
	@tests="$(if $(FILE),$$($(BIN)/python -m tests.mirror $(FILE)),$(QUICK))" && $(PYTEST) -m $(QUICKLY) $$tests $(ARGS)$(SHOWN)

test: $(READY) ## all tests but the slow ones and those of Spark and interop, on all cores (WORKERS=1; COVERAGE=1: and branch coverage)
	@$(PYTEST) -m $(QUICKLY) $(ARGS)$(SHOWN)

test-python: $(READY) ## the tests of cores, state and channel on other Pythons (PYTHONS="python3.12"; else python3.13, if it is here)
	@for python in $(or $(PYTHONS),python3.13); do \
		if found=$$($(BIN)/python -m release.pythons $$python); then \
			$(MAKE) --no-print-directory VENV=$(VENV)/$$python PYTHON=$$found QUICK="$(QUICK) tests/channel" quick || exit; \
		else $(if $(PYTHONS)$(CI),exit 1,echo "its tests are left out"); fi; \
	done

test-slow: $(READY) ## the slow tests: kills, full disks, whole simulations, pages
	@$(PYTEST) -m slow $(ARGS)

test-spark: $(SPARK_READY) ## the tests of the pipeline on Spark: they need Java 17 or 21
	@$(BIN)/python -m pytest plugins/reliable_channel_audit/audit_tests/on_spark $(ARGS)

lint: $(READY) ## ruff, the arrows of the design, and that the tests mirror the code (FIX=1: ruff tidies first)
	@$(if $(FIX),$(BIN)/ruff check --fix . && $(BIN)/ruff format .)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python -m tests.mirror

types: $(READY) $(RELEASE_READY) ## mypy --strict, and pyright on what users import
	@$(BIN)/mypy
	@$(BIN)/pyright --pythonpath $(BIN)/python

size: $(READY) ## lines, statements and files of each room, pages, make targets
	@$(BIN)/python -m tests.size

sim: $(READY) ## 100 simulated groups with faults, then 30 that a majority heals (FOREVER=1: new seeds until Ctrl-C)
ifdef FOREVER
	@$(BIN)/reliable-channel simulate --forever --first-seed $$(date +%s)000 $(ARGS)
else
	@$(BIN)/reliable-channel simulate --seeds 100 --first-seed 1 $(ARGS)
	@$(BIN)/reliable-channel simulate --seeds 30 --first-seed 1 --liveness $(ARGS)
endif

VECTORS := $(addprefix tests/vectors/data/,js-waku waku nim-sds mvds svs status status-real status-ratchet libp2p)
conformance: $(READY) ## the formal model, golden vectors of others, the kit with our peer and js-waku (WHAT=model, vectors or kit)
	@$(call one_of,model vectors kit)
ifeq ($(filter-out model,$(WHAT)),)
	@$(BIN)/python -m reliable_channel_conformance.model
endif
ifeq ($(filter-out vectors,$(WHAT)),)
	@$(BIN)/python -m tests.vectors $(VECTORS)
endif
ifeq ($(filter-out kit,$(WHAT)),)
	@$(BIN)/reliable-channel conformance --out build/conformance/ours $(ARGS)
	@rm -rf build/conformance/peer-js && mkdir -p build/conformance && cp -r $(JS_PEER) build/conformance/peer-js
	@cd build/conformance/peer-js && npm ci --no-audit --no-fund --ignore-scripts --silent
	@# What js-waku breaks is a result, and no failure of this run.
	-@$(BIN)/reliable-channel conformance --peer "node build/conformance/peer-js/peer.mjs" \
		--out build/conformance/js-waku $(ARGS)
endif

bench: $(if $(filter pipeline,$(WHAT)),$(SPARK_READY),$(READY)) ## WHAT=core (beside js-waku), runtime, native, state, pipeline or hub; ARGS=--help
	@$(call one_of,core runtime native state pipeline hub)
	@$(BIN)/python -m bench.$(or $(WHAT),core) $(ARGS)

hunt: $(READY) ## look long for defects: WHAT=fuzz (FUZZ_SECONDS=600), crash (200 kills), mutation (hours) or long (the longest tests); ARGS=--help
	@$(call one_of,fuzz crash mutation long)
	@$(if $(filter long,$(WHAT)),$(PYTEST) -m long,$(BIN)/python -m tests.$(or $(WHAT),fuzz)) $(ARGS)

interop: $(READY) ## real peers: js-waku and Waku nodes in containers, MVDS, SVS, a Status bot (FULL=1; TABLE=; SUITES=DIR: official suites)
ifdef SUITES
	@$(BIN)/python -m interop.compat.official $(SUITES) --python $(or $(COMPAT_PYTHON),$(SUITES)/.venv/bin/python) $(ARGS)
else
	@# Each file waits for its own peers.
	@INTEROP_FULL=$(FULL) INTEROP_TABLE=$(TABLE) $(BIN)/python -m pytest $(if $(TABLE),interop/waku,interop) \
		--capture=no --numprocesses 3 --dist loadfile $(ARGS)
endif

DOCS_compat = $(BIN)/python -m interop.compat.page build/compat docs/compat-tests.md
DOCS_tuning = $(BIN)/reliable-channel sweep docs/tuning.toml --results build/tuning --page docs/tuning.md $(ARGS)
docs: $(READY) ## generated pages, from docstrings, commands and tests (WHAT=compat or tuning: one that takes longer)
	@$(call one_of,compat tuning)
ifdef WHAT
	@$(DOCS_$(WHAT))
else
	@$(BIN)/python -m docs.generate
	@$(BIN)/python -m docs.commands
	@$(BIN)/python -m docs.choosing
	@$(BIN)/python -m docs.message_states
endif

proto: $(PROTO_READY) ## generate the protobuf modules from proto/
	@$(call protoc,sds,reliable_channel/sds/dialects)
	@$(call protoc,nim_sds,reliable_channel/sds/dialects)
	@$(call protoc,segmentation,reliable_channel/segmentation)
	@$(call protoc,ask,reliable_channel/conversation)
	@$(call protoc,libp2p,waku/libp2p)
	@$(call protoc,gossipsub,waku/libp2p)
	@$(call protoc,waku_libp2p,waku/p2p)
	@$(call protoc,mvds,plugins/reliable_channel_mvds/reliable_channel_mvds)
	@$(call protoc,mvds_later,plugins/reliable_channel_mvds/reliable_channel_mvds)
	@$(call protoc,mvds_channel,plugins/reliable_channel_mvds/reliable_channel_mvds/channel)
	@$(call protoc,status,plugins/reliable_channel_status/reliable_channel_status/wire)

LOCKED = --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --quiet
lock: $(READY) ## pin the newest dependencies again, with hashes and without addresses
	@$(BIN)/python -m pip install --quiet uv
	@$(BIN)/uv pip compile pyproject.toml --extra cli requirements/dev.in $(LOCKED) --upgrade -o requirements/dev.txt
	@$(BIN)/uv pip compile pyproject.toml --extra cli --extra libp2p --constraint requirements/dev.txt $(LOCKED) -o requirements/base.txt
	@for part in build release site spark; do \
		$(BIN)/uv pip compile requirements/$$part.in --constraint requirements/dev.txt $(LOCKED) -o requirements/$$part.txt || exit; \
	done
	@# Code that an older protobuf generates runs with it and with all newer ones: it has versions of its own.
	@$(BIN)/uv pip compile requirements/proto.in $(LOCKED) --upgrade -o requirements/proto.txt

site: $(SITE_READY) ## the documentation as a site in build/site: it loads nothing from the network
	@$(VENV)/site/bin/python -m docs.site

dist: $(RELEASE_READY) ## wheels and sdists in dist/, tried in bare environments (PYTHONS="python3.12"; WHAT=stranger: a newcomer's pages typed)
	@$(call one_of,stranger)
	@PYTHONS="$(PYTHONS)" $(BIN)/python -m release$(addprefix .,$(WHAT)) $(ARGS)

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

$(SITE_READY): requirements/site.txt | check-python
	@echo "setting up $(@D), which builds the documentation (once)"
	@$(PYTHON) -m venv $(@D)
	@$(call pip,$(@D)/bin) --require-hashes -r requirements/site.txt
	@touch $@

$(PROTO_READY): requirements/proto.txt | check-python
	@echo "setting up $(@D), which generates the protobuf modules (once)"
	@$(PYTHON) -m venv $(@D)
	@$(call pip,$(@D)/bin) --require-hashes -r requirements/proto.txt
	@touch $@

$(RELEASE_READY): requirements/release.txt $(READY)
	@echo "adding what builds and checks distributions to $(VENV) (once)"
	@$(PIP) --require-hashes -r requirements/release.txt
	@touch $@

$(SPARK_READY): requirements/spark.txt $(READY)
	@echo "adding Spark to $(VENV) (once; half a gigabyte)"
	@$(PIP) --require-hashes --no-build-isolation -r requirements/spark.txt
	@touch $@
