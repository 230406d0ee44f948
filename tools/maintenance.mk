# The targets that the root's own need, and those for maintainers of the three tools: `make help-tools`. Run from the root.
# All of them, and each tool's own targets, share one environment.
SCOPE := $(MAKE) --no-print-directory -C tools/wheelscope VENV='$(CURDIR)/.venv'
YARD := $(MAKE) --no-print-directory -C tools/wheelyard VENV='$(CURDIR)/.venv'

# Files in the given places, and a file that lists them: it changes when one is added or deleted, as their times do not tell.
sources = $(wildcard $(shell git ls-files --cached --others --exclude-standard $1 2>/dev/null))
list-of = $(shell mkdir -p build/tools && echo '$2' | cmp -s - build/tools/$1.list || echo '$2' >build/tools/$1.list)build/tools/$1.list

.PHONY: help-tools
help-tools: ## Show this list
	@sed -nE 's/^# --- ([^-]*) -+$$/\n\1/p; s/^([a-z][a-z-]*):.*## /  \1\t/p' tools/maintenance.mk | expand -t 22
	@echo; echo "\`make -C tools/NAME help\` lists each tool's own."

# --- Setup --------------------------------------------------------------------------------------
.PHONY: tools tools-sign tools-publish test-env toolkit wheelscope lock propose-locks check-actions cache-stats
tools: ## Install the pinned tools in .venv
	@tools/setup/need.sh g++ git $$(command -v python3 >/dev/null || echo python3 python3-venv python3-dev) # all in one message
	@tools/setup/venv.sh ci/tools.lock
	@for tool in wheelyard opwright; do .venv/bin/$$tool --version >/dev/null 2>&1 || \
	  $(PYTHON) -m pip install --quiet --no-deps --no-build-isolation --editable tools/$$tool; done
	@$(MAKE) --no-print-directory $(OPWRIGHT_WHEEL)

# A job that can sign or upload has few packages, from a lock of its own, and runs wheelyard from the tree.
tools-sign tools-publish: tools-%:
	@tools/setup/need.sh git
	@tools/setup/venv.sh ci/$*.lock
	@test -x $(WHEELYARD) || { printf '#!/bin/sh\nPYTHONPATH=%s exec %s -m wheelyard "$$@"\n' \
	  '$(CURDIR)/tools/wheelyard' '$(CURDIR)/$(PYTHON)' >$(WHEELYARD) && chmod +x $(WHEELYARD); }
	@$(MAKE) --no-print-directory $(OPWRIGHT_WHEEL)
tools-sign: ## Install only the packages that sign a release in .venv
tools-publish: ## Install only the packages that upload a release in .venv

test-env: tools ## Install the pinned tools and test packages (torch 2.10) in .venv
	@$(PYTHON) -c 'import os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")' 2>/dev/null || tools/setup/need.sh "$$($(PYTHON) -c 'import sys; print("python%d.%d-dev" % sys.version_info[:2])')"
	@tools/setup/venv.sh tests/tests.lock

# The CUDA toolkit: CUDA_HOME, or nvcc's on PATH, or else one from PyPI.
ifeq ($(CUDA_HOME)$(shell command -v nvcc),)
export CUDA_HOME := $(CURDIR)/build/toolkit/13.0
toolkit: tools
	@echo "no nvcc here: taking CUDA 13.0 from PyPI into build/toolkit"
	@$(WHEELYARD) toolkit --cuda 13.0 '$(CUDA_HOME)'
else
toolkit: ;
endif

wheelscope: tools ## Build build/bin/wheelscope
	@tools/setup/need.sh $$($(SCOPE) --silent packages FOR=build)
	@$(SCOPE) build
	@install -C -D -t build/bin tools/wheelscope/build/bin/wheelscope
	@install -C -t .venv/bin tools/wheelscope/build/bin/wheelscope

# The build requires opwright, which no index has: the same bytes from the same sources, whatever the umask and the folder.
OPWRIGHT_WHEEL := build/tools/opwright-0.1.0-py3-none-any.whl
OPWRIGHT_SOURCES := $(call sources,tools/opwright/opwright tools/opwright/Makefile tools/opwright/pyproject.toml tools/opwright/README.md)
$(OPWRIGHT_WHEEL): $(OPWRIGHT_SOURCES) $(call list-of,opwright,$(OPWRIGHT_SOURCES))
	@$(MAKE) --no-print-directory -C tools/opwright wheel DESTINATION='$(CURDIR)/build/tools' PYTHON='$(CURDIR)/$(PYTHON)'

lock: tools ## Pin the newest versions that every .in file allows, and show what changed (KEEP=1: only what the .in files add or drop)
	@$(PYTHON) -m tools.release.locks $(if $(KEEP),--keep)

propose-locks: ## Open a pull request with the locks in build/locks/, as the workflow `locks` does
	@python3 -m tools.release.propose_locks build/locks

check-actions: ## Ask the repositories of the actions in the workflows whether each is pinned to the commit of its tag
	@python3 -m tools.release.actions $(ACTIONS_SOURCE)

cache-stats: ## Show the hits and the size of the compiler cache
	@cache=$$(command -v ccache || command -v sccache) || { echo "error: no compiler cache; apt-get install ccache" >&2; exit 1; }; \
	  $$cache --show-stats

# --- Tests --------------------------------------------------------------------------------------
.PHONY: test-wheelscope test-package test-opwright test-wheelyard test-docs rehearsal test-release test-cluster nightly compare-images
test-wheelscope: export CMAKE_CXX_COMPILER_LAUNCHER ?= $(shell command -v ccache)
test-wheelscope: test-env wheelscope ## Run wheelscope's tests, and its fuzzers for a short time
	@tools/setup/need.sh $$($(SCOPE) --silent packages FOR=test)
	@$(SCOPE) test

# The release tests every dtype, on two versions of torch.
test-package: ## Run the package's tests with one dtype of each kind
	@OPWRIGHT_TESTS=$${OPWRIGHT_TESTS-quick} $(PYTHON) -m pytest -n 2

test-opwright: ## Run opwright's tests
	@$(MAKE) --no-print-directory -C tools/opwright test VENV='$(CURDIR)/.venv'

test-wheelyard: ## Run wheelyard's tests, except those that make whole releases
	@$(YARD) test

test-docs: install wheelscope docs ## Check the site, and that the pages' commands print what the pages say (ONLINE=1: also those that ask PyPI)
	@tools/setup/need.sh $$($(YARD) browser)
	@WALK=1 $(PYTHON) -m pytest -n 2 --dist loadfile tests/docs tools/website

rehearsal test-release test-cluster: test-env wheelscope
	@tools/setup/need.sh $$($(YARD) packages)
	@$(YARD) $@
rehearsal: ## Run every job of the release workflow on this repository, against indexes on loopback (half an hour)
test-release: ## Make releases of another project with injected faults (ALL=1: also those with tens of GB of images; KILLS=100)
test-cluster: ## Make releases on four workers, and compare them with one machine's (half an hour)

nightly: tools wheelscope ## Build the package on torch's newest build and test it with that (TORCH_INDEX=URL; otherwise PyPI's newest)
	@$(WHEELYARD) nightly $(if $(TORCH_INDEX),--torch-index '$(TORCH_INDEX)')

# A release makes only the images that it needs, so the kept lists of others do not count.
MADE := $(or $(RELEASE_FOLDER),build/release)/packages
compare-images: ## Compare the packages in the images of a release with ci/packages/, or with another release's: OTHER=its build/release
	@other='$(if $(OTHER),$(OTHER)/packages,ci/packages/'"$$(uname -m)"')'; differ=; for list in '$(MADE)'/*.txt; do \
	  git --no-pager diff --no-index --word-diff --unified=0 "$$other/$${list##*/}" "$$list" || differ=1; done; \
	if [ -n "$$differ" ]; then echo "to keep the lists of these images: cp '$(MADE)'/*.txt '$$other'"; else echo "the images have the packages in $$other"; fi

# --- Releasing the tools and the site -----------------------------------------------------------
.PHONY: tool-wheels check-tools check-tools-tag tool-digests check-tool-digests publish-tools publish-docs
tool-wheels: wheelscope build/tools/made ## Build the wheels of the three tools, in build/tools/
TOOL_SOURCES := $(call sources,tools/wheelyard/wheelyard tools/wheelyard/*.* tools/wheelscope tools/release/wheels.py)
build/tools/made: $(TOOL_SOURCES) $(call list-of,tools,$(TOOL_SOURCES))
	@rm -f build/tools/wheel*.whl
	@$(PYTHON) -m tools.release.wheels build/tools
	@touch $@

%/tools/added: build/tools/made
	@$(MAKE) --no-print-directory check-tools
	@$(PYTHON) -m tools.release.publish release build/tools
	@touch $@

check-tools: tools ## Check the wheels in build/tools/; wheelscope judges its own
	@.venv/bin/wheelscope check --policy tools/wheelscope/policy.toml build/tools/wheelscope-*.whl
	@.venv/bin/twine check --strict build/tools/*.whl
	@.venv/bin/check-wheel-contents --no-config --ignore W009 build/tools/*.whl

check-tools-tag: ## Check that the tag on HEAD names the tools' version and, with BRANCH, that HEAD is part of that branch
	@tag=$$(git tag --points-at HEAD --list 'wheelyard-v*'); version=$$($(WHEELYARD) --version | cut -d' ' -f2); \
	  test "$$tag" = "wheelyard-v$$version" || { echo "error: HEAD carries '$$tag', but the tools are $$version: git tag wheelyard-v$$version" >&2; exit 1; }
	@head=$$(git rev-parse HEAD); test "$${GITHUB_SHA:-$$head}" = "$$head" || { echo "error: the tag was moved from $$GITHUB_SHA to $$head" >&2; exit 1; }
	@test -z '$(BRANCH)' || git merge-base --is-ancestor HEAD '$(BRANCH)' || \
	  { echo "error: HEAD is not part of $(BRANCH), where changes are reviewed; merge it, then tag the merged commit" >&2; exit 1; }

tool-digests: ## Print sha256 and name of the wheels FILES in build/tools/ in one line, for the output ARCH of a workflow's step
	@cd build/tools && echo "$(if $(ARCH),$(ARCH)=)$$(sha256sum $(or $(FILES),*.whl) | tr -s ' \n' ' ')"

check-tool-digests: ## Check that build/tools/ has the wheels of DIGESTS and no others
	@PYTHONPATH=tools/wheelyard $(PYTHON) -m tools.release.publish none build/tools

publish-tools: ## Upload the wheels of DIGESTS in build/tools/ that INDEX (testpypi or pypi) lacks
	@PYTHONPATH=tools/wheelyard $(PYTHON) -m tools.release.publish $(or $(INDEX),$(error give the index: make publish-tools INDEX=testpypi)) build/tools

publish-docs: ## Push build/site as the branch that GitHub serves, as the workflow `docs` does
	@gh auth setup-git
	@python3 -m tools.website.publish build/site
