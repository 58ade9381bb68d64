# The sentence-transformers embedder and reranker against the real library, in an environment of their
# own: torch is large, and nothing else here needs it. It is kept while its pins are the same.

MODELS_ENV ?= .venv-models
MODELS_PINS := $(shell cat requirements.lock requirements-models.txt tests/models/stand_ins.py | cksum | tr ' ' -)
MODELS_READY := $(MODELS_ENV)/ready-$(MODELS_PINS)

.PHONY: test-models

test-models: $(MODELS_READY) ## the sentence-transformers embedder and reranker, with torch, in .venv-models
	HF_HUB_OFFLINE=1 $(MODELS_ENV)/bin/python -m pytest --confcutdir=tests/models tests/models $(ARGS)

$(MODELS_READY):
	$(PYTHON) -m venv --clear $(MODELS_ENV)
	$(MODELS_ENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement requirements.lock --requirement requirements-models.txt
	$(MODELS_ENV)/bin/python tests/models/stand_ins.py
	@touch $@
