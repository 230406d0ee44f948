# The project's verbs. A newcomer needs two of them: `make release` and `make test`.
# Each sets up what it needs: Debian packages, and .venv from the lock files. INSTALL=no: say what is missing, and stop.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
PYTHON := .venv/bin/python
export PATH := $(CURDIR)/.venv/bin:$(PATH)
WHEELYARD := .venv/bin/wheelyard
# The environment, the toolkit, wheelscope, opwright's wheel, and what maintains the three tools.
include $(dir $(firstword $(MAKEFILE_LIST)))tools/maintenance.mk

.PHONY: help
help: ## What each target does
	@sed -nE 's/^# --- ([^-]*) -+$$/\n\1/p; s/^([a-z][a-z-]*):.*## /  \1\t/p' Makefile | expand -t 16
	@echo; echo "\`make help-tools\` lists the targets for maintainers of the tools."

# --- The package --------------------------------------------------------------------------------
.PHONY: install dev watch cpp ptx inside symbols new
install: test-env toolkit ## Build the package and install it, editable, in .venv
	@OPWRIGHT_CUDA=on $(PYTHON) -m pip install --quiet --no-build-isolation --editable .

TESTS ?= tests/package/test_ops.py
dev watch: test-env toolkit
	@tools/setup/need.sh ccache || echo "building without a compiler cache"
	@.venv/bin/opwright dev $(if $(GPU),--gpu '$(GPU)') $(if $(filter watch,$@),--watch $(TESTS))
dev: ## Build what changed for the GPU in this machine, or GPU=9.0, into the editable package
watch: ## The same at each save, then run TESTS=tests/package/test_ops.py

cpp: test-env toolkit ## The library and the standalone program, without pip
	@OPWRIGHT_CUDA=on $(PYTHON) setup.py --quiet build_cpp

# What the compilers made of an op (OP, or a source CU, for one GPU) and of the whole library.
OP ?= add
CU ?= build/inside/$(OP).cu
LIBRARY ?= cuda_ext_example/libcuda_ext_example.so
NVCC = $(if $(CUDA_HOME),$(CUDA_HOME)/bin/nvcc,nvcc)
PTX = build/inside/$(basename $(notdir $(CU))).ptx
INSIDE = build/inside/$(basename $(notdir $(LIBRARY)))

cuda_ext_example/libcuda_ext_example.so:
	@$(MAKE) --no-print-directory install

ptx: tools toolkit ## PTX of one op, or of one source: OP=cust_add GPU=9.0
	@mkdir -p build/inside
	@printf '#include "%s"\n' opwright/elementwise.cuh $(OP).h >build/inside/$(OP).cu
	@$(NVCC) --ptx -Icsrc -I"$$(.venv/bin/opwright include)" -std=c++17 -DOPWRIGHT_WITH_CUDA --expt-relaxed-constexpr \
	  --gpu-architecture=compute_$(subst .,,$(or $(GPU),9.0)) --output-file $(PTX) $(CU)
	@echo "$(PTX): $$(grep -c '\.entry' $(PTX)) kernels"

inside: test-env $(LIBRARY) ## PTX and SASS of the built library, or of LIBRARY=FILE.so
	@mkdir -p build/inside
	@PATH=$$(echo .venv/lib/python3*/site-packages/nvidia/cu13/bin):$$PATH; \
	  cuobjdump --list-elf --list-ptx $(LIBRARY); \
	  cuobjdump --dump-ptx $(LIBRARY) >$(INSIDE).ptx; \
	  cuobjdump --dump-sass $(LIBRARY) | c++filt >$(INSIDE).sass
	@wc -l $(INSIDE).ptx $(INSIDE).sass

symbols: $(LIBRARY) ## What the built library, or LIBRARY=FILE.so, needs and defines
	@readelf --dynamic --wide $(LIBRARY) | sed -n 's/.*(NEEDED).*\[\(.*\)\]/needs \1/p'
	@nm --dynamic --demangle --with-symbol-versions $(LIBRARY)

new: tools tool-wheels ## A project of your own: NAME=my-ext DEST=../my-ext
	@$(WHEELYARD) new $(or $(NAME),$(error give the name: make new NAME=my-ext DEST=../my-ext)) '$(or $(DEST),../$(NAME))' --tools '$(CURDIR)/build/tools'

# --- Tests --------------------------------------------------------------------------------------
.PHONY: check lint test docs
# Tests build for one GPU target, with PTX for the others: seconds instead of minutes.
check test test-docs: export TORCH_CUDA_ARCH_LIST ?= 8.0+PTX
check: install ## Build the package and run the tests of each op with one dtype: a minute (`make test` runs all)
	@OPWRIGHT_TESTS=quick $(PYTHON) -m pytest -q -n 2 tests/package/test_ops.py

lint: test-env ## Format and type checks of everything
	@.venv/bin/ruff check . && .venv/bin/ruff format --check .
	@.venv/bin/opwright runtime cuda_ext_example
	@$(PYTHON) -m mypy
	@git ls-files '*.cpp' '*.h' '*.cu' '*.cuh' ':!tests' ':!tools/wheelscope' | xargs .venv/bin/clang-format --dry-run -Werror
	@for tool in wheelscope wheelyard; do $(MAKE) --no-print-directory -C tools/$$tool lint VENV='$(CURDIR)/.venv'; done

test: lint test-wheelscope cpp install docs ## Every test, except for whole releases and the commands of the pages
	@tools/setup/need.sh unzip ccache redis-server $$($(YARD) packages)
	@$(PYTHON) -m pytest -n 2
	@$(MAKE) --no-print-directory -C tools/opwright test VENV='$(CURDIR)/.venv'
	@$(YARD) test

docs: tools ## The documentation site in build/site; a dead link fails
	@$(YARD) reference
	@VENV=build/docs-venv tools/setup/venv.sh docs/docs.lock
	@NO_MKDOCS_2_WARNING=1 build/docs-venv/bin/mkdocs build --strict
	@echo "the site is in build/site; to read it: python3 -m http.server --directory build/site, then open http://127.0.0.1:8000"

# --- Releases -----------------------------------------------------------------------------------
.PHONY: plan images release report tag clean-release
plan: tools ## What is built, what it serves, where it is verified
	@$(WHEELYARD) plan

images: tools ## The images of `make release`, made ahead of it
	@$(WHEELYARD) image $(if $(BASE),--base $(BASE))

release: tools wheelscope ## Wheels from a clean clone: built, gated, verified, published to an embedded index (SLOW=1: slow cells too)
	@$(WHEELYARD) release $(if $(BASE),--base $(BASE)) $(if $(SLOW),--slow)
	@$(MAKE) --no-print-directory --silent $(or $(WHEELHOUSE),wheelhouse)/tools/added

report: tools wheelscope ## Write the report of the release in wheelhouse/, and open it
	@$(WHEELYARD) report
	@test -n "$${DISPLAY:-}$${WAYLAND_DISPLAY:-}" && $(PYTHON) -m webbrowser -t "file://$(CURDIR)/wheelhouse/report.html" \
	  || echo "no browser opens here; open file://$(CURDIR)/wheelhouse/report.html, or copy that one file"

tag: tools ## Make the release commit and its tag: VERSION=x.y.z
	@$(WHEELYARD) tag $(or $(VERSION),$(error give the version: make tag VERSION=x.y.z))

clean-release: ## Forget the release in wheelhouse/; images are kept
	@flock --nonblock wheelhouse/.lock find wheelhouse -mindepth 1 -not -name .gitkeep -not -name .lock -delete || \
	  { echo "error: a release is running in wheelhouse/; wait for it, or stop it" >&2; exit 1; }
