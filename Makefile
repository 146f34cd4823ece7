# `make help` lists the targets. Works with GNU make 3.81 and newer, on Linux and macOS.
PYTHON ?= python3
SEEDS ?= 1 2 3
SOLUTIONS ?= yes
export SOLUTIONS
PORT ?= 8000
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: help book test test-package test-book check style notebooks claims reseed replicate plant colab course pdf slides experiment oldest release serve clean
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

book: $(INSTALLED) ## build the site, warnings as errors, and print the page to open (SOLUTIONS=no without solutions, all with those of the exam; also for colab and pdf)
	@$(BIN)/jupyter-book build . -W -n --keep-going --quiet || { rm -rf _build/.doctrees; exit 1; }
	@$(BIN)/python -c 'from pathlib import Path; print("The book:", Path("_build/html/index.html").resolve().as_uri())'

# Memory that was freed is kept for the next array: giving it back and asking again costs a tenth of the time.
KEEP := MALLOC_MMAP_THRESHOLD_=4000000000 MALLOC_TRIM_THRESHOLD_=8000000000
PYTEST := FEATLEARN_PROGRESS=off OMP_NUM_THREADS=1 $(KEEP) $(BIN)/python -m pytest

test: $(INSTALLED) ## run everything that must pass: style, types, book, package, notebooks (strict nbval), site
	@$(MAKE) --no-print-directory --jobs=2 test-package test-book

# Needs no site: runs while the book is built, and shows what it found when it is done.
test-package: style
	@mkdir -p _build
	@$(PYTEST) featlearn tests/package > _build/test-package.txt 2>&1; code=$$?; cat _build/test-package.txt; exit $$code

test-book: book
	@$(PYTEST) -n auto --dist loadfile --no-loadscope-reorder tests chapters --ignore tests/package

check: style ## style, types, and the tests of what changed since the last commit: a minute
	@FEATLEARN_PROGRESS=off OMP_NUM_THREADS=1 $(BIN)/python tests/changed.py

style: $(INSTALLED)
	@$(BIN)/ruff format --check --quiet . || { $(BIN)/ruff format --check .; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy

notebooks: $(INSTALLED) ## re-execute in place the notebooks whose code or package changed
	@$(BIN)/python -m book notebooks

claims: $(INSTALLED) ## print the scoreboard, write _build/claims.json
	@$(BIN)/python -m book claims

reseed: $(INSTALLED) ## run every notebook under other seeds: make reseed SEEDS="1 2 3"
	@$(BIN)/python -m book reseed $(SEEDS)

replicate: $(INSTALLED) ## run a page under seeds it never saw and store what held: make replicate PAGE=01_kernels/2_training SEEDS=30
	@$(BIN)/python -m book replicate "$(PAGE)" --seeds $(SEEDS)

plant: $(INSTALLED) ## run a page with a mistake for every prediction, which its claims must notice: make plant PAGE=01_kernels/2_training
	@$(BIN)/python -m book plant "$(PAGE)"

colab: book ## write the notebooks for Colab, without solutions, and the solutions apart, to _build/colab
	@$(BIN)/python -m book.colab

course: book ## write an nbgrader course to course/ (CHAPTER=04 for one chapter, WRITTEN=yes adds the derivations)
	@$(BIN)/python -m book.course $(CHAPTER) $(if $(filter yes,$(WRITTEN)),--written)

pdf: book ## print the book and the exercise sheets with Chromium, to _build/pdf
	@$(BIN)/python -m book.printing

slides: book ## write a deck of slides for each page with Chromium, as HTML and PDF, to _build/slides
	@$(BIN)/python -m book.slides --pdf

experiment: $(INSTALLED) ## run a long experiment: make experiment NAME=solvers (no NAME lists them; DEVICE=cuda, CHAPTER=06_damian/2_samples)
	@$(BIN)/python -m experiments $(NAME) $(CHAPTER) $(if $(DEVICE),--device $(DEVICE))

oldest: ## run the package's tests and all pages with the oldest versions, in .venv-oldest (PYTHON=python3.10)
	@PYTHON="$(PYTHON)" tests/oldest.sh

release: ## build the wheel into _build/dist and run a chapter from it in an empty environment (TAG=v1.0.0 checks the version)
	@PYTHON="$(PYTHON)" TAG="$(TAG)" tests/release.sh

serve: book ## build the site and serve it on this machine, port 8000 or PORT=...
	@echo "http://localhost:$(PORT)/  (Ctrl-C stops)"
	@$(BIN)/python -m http.server $(PORT) --bind 127.0.0.1 --directory _build/html

clean: ## remove what was built (not .venv)
	@rm -rf _build .pytest_cache .ruff_cache .hypothesis
