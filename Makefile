# trimem. `make` alone lists what there is; everything works from a fresh clone.

PYTHON ?= python3
ARGS ?=

# The environment is made once for each content of these two files.
INPUTS := $(shell cat pyproject.toml requirements.lock | cksum | tr ' ' -)
READY := .venv/ready-$(INPUTS)
RUN := .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help env demo test lint types servers servers-status servers-down clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-24s %s\n", $$1, $$2 }'

env: $(READY) ## the environment in .venv, with the versions of requirements.lock

$(READY):
	@$(PYTHON) -c 'import sys; sys.exit("trimem needs Python 3.11 or newer; name one: make PYTHON=python3.12 ..." if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(RUN) -m pip install --quiet --disable-pip-version-check --constraint requirements.lock --editable '.[dev]'
	@rm -f .venv/ready-*
	@touch $@

demo: $(READY) ## six weeks of two people: contexts from all tiers, a night, a replay
	.venv/bin/trimem demo $(ARGS)

test: $(READY) ## all tests, on the local stack and on what `make servers` runs; ARGS='-n 0 -k name' for some
	$(RUN) -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal $(ARGS)

lint: $(READY) ## ruff: rules and format
	$(RUN) -m ruff check
	$(RUN) -m ruff format --check --quiet

types: $(READY) ## mypy, strict
	$(RUN) -m mypy

servers: $(READY) ## real Redis, PostgreSQL, Chroma and Neo4j without Docker; prints their URLs
	$(RUN) scripts/servers.py up $(ARGS)

servers-status: $(READY) ## which of them answer
	$(RUN) scripts/servers.py status

servers-down: ## stop them; their data stays
	@if [ -x $(RUN) ]; then $(RUN) scripts/servers.py down; fi

clean: ## remove everything that was made here, servers and their data included
	@if [ -x $(RUN) ]; then $(RUN) scripts/servers.py wipe; fi
	@if [ -d .demo ]; then .venv/bin/trimem down --home .demo; fi
	rm -rf .venv .venv-models .servers .demo .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist *.egg-info

-include models.mk
