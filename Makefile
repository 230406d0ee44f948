# The project's verbs. A newcomer needs two of them: `make release` and `make test`.
# Each installs what it needs: Debian packages, and .venv from the lock files. With INSTALL=no it only names what is missing.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
PYTHON := .venv/bin/python
export PATH := $(CURDIR)/.venv/bin:$(PATH)
# Undoes settings that a shell or a git hook may have made: `pip install --user`, other modules, another repository, `make -j`.
export PIP_USER := 0
export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport PYTHONPATH PYTHONHOME PYTHONOPTIMIZE CDPATH GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
.NOTPARALLEL:
WHEELYARD := .venv/bin/wheelyard
# The environment, the toolkit, wheelscope, opwright's wheel, and what maintains the three tools.
include tools/maintenance.mk
# Reports missing arguments before setting anything up, which takes minutes.
$(if $(filter new,$(MAKECMDGOALS)),$(if $(NAME),,$(error give the name: make new NAME=my-ext DEST=../my-ext)))
$(if $(filter tag,$(MAKECMDGOALS)),$(if $(VERSION),,$(error give the version: make tag VERSION=x.y.z)))

.PHONY: help
help: ## Show this list
	@( sed -nE 's/^# --- ([^-]*) -+$$/\n\1/p; s/^([a-z][a-z-]*):.*## /  \1\t/p' Makefile | expand -t 16; \
	  echo; echo "\`make help-tools\` lists the targets for maintainers of the tools." ) 2>/dev/null || : # `make help | head`

# --- The package --------------------------------------------------------------------------------
.PHONY: install dev new
install: test-env toolkit ## Build the package and install it in .venv, editable
	@tools/setup/need.sh $$(.venv/bin/opwright doctor | sed -n 's/.*apt-get install \(g++-[0-9]*\)$$/\1/p') # if g++ is too new for nvcc
	@OPWRIGHT_CUDA=on $(PYTHON) -m pip install --quiet --no-build-isolation --editable .

dev: test-env toolkit ## Rebuild what changed, for the GPU in this machine or for GPU=9.0; WATCH=tests/package: at each save, then test
	@tools/setup/need.sh ccache || echo "building without a compiler cache"
	@.venv/bin/opwright dev $(if $(GPU),--gpu '$(GPU)') $(if $(WATCH),--watch $(WATCH))

new: tools tool-wheels ## Create a new project: NAME=my-ext DEST=../my-ext
	@$(WHEELYARD) new '$(NAME)' '$(or $(DEST),../$(NAME))' --tools '$(CURDIR)/build/tools'

# --- Tests --------------------------------------------------------------------------------------
.PHONY: check lint test docs
# Tests build for one GPU target, with PTX for the others: seconds instead of minutes.
check test test-docs: export TORCH_CUDA_ARCH_LIST ?= 8.0+PTX
check: install ## Build the package and test each op with one dtype, in about a minute (`make test` runs everything)
	@OPWRIGHT_TESTS=quick $(PYTHON) -m pytest -q -n 2 tests/package/test_ops.py

lint: test-env ## Check the formatting and types of everything
	@.venv/bin/ruff check . && .venv/bin/ruff format --check .
	@.venv/bin/opwright runtime cuda_ext_example
	@$(PYTHON) -m mypy
	@git ls-files '*.cpp' '*.h' '*.cu' '*.cuh' ':!tests' ':!tools/wheelscope' | xargs .venv/bin/clang-format --dry-run -Werror
	@for tool in wheelscope wheelyard; do $(MAKE) --no-print-directory -C tools/$$tool lint VENV='$(CURDIR)/.venv'; done

# The compiler cache is among the packages, and compilers follow.
test: test-packages lint install docs ## Run every test, with one dtype of each kind; whole releases and the pages' commands have their own targets
	@OPWRIGHT_CUDA=on $(PYTHON) setup.py --quiet build_cpp # the standalone program
	@failed=; for suite in wheelscope package opwright wheelyard; do $(MAKE) --no-print-directory test-$$suite || failed+=" test-$$suite"; done; \
	  test -z "$$failed" || { echo "error: these failed:$$failed; each can be run alone: make$$failed" >&2; exit 1; }

.PHONY: test-packages
test-packages:
	@tools/setup/need.sh python3 # which knows what else is missing
	@tools/setup/need.sh unzip ccache redis-server $$($(YARD) packages)

docs: tools ## Build the documentation site in build/site; a dead link is an error
	@mkdir -p build/pages && $(WHEELYARD) plan --place github --support >build/pages/support.md
	@for file in matrix policy; do $(WHEELYARD) schema $$file >build/pages/$$file.schema.json && \
	  $(WHEELYARD) schema $$file --markdown >build/pages/$$file.md; done
	@VENV=build/docs-venv tools/setup/venv.sh docs/docs.lock
	@NO_MKDOCS_2_WARNING=1 build/docs-venv/bin/mkdocs build --strict
	@echo "the site is in build/site; to read it: python3 -m http.server --directory build/site, then open http://127.0.0.1:8000"

# --- Releases -----------------------------------------------------------------------------------
.PHONY: plan release report tag clean-release
plan: tools ## Show which wheels are built, what they serve and where they are verified
	@$(WHEELYARD) plan

release: tools wheelscope ## Build, gate and verify the wheels, and publish them to an index on this machine (SLOW=1: slow cells too)
	@$(WHEELYARD) release $(if $(BASE),--base $(BASE)) $(if $(SLOW),--slow)
	@$(MAKE) --no-print-directory --silent compare-images
	@$(MAKE) --no-print-directory --silent $(or $(RELEASE_FOLDER),build/release)/tools/added

report: tools wheelscope ## Write the report of the last release and open it
	@$(WHEELYARD) report
	@test -n "$${DISPLAY:-}$${WAYLAND_DISPLAY:-}" && $(PYTHON) -m webbrowser -t "file://$(CURDIR)/build/release/report.html" \
	  || echo "no browser opens here; open file://$(CURDIR)/build/release/report.html, or copy that one file"

tag: tools ## Make the release commit and its tag: VERSION=x.y.z
	@$(WHEELYARD) tag '$(VERSION)'

clean-release: ## Delete the last release; images are kept
	@mkdir -p wheelhouse build/release
	@flock --nonblock build/release/.lock find wheelhouse build/release -mindepth 1 -not -name .gitkeep -not -name .lock -delete || \
	  { echo "error: a release is running; wait for it, or stop it" >&2; exit 1; }
