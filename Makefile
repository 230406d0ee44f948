# The project's verbs. A newcomer needs two of them: `make release` and `make test`.
# Each target sets up what it needs: Debian packages through scripts/need.sh, .venv from the lock files.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
PYTHON := .venv/bin/python
export PATH := $(CURDIR)/.venv/bin:$(PATH)
WHEELYARD := .venv/bin/wheelyard
# A tool's own targets, in the one environment of all.
SCOPE := $(MAKE) --no-print-directory -C tools/wheelscope VENV='$(CURDIR)/.venv'
YARD := $(MAKE) --no-print-directory -C tools/wheelyard VENV='$(CURDIR)/.venv'

.PHONY: help
help: ## What each target does
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | sort | expand -t 20

# --- Set-up -----------------------------------------------------------------------------------
.PHONY: tools tools-sign tools-publish test-env lock propose-locks lock-actions
tools: ## The pinned tools in .venv
	@scripts/need.sh g++ git
	@scripts/venv.sh ci/tools.lock
	@$(WHEELYARD) --version >/dev/null 2>&1 || $(PYTHON) -m pip install --quiet --no-deps --no-build-isolation --editable tools/wheelyard
	@test -x .venv/bin/opwright || $(PYTHON) -m pip install --quiet --no-deps --no-build-isolation --editable tools/opwright

# A job that can sign or upload has few packages, of a lock of its own, and runs wheelyard from the tree.
tools-sign tools-publish: tools-%:
	@scripts/need.sh git
	@scripts/venv.sh ci/$*.lock
	@test -x $(WHEELYARD) || { printf '#!/bin/sh\nPYTHONPATH=%s exec %s -m wheelyard "$$@"\n' \
	  '$(CURDIR)/tools/wheelyard' '$(CURDIR)/$(PYTHON)' >$(WHEELYARD) && chmod +x $(WHEELYARD); }
tools-sign: ## What signs a release, and nothing else, in .venv
tools-publish: ## What uploads a release, and nothing else, in .venv

test-env: tools ## The pinned tools and test packages (torch 2.10) in .venv
	@$(PYTHON) -c 'import os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")' 2>/dev/null || scripts/need.sh python3-dev
	@scripts/venv.sh tests/tests.lock

lock: tools ## Pin every .in file anew, newest first, and show what moved (KEEP=1: only what the .in files add or drop)
	@$(PYTHON) -m tools.release.locks $(if $(KEEP),--keep)

propose-locks: ## Open a pull request with the locks in build/locks/, as the workflow locks does
	@python3 -m tools.release.propose_locks build/locks

lock-actions: ## Record the tags of the actions that the workflows pin, from their repositories
	@python3 -m tools.release.actions $(ACTIONS_SOURCE)

# only here
.PHONY: new test-new
new: tools ## This project under another name: NAME=my-ext DEST=../my_ext (REPOSITORY=https://..., HOLDER="...")
	@scripts/need.sh clang-format
	@$(PYTHON) -m scripts.new_project $(or $(NAME),$(error give the name: make new NAME=my-ext DEST=../my_ext)) \
	  $(or $(DEST),$(error give the folder: make new NAME=$(NAME) DEST=../my_ext)) --repository='$(REPOSITORY)' --holder='$(HOLDER)'

test-new: test-env ## A new project's own tests and release, in a container without this repository (an hour)
	@RELEASE_TESTS=1 $(PYTHON) -m pytest -q -s tests/scripts/test_new_project_alone.py
# /only here

# --- The extension ------------------------------------------------------------------------------
# The CUDA toolkit: CUDA_HOME, or nvcc's on PATH, or else one from PyPI. tools/opwright/opwright/commands.py lists what else can be chosen.
ifeq ($(CUDA_HOME)$(shell command -v nvcc),)
export CUDA_HOME := $(CURDIR)/build/toolkit/13.0
toolkit: tools
	@echo "no nvcc here: taking CUDA 13.0 from PyPI into build/toolkit"
	@$(WHEELYARD) toolkit --cuda 13.0 $(CUDA_HOME)
else
toolkit: ;
endif

.PHONY: toolkit install cpp
install: test-env toolkit ## The package, editable, in .venv
	@OPWRIGHT_CUDA=on $(PYTHON) -m pip install --quiet --no-build-isolation --editable .

cpp: test-env toolkit ## The library and the standalone program, without pip
	@OPWRIGHT_CUDA=on $(PYTHON) setup.py --quiet build_cpp

# The kernel developer's loop, for the GPU in this machine or the one that GPU=9.0 names.
TESTS ?= tests/package/test_ops.py
.PHONY: dev watch cache-stats
dev watch: test-env toolkit
	@scripts/need.sh ccache || echo "building without a compiler cache"
	@$(PYTHON) -m opwright dev $(if $(GPU),--gpu '$(GPU)') $(if $(filter watch,$@),--watch $(TESTS))
dev: ## Build for this machine's GPU (or GPU=9.0), only what changed, into the editable package
watch: ## The same at each save, and run TESTS=tests/package/test_ops.py

cache-stats: ## Hits and size of the compiler cache
	@cache=$$(command -v ccache || command -v sccache) || { echo "error: no compiler cache; apt-get install ccache" >&2; exit 1; }; \
	  $$cache --show-stats

ROWS ?=
.PHONY: bench-build
bench-build: test-env toolkit ## Time builds, the usual way's and ours, into docs/bench/ (an hour; ROWS=ours-cold,... for some)
	@scripts/need.sh ccache
	@VENV=build/bench/venv scripts/venv.sh scripts/bench_build/bench.lock
	@$(PYTHON) -m scripts.bench_build $(if $(ROWS),--rows $(ROWS) --again)

# Looking inside: what the compilers made of an op (OP, or a source CU, for one GPU) and of the whole library.
OP ?= add
CU ?= build/inside/$(OP).cu
LIBRARY ?= cuda_ext_example/libcuda_ext_example.so
NVCC = $(if $(CUDA_HOME),$(CUDA_HOME)/bin/nvcc,nvcc)
PTX = build/inside/$(basename $(notdir $(CU))).ptx
INSIDE = build/inside/$(basename $(notdir $(LIBRARY)))

cuda_ext_example/libcuda_ext_example.so:
	@$(MAKE) --no-print-directory install

.PHONY: ptx inside symbols
ptx: tools toolkit ## PTX of one header of csrc, or of one source: OP=cust_add GPU=9.0
	@mkdir -p build/inside
	@printf '#include "%s"\n' opwright/elementwise.cuh $(OP).h >build/inside/$(OP).cu
	@$(NVCC) --ptx -Icsrc -Itools/opwright/opwright/include -std=c++17 -DOPWRIGHT_WITH_CUDA --expt-relaxed-constexpr \
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

# --- wheelscope ---------------------------------------------------------------------------------

.PHONY: wheelscope test-wheelscope
wheelscope: tools ## Build build/bin/wheelscope
	@scripts/need.sh $$($(SCOPE) --silent packages FOR=build)
	@$(SCOPE) build
	@install -C -D -t build/bin tools/wheelscope/build/bin/wheelscope
	@install -C -t .venv/bin tools/wheelscope/build/bin/wheelscope

test-wheelscope: test-env wheelscope ## wheelscope's tests and a short run of its fuzzers
	@scripts/need.sh $$($(SCOPE) --silent packages FOR=test)
	@$(SCOPE) test

# --- The pipeline -------------------------------------------------------------------------------
BASE ?=

# What the build needs and PyPI does not have: the same bytes from the same sources, whatever the umask and the folder.
OPWRIGHT_WHEEL := build/tools/opwright-0.1.0-py3-none-any.whl
$(OPWRIGHT_WHEEL): $(shell git ls-files tools/opwright/opwright tools/opwright/[A-Zp]* 2>/dev/null) | tools
	@$(MAKE) --no-print-directory -C tools/opwright wheel DESTINATION=$(CURDIR)/build/tools PYTHON=$(CURDIR)/$(PYTHON)

.PHONY: plan images release nightly compare-images clean-release tag report
plan: tools $(OPWRIGHT_WHEEL) ## What is built, what it serves, where it is verified
	@$(WHEELYARD) plan

images: tools $(OPWRIGHT_WHEEL) ## The images of `make release`, made ahead of it
	@$(WHEELYARD) image $(if $(BASE),--base $(BASE))

release: tools wheelscope $(OPWRIGHT_WHEEL) ## Wheels from a clean clone: built, gated, verified, published to an embedded index (SLOW=1: with slow cells too)
	@$(WHEELYARD) release $(if $(BASE),--base $(BASE)) $(if $(SLOW),--slow)
	@$(MAKE) --no-print-directory --silent $(or $(WHEELHOUSE),wheelhouse)/tools/added

nightly: tools wheelscope ## The package built on torch's newest build, and tested with it (TORCH_INDEX=URL; else PyPI's newest)
	@$$(test "$$(id -u)" = 0 || echo sudo) $(WHEELYARD) nightly $(if $(TORCH_INDEX),--torch-index '$(TORCH_INDEX)')

tag: tools ## Make the release commit and its tag: VERSION=x.y.z
	@$(WHEELYARD) tag $(or $(VERSION),$(error give the version: make tag VERSION=x.y.z))

report: tools wheelscope ## Write the report of the release in wheelhouse/, and open it
	@$(WHEELYARD) report
	@test -n "$${DISPLAY:-}$${WAYLAND_DISPLAY:-}" && $(PYTHON) -m webbrowser -t "file://$(CURDIR)/wheelhouse/report.html" \
	  || echo "no browser opens here; open file://$(CURDIR)/wheelhouse/report.html, or copy that one file"

.PHONY: tool-wheels check-tools check-tools-tag publish-tools
tool-wheels: wheelscope build/tools/made ## Wheels of wheelyard and wheelscope, in build/tools/
build/tools/made: $(shell git ls-files tools/wheelyard/wheelyard tools/wheelyard/*.* tools/wheelscope tools/release/wheels.py 2>/dev/null)
	@rm -f build/tools/wheel*.whl
	@$(PYTHON) -m tools.release.wheels build/tools
	@touch $@

%/tools/added: build/tools/made
	@$(MAKE) --no-print-directory check-tools
	@$(PYTHON) -m tools.release.publish wheelhouse build/tools
	@touch $@

check-tools: tools ## Are the wheels in build/tools/ sound? wheelscope judges its own
	@.venv/bin/wheelscope check --policy tools/wheelscope/policy.toml build/tools/wheelscope-*.whl
	@.venv/bin/twine check --strict build/tools/*.whl
	@.venv/bin/check-wheel-contents --no-config --ignore W009 build/tools/*.whl

check-tools-tag: tools ## Is the version of the wheels in build/tools/ the one that the tag on HEAD names?
	@tag=$$(git tag --points-at HEAD --list 'wheelyard-v*'); version=$$($(WHEELYARD) --version | cut -d' ' -f2); \
	  test "$$tag" = "wheelyard-v$$version" || { echo "error: HEAD carries '$$tag', but the tools are $$version: git tag wheelyard-v$$version" >&2; exit 1; }

publish-tools: tools-publish ## Upload what INDEX (testpypi or pypi) lacks of build/tools/
	@PYTHONPATH=tools/wheelyard $(PYTHON) -m tools.release.publish $(or $(INDEX),$(error give the index: make publish-tools INDEX=testpypi)) build/tools

.PHONY: docs publish-docs
docs: tools ## The documentation site in build/site, from README, docs/ and the other pages; a dead link fails
	@$(YARD) reference
	@VENV=build/docs-venv scripts/venv.sh docs/docs.lock
	@NO_MKDOCS_2_WARNING=1 build/docs-venv/bin/mkdocs build --strict
	@echo "the site is in build/site; to read it: python3 -m http.server --directory build/site, then open http://127.0.0.1:8000"

publish-docs: ## Push build/site as the branch that GitHub serves, as the workflow docs does
	@gh auth setup-git
	@python3 -m tools.website.publish build/site

compare-images: ## Have the images of two releases the same packages? OTHER=the other wheelhouse
	@diff --recursive --unified '$(or $(OTHER),$(error name the other wheelhouse: make compare-images OTHER=FOLDER))/packages' wheelhouse/packages
	@echo "the same packages in $$(ls wheelhouse/packages | wc -l) images"

clean-release: ## Forget the release in wheelhouse/; images are kept
	@find wheelhouse -mindepth 1 -not -name .gitkeep -delete

# --- Tests --------------------------------------------------------------------------------------
.PHONY: test test-docs test-package lint
# Tests build for one GPU target, with PTX for the others: seconds instead of minutes.
test test-docs test-package: export TORCH_CUDA_ARCH_LIST ?= 8.0+PTX
test: lint test-wheelscope cpp install docs ## Every test, but for the commands of the pages and for whole releases
	@scripts/need.sh unzip ccache redis-server $$($(YARD) packages)
	@$(PYTHON) -m pytest -n 2
	@$(YARD) test

test-docs: install wheelscope docs ## The site's links and faults; the pages' commands, with what they print (ONLINE=1: also those that ask PyPI)
	@scripts/need.sh $$($(YARD) browser)
	@WALK=1 $(PYTHON) -m pytest -n 2 --dist loadfile tests/docs tools/website

test-package: install ## The installed package's tests alone
	@$(PYTHON) -m pytest -n 2 tests/package

lint: test-env ## Format and type checks
	@scripts/need.sh clang-format
	@.venv/bin/ruff check . && .venv/bin/ruff format --check .
	@$(PYTHON) -m mypy
	@$(YARD) lint
	@git ls-files '*.cpp' '*.h' '*.cu' '*.cuh' ':!tests' ':!tools/wheelscope' | xargs clang-format --dry-run -Werror
	@scripts/need.sh $$($(SCOPE) --silent packages FOR=lint)
	@$(SCOPE) lint

.PHONY: rehearsal test-release test-cluster test-projects
rehearsal test-release test-cluster test-projects: test-env wheelscope
	@scripts/need.sh $$($(YARD) packages)
	@$(YARD) $@
rehearsal: ## The release workflow on this repository, every job, against an index on loopback (half an hour)
test-release: ## Real releases of another project, with faults injected (ALL=1: also those with tens of GB of images; KILLS=100)
test-cluster: ## A release on four workers: the bytes of one machine (half an hour)
test-projects: ## Releases of the clones in the folder CLONES, as their maintainers would (hours)
