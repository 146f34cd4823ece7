# `make help` lists the targets. Works with GNU make 3.81 and newer, on Linux and macOS.
PYTHON ?= python3
SEEDS ?= 1 2 3
PORT ?= 8000
DEVICE ?= cpu
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: help book test notebooks claims reseed colab assignment pdf bench bench-solvers bench-scale full full-chapter agreement live serve clean
.DEFAULT_GOAL := help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-13s %s\n", $$1, $$2}' Makefile

$(INSTALLED): pyproject.toml constraints.txt
	@command -v "$(PYTHON)" >/dev/null 2>&1 || { \
	  echo "$(PYTHON) not found: install Python 3.10 or newer, or name one with make PYTHON=..."; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "$(PYTHON) is too old: Python 3.10 or newer is needed; name one with make PYTHON=..."; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) has no venv module: install it (on Debian and Ubuntu: python3-venv)"; exit 1; }
	@echo "Installing into .venv (once, a few minutes) ..."
	@test -x $(BIN)/python || "$(PYTHON)" -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]' || { \
	  echo "The installation failed: see pip's message above; is the package index reachable?"; exit 1; }
	@touch $@

book: $(INSTALLED) ## build the site, warnings as errors, and print the page to open
	@$(BIN)/jupyter-book build . -W -n --keep-going --quiet || { rm -rf _build/.doctrees; exit 1; }
	@$(BIN)/python -c 'from pathlib import Path; print("The book:", Path("_build/html/index.html").resolve().as_uri())'

test: book ## run everything that must pass: code style, package, notebooks (strict nbval), rules, site
	@$(BIN)/ruff check --quiet .
	@FEATLEARN_PROGRESS=off OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile

notebooks: $(INSTALLED) ## re-execute in place the notebooks whose code or package changed
	@$(BIN)/python -m book notebooks

claims: $(INSTALLED) ## print the scoreboard, write _build/claims.json
	@$(BIN)/python -m book claims

reseed: $(INSTALLED) ## run every notebook under other seeds: make reseed SEEDS="1 2 3"
	@$(BIN)/python -m book reseed $(SEEDS)

colab: book ## write the notebooks for Colab, without solutions, and the solutions apart, to _build/colab
	@$(BIN)/python -m book.colab

assignment: book ## write an nbgrader assignment: make assignment CHAPTER=04 (WRITTEN=yes adds the derivations)
	@$(BIN)/python -m book.assignment "$(CHAPTER)" $(if $(filter yes,$(WRITTEN)),--written)

pdf: book ## print the book and the exercise sheets with Chromium, to _build/pdf
	@$(BIN)/python -m book.printing

bench: $(INSTALLED) ## time the tangent kernels against others (ten minutes), write featlearn/data/speed.json
	@$(BIN)/python -m experiments.tangent_kernels

bench-solvers: $(INSTALLED) ## time the kernel solvers of chapter 1 anew (ten minutes)
	@$(BIN)/python -m experiments.solvers

bench-scale: $(INSTALLED) ## time kernel regression up to n = 65,536 (five minutes; a GPU, up to a million: DEVICE=cuda), write featlearn/data/scale_*.json
	@$(BIN)/python -m experiments.kernel_scale --device $(DEVICE)

full: $(INSTALLED) ## chapter 6 at d up to 100 (minutes on a GPU), write featlearn/data/damian.json
	@$(BIN)/python -m experiments.full_damian

full-chapter: $(INSTALLED) ## run a chapter with FEATLEARN_SCALE=full and keep its claims and curves: make full-chapter CHAPTER=04_ntk
	@$(BIN)/python -m experiments.full_chapter $(CHAPTER)

agreement: $(INSTALLED) ## compare every kernel, solver and experiment on a GPU with the CPU, write featlearn/data/agreement.json
	@$(BIN)/python -m experiments.agreement

live: $(INSTALLED) ## compute the data of the live figures (two minutes), write featlearn/data/live.json
	@$(BIN)/python -m experiments.live_figures

serve: book ## build the site and serve it on this machine, port 8000 or PORT=...
	@echo "http://localhost:$(PORT)/  (Ctrl-C stops)"
	@$(BIN)/python -m http.server $(PORT) --bind 127.0.0.1 --directory _build/html

clean: ## remove what was built (not .venv)
	@rm -rf _build .pytest_cache .ruff_cache .hypothesis
