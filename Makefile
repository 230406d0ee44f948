# The project's verbs. A newcomer needs two of them: `make release` and `make test`.
# Each target sets up what it needs: Debian packages through scripts/need.sh, .venv from the lock files.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
PYTHON := .venv/bin/python
export PATH := $(CURDIR)/.venv/bin:$(PATH)
WHEELYARD := .venv/bin/wheelyard

.PHONY: help
help: ## What each target does
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | sort | expand -t 20

# --- Set-up -----------------------------------------------------------------------------------
.PHONY: tools tools-sign tools-publish test-env lock propose-locks lock-actions
tools: ## The pinned tools in .venv
	@scripts/need.sh g++ git
	@scripts/venv.sh ci/tools.lock
	@test -x $(WHEELYARD) || $(PYTHON) -m pip install --quiet --no-deps --no-build-isolation --editable ci

# A job that can sign or upload has few packages, of a lock of its own, and runs wheelyard from the tree.
tools-sign tools-publish: tools-%:
	@scripts/need.sh git
	@scripts/venv.sh ci/$*.lock
	@test -x $(WHEELYARD) || { printf '#!/bin/sh\nPYTHONPATH=%s exec %s -m wheelyard "$$@"\n' \
	  '$(CURDIR)/ci' '$(CURDIR)/$(PYTHON)' >$(WHEELYARD) && chmod +x $(WHEELYARD); }
tools-sign: ## What signs a release, and nothing else, in .venv
tools-publish: ## What uploads a release, and nothing else, in .venv

test-env: tools ## The pinned tools and test packages (torch 2.10) in .venv
	@$(PYTHON) -c 'import os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")' 2>/dev/null || scripts/need.sh python3-dev
	@scripts/venv.sh tests/tests.lock

lock: tools ## Pin every .in file anew, newest first, and show what moved (KEEP=1: only what the .in files add or drop)
	@$(PYTHON) -m scripts.locks $(if $(KEEP),--keep)

propose-locks: ## Open a pull request with the locks in build/locks/, as the workflow locks does
	@python3 -m scripts.propose_locks build/locks

lock-actions: ## Record the tags of the actions that the workflows pin, from their repositories
	@python3 -m scripts.actions $(ACTIONS_SOURCE)

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
# The CUDA toolkit: CUDA_HOME, or nvcc's on PATH, or else one from PyPI. setup.py's head lists what else can be chosen.
ifeq ($(CUDA_HOME)$(shell command -v nvcc),)
export CUDA_HOME := $(CURDIR)/build/toolkit/13.0
toolkit: tools
	@echo "no nvcc here: taking CUDA 13.0 from PyPI into build/toolkit"
	@$(PYTHON) docker/toolkit.py --cuda 13.0 $(CUDA_HOME)
else
toolkit: ;
endif

.PHONY: toolkit install cpp
install: test-env toolkit ## The package, editable, in .venv
	@CUDA_EXT_CUDA=on $(PYTHON) -m pip install --quiet --no-build-isolation --editable .

cpp: test-env toolkit ## The library and the standalone program, without pip
	@CUDA_EXT_CUDA=on $(PYTHON) setup.py --quiet build_cpp

# The kernel developer's loop, for the GPU in this machine or the one that GPU=9.0 names.
TESTS ?= tests/package/test_ops.py
.PHONY: dev watch cache-stats
dev watch: test-env toolkit
	@scripts/need.sh ccache || echo "building without a compiler cache"
	@$(PYTHON) -m scripts.builder dev $(if $(GPU),--gpu '$(GPU)') $(if $(filter watch,$@),--watch $(TESTS))
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
ptx: tools toolkit ## PTX of one file of csrc/ops, or of one source: OP=cust_add GPU=9.0
	@mkdir -p build/inside
	@printf '#include "%s"\n' kernels/elementwise.cuh ops/$(OP).h >build/inside/$(OP).cu
	@$(NVCC) --ptx -Icsrc -std=c++17 -DCUDA_EXT_WITH_CUDA --expt-relaxed-constexpr \
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
WHEELSCOPE_LIBRARIES := libdeflate-dev libzstd-dev liblz4-dev libssl-dev libcurl4-openssl-dev libnghttp2-dev zlib1g-dev nlohmann-json3-dev libcli11-dev libtomlplusplus-dev

.PHONY: wheelscope
wheelscope: tools ## Build build/bin/wheelscope
	@scripts/need.sh pkg-config $(WHEELSCOPE_LIBRARIES)
	@cmake -S csrc/wheelscope -B build/wheelscope -G Ninja --log-level=WARNING >/dev/null
	@cmake --build build/wheelscope --target wheelscope
	@install -C -D -t build/bin build/wheelscope/wheelscope
	@install -C -t .venv/bin build/wheelscope/wheelscope

.PHONY: test-wheelscope fuzz fuzzers coverage-wheelscope tidy-wheelscope
FUZZ_SECONDS := 600
# For seconds of fuzzing: built in half the time.
OPTIMISE := -O0
test-wheelscope: wheelscope fuzzers ## wheelscope's unit tests and a short run of its fuzzers
	@scripts/need.sh libgtest-dev
	@cmake -S csrc/wheelscope -B build/wheelscope -DWHEELSCOPE_TESTS=ON --log-level=WARNING >/dev/null
	@cmake --build build/wheelscope
	build/wheelscope/wheelscope_tests --gtest_brief=1
	scripts/fuzz.sh build/fuzz 5

fuzz: OPTIMISE := -O1
fuzz: fuzzers ## Fuzz wheelscope's readers for FUZZ_SECONDS each (600)
	scripts/fuzz.sh build/fuzz $(FUZZ_SECONDS)

fuzzers: tools
	@scripts/need.sh pkg-config clang-19 libclang-rt-19-dev $(WHEELSCOPE_LIBRARIES)
	@cmake -S csrc/wheelscope -B build/fuzz -G Ninja -DWHEELSCOPE_FUZZ=ON -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS=$(OPTIMISE) -DCMAKE_CXX_COMPILER=clang++-19 --log-level=WARNING >/dev/null
	@cmake --build build/fuzz --target fuzzers

coverage-wheelscope: test-env ## Lines of wheelscope that its tests execute; fails below 95%
	@scripts/need.sh pkg-config libgtest-dev $(WHEELSCOPE_LIBRARIES)
	@cmake -S csrc/wheelscope -B build/coverage -G Ninja -DWHEELSCOPE_TESTS=ON -DWHEELSCOPE_COVERAGE=ON -DCMAKE_BUILD_TYPE=Debug --log-level=WARNING >/dev/null
	@cmake --build build/coverage
	@find build/coverage -name '*.gcda' -delete
	@build/coverage/wheelscope_tests --gtest_brief=1
	@WHEELSCOPE=$(CURDIR)/build/coverage/wheelscope $(PYTHON) -m pytest -q tests/wheelscope --ignore tests/wheelscope/test_hostile.py
	@$(PYTHON) scripts/coverage.py build/coverage csrc/wheelscope 95

tidy-wheelscope: tools ## clang-tidy and clang-format over wheelscope; any finding fails
	@scripts/need.sh pkg-config clang-tidy-19 clang-format-19 libgtest-dev $(WHEELSCOPE_LIBRARIES)
	@cmake -S csrc/wheelscope -B build/tidy -G Ninja -DCMAKE_CXX_COMPILER=clang++-19 --log-level=WARNING >/dev/null
	clang-format-19 --dry-run -Werror $$(git ls-files csrc/wheelscope | grep -E "\.(cc|h)$$") tests/wheelscope/*.cc tests/wheelscope/*.h tests/wheelscope/fuzz/*.cc
	find build/tidy/CMakeFiles/{scope,wheelscope}.dir -name '*.cxx' -print0 | xargs -0 -n 1 -P $$(nproc) clang-tidy-19 --quiet -p build/tidy --checks=-bugprone-suspicious-include

.PHONY: table-python-abi3
table-python-abi3: test-env ## Renew wheelscope's list of the limited Python API from abi3info
	$(PYTHON) -m scripts.tables.python_abi3

.PHONY: table-manylinux table-cuda-libraries table-cudart table-torch-shims table-platform-symbols
table-platform-symbols: tools ## Renew wheelscope's list of what the C library exports, from this system
	$(PYTHON) -m scripts.tables.platform_symbols

table-manylinux: tools ## Renew wheelscope's platform policies from the installed auditwheel
	$(PYTHON) -m scripts.tables.manylinux

table-cuda-libraries: tools ## Renew wheelscope's list of CUDA's libraries from environments: ENVIRONMENTS="SITE-PACKAGES ..."
	$(PYTHON) -m scripts.tables.cuda_libraries $(ENVIRONMENTS)

table-cudart: tools ## Renew wheelscope's traces of CUDA runtimes from NVIDIA's wheels
	$(PYTHON) -m scripts.tables.cudart

table-torch-shims: tools wheelscope ## Renew wheelscope's stable torch functions from torch's wheels (5 GB; TORCH_WHEELS=DIR)
	$(PYTHON) -m scripts.tables.torch_shims $(TORCH_WHEELS)

CORPUS ?= build/corpus
.PHONY: corpus corpus-compare corpus-in-part bench-wheelscope bench-fit replay env-compare
corpus: tools ## Download the real wheels that wheelscope is compared on (11 GB; CORPUS=DIR)
	@$(PYTHON) -m scripts.corpus.download $(CORPUS)

corpus-compare: test-env wheelscope ## Compare wheelscope on them with other tools, into docs/wheelscope/corpus.md (DELETE=1: in 4 GB of disk)
	@$(PYTHON) -m scripts.corpus.compare $(CORPUS) --summary docs/wheelscope/corpus.md $(if $(DELETE),--delete)

corpus-in-part: test-wheelscope ## Compare its verdicts on parts of them with those on the whole files (DELETE=1: in a gigabyte of disk)
	@$(PYTHON) -m scripts.corpus.in_part $(CORPUS) $(if $(DELETE),--delete)

bench-fit: wheelscope ## Time `wheelscope fit` beside downloading the same wheels: PROJECTS="vllm ..."
	@$(PYTHON) -m scripts.bench_fit $(or $(PROJECTS),vllm sgl-kernel onnxruntime-gpu)

replay: tools wheelscope ## What wheelscope says of wheels that failed or worked for real, from the package index (REPRODUCE=1: ask Python anew in containers, 16 GB)
	@$(PYTHON) -m scripts.replay $(if $(REPRODUCE),--reproduce)

env-compare: tools wheelscope ## `wheelscope env` beside `import` in real environments, made in containers, into docs/wheelscope/environments.md (20 GB; ONLY="healthy ...")
	@$(PYTHON) -m scripts.environments $(ONLY)

bench-wheelscope: tools wheelscope corpus ## Time wheelscope beside auditwheel and unzip
	@scripts/need.sh unzip
	@$(PYTHON) -m scripts.bench_wheelscope $(CORPUS)

# --- The pipeline -------------------------------------------------------------------------------
BASE ?=

.PHONY: plan images release nightly compare-images clean-release tag report screenshots
plan: tools ## What is built, what it serves, where it is verified
	@$(WHEELYARD) plan

images: tools ## The images of `make release`, made ahead of it
	@$(WHEELYARD) image $(if $(BASE),--base $(BASE))

release: tools wheelscope ## Wheels from a clean clone: built, gated, verified, published to an embedded index (SLOW=1: with slow cells too)
	@$(WHEELYARD) release $(if $(BASE),--base $(BASE)) $(if $(SLOW),--slow)
	@$(MAKE) --no-print-directory --silent $(or $(WHEELHOUSE),wheelhouse)/tools/added

nightly: tools wheelscope ## The package built on torch's newest build, and tested with it (TORCH_INDEX=URL; else PyPI's newest)
	@$$(test "$$(id -u)" = 0 || echo sudo) $(PYTHON) -m scripts.nightly $(if $(TORCH_INDEX),'$(TORCH_INDEX)')

tag: tools ## Make the release commit and its tag: VERSION=x.y.z
	@$(WHEELYARD) tag $(or $(VERSION),$(error give the version: make tag VERSION=x.y.z))

report: tools wheelscope ## Write the report of the release in wheelhouse/, and open it
	@$(WHEELYARD) report
	@test -n "$${DISPLAY:-}$${WAYLAND_DISPLAY:-}" && $(PYTHON) -m webbrowser -t "file://$(CURDIR)/wheelhouse/report.html" \
	  || echo "no browser opens here; open file://$(CURDIR)/wheelhouse/report.html, or copy that one file"

screenshots: test-env wheelscope ## Pictures of the report of the release in wheelhouse/, into docs/report/
	@$(PYTHON) -m scripts.browser
	@$(WHEELYARD) report
	@$(PYTHON) -m scripts.screenshots wheelhouse docs/report

.PHONY: tool-wheels check-tools check-tools-tag publish-tools
tool-wheels: wheelscope build/tools/made ## Wheels of wheelyard and wheelscope, in build/tools/
build/tools/made: $(shell git ls-files ci docker csrc/wheelscope scripts/tool_wheels.py 2>/dev/null)
	@rm -rf build/tools
	@$(PYTHON) -m scripts.tool_wheels build/tools
	@touch $@

%/tools/added: build/tools/made
	@$(MAKE) --no-print-directory check-tools
	@$(PYTHON) -m scripts.publish_tools wheelhouse build/tools
	@touch $@

check-tools: tools ## Are the wheels in build/tools/ sound? wheelscope judges its own
	@.venv/bin/wheelscope check --policy csrc/wheelscope/policy.toml build/tools/wheelscope-*.whl
	@.venv/bin/twine check --strict build/tools/*.whl
	@.venv/bin/check-wheel-contents --no-config --ignore W009 build/tools/*.whl

check-tools-tag: tools ## Is the version of the wheels in build/tools/ the one that the tag on HEAD names?
	@tag=$$(git tag --points-at HEAD --list 'wheelyard-v*'); version=$$($(WHEELYARD) --version | cut -d' ' -f2); \
	  test "$$tag" = "wheelyard-v$$version" || { echo "error: HEAD carries '$$tag', but the tools are $$version: git tag wheelyard-v$$version" >&2; exit 1; }

publish-tools: tools-publish ## Upload what INDEX (testpypi or pypi) lacks of build/tools/
	@PYTHONPATH=ci $(PYTHON) -m scripts.publish_tools $(or $(INDEX),$(error give the index: make publish-tools INDEX=testpypi)) build/tools

.PHONY: docs docs-pictures publish-docs reference
docs: reference ## The documentation site in build/site, from README, docs/ and the other pages; a dead link fails
	@VENV=build/docs-venv scripts/venv.sh docs/docs.lock
	@NO_MKDOCS_2_WARNING=1 build/docs-venv/bin/mkdocs build --strict
	@echo "the site is in build/site; to read it: python3 -m http.server --directory build/site, then open http://127.0.0.1:8000"

docs-pictures: docs test-env ## Pictures of the site, into docs/site/
	@$(PYTHON) -m scripts.browser
	@$(PYTHON) -m scripts.screenshots --site build/site docs/site

publish-docs: ## Push build/site as the branch that GitHub serves, as the workflow docs does
	@gh auth setup-git
	@python3 -m scripts.publish_docs build/site

reference: tools ## The reference pages and JSON schemas of wheelyard's files, from their definition
	@for file in matrix policy; do \
	  $(WHEELYARD) schema $$file --markdown >docs/wheelyard/$$file.md; \
	  $(WHEELYARD) schema $$file >docs/wheelyard/$$file.schema.json; \
	done

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
	@scripts/need.sh procps unzip ccache redis-server
	@$(PYTHON) -m scripts.browser
	@$(PYTHON) -m pytest -n 2

test-docs: install wheelscope docs ## The site's links and faults; the pages' commands, with what they print (ONLINE=1: also those that ask PyPI)
	@$(PYTHON) -m scripts.browser
	@WALK=1 $(PYTHON) -m pytest -n 2 --dist loadfile tests/docs

test-package: install ## The installed package's tests alone
	@$(PYTHON) -m pytest -n 2 tests/package

lint: test-env ## Format and type checks
	@scripts/need.sh clang-format
	@.venv/bin/ruff check . && .venv/bin/ruff format --check .
	@$(PYTHON) -m mypy
	@git ls-files '*.cpp' '*.h' '*.cu' '*.cuh' ':!tests' | xargs clang-format --dry-run -Werror
.PHONY: test-report
test-report: test-env wheelscope ## The report page in a real Chromium
	@$(PYTHON) -m scripts.browser
	@$(PYTHON) -m pytest -q tests/ci/report/test_report.py

.PHONY: test-release test-cluster test-strangers rehearsal
rehearsal: test-env ## The release workflow on this repository, every job, against an index on loopback (half an hour)
	@RELEASE_TESTS=1 $(PYTHON) -m pytest -q -s tests/ci/test_own_rehearsal.py

RELEASES := demo_release killed_release rehearsal hostile_release rehearsal_each stranger_release openmp_release tool_release tool_install cluster_release
test-release: test-env wheelscope ## Real releases of another project, with faults injected (ALL=1: also those with tens of GB of images; KILLS=100)
	@scripts/need.sh procps
	RELEASE_TESTS=$(if $(ALL),all,some) $(PYTHON) -m pytest -n 3 --dist loadfile $(RELEASES:%=tests/ci/test_%.py)

test-cluster: test-env wheelscope ## Our own release and twelve wheels of another project on four workers: the bytes of one machine (half an hour)
	RELEASE_TESTS=all $(PYTHON) -m pytest -q -s tests/ci/test_cluster_large.py

test-strangers: tools wheelscope ## Releases of the clones in the folder STRANGERS, as their maintainers would (hours)
	@test -n "$(STRANGERS)" || { echo "error: say where the clones are: make test-strangers STRANGERS=FOLDER" >&2; exit 1; }
	@nice $(PYTHON) -m scripts.strangers $(STRANGERS)
