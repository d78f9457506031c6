# make bench      build in .venv and measure c = a + b on what this machine has      ARGS="--sizes 2^20 --json out.json"
# make peers      measure beside every other library that .venv has, a result file a stage; RESULTS=DIR
# make proof RESULTS=DIR     all pairs of 16-bit and of 8-bit numbers by every way that this machine has, against exact
#                 arithmetic, into DIR/proof-MACHINE.json     ARGS="--dtypes float16"
# make test       build, then the C tests and the Python tests on the CUDA-runtime double    ARGS="tests/add/test_add_host.py"
#                 MARKS="not slow": those tests alone
# make lint       ruff, mypy, clang-format, compilation without a warning with CUDA and without
# make sanitize   C tests, and Python tests of native code, under AddressSanitizer and UndefinedBehaviorSanitizer;
#                 MARKS="not slow": all Python tests but the slow ones
# make tsan       C tests but those of kernels under ThreadSanitizer, or those named in PROGRAMS: threads (the folder),
#                 or "wakes plan"
#                 VECADD_TEST_SECONDS=60: sixteen threads add for 60 seconds instead of two
# make aarch64    the host's C tests, NEON among them, by a cross compiler and qemu-user
# make mutants    takes one guarded line after another out of the code, on the double: its named test must fail
# make thorough   what a change needs once before it is called done, beside .ci/run: 75 minutes on two processors
# make docs       the documentation site, build/docs/index.html, its links checked    NOTEBOOKS=off: as they are, not run
# make docs-links  the documents' links to elsewhere, by the network
# make wheel      dist/*.whl by way of the source distribution, checked by auditwheel and abi3audit
#                 ISOLATION=--no-isolation: by the packages of .venv, not by fresh ones
# make wheels     wheels for PyPI: by cibuildwheel for x86-64 and aarch64 where docker or podman runs, else this machine's
# make gpu RESULTS=DIR    on a machine with a GPU; needs no network     STAGE="test large sanitize": these, in place of all
#                 but proof and fuzz: test large sanitize bench ladder documents peers hosts installed proof fuzz
#                 (.ci/gpu says which does what)     LIMIT=1800: seconds that a stage may last, in place of 480
# make clean
#
# PYTHON chooses the interpreter, 3.11 or later; WORKERS how many processes run the Python tests.
# Every target does only what is out of date.

PYTHON ?= python3
STAGE ?= all
RESULTS ?= build/gpu
ARGS ?=
ISOLATION ?=
PROGRAMS ?=
# More than four would wait for memory: some tests add gigabytes.
WORKERS ?= $(shell n=$$(nproc); echo $$((n < 4 ? n : 4)))
# Each worker begins with a contiguous run of tests, so that the fixtures of a file are made once. A worker that dies
# fails the run at once: otherwise a deadlock would cost five minutes in each test that meets it.
XDIST := -n $(WORKERS) --dist worksteal --max-worker-restart 0

VENV := .venv
BIN := $(VENV)/bin
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
# Without cached bytecode each process of a run compiles all Python itself: three seconds a worker.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: bench peers proof test lint lint-python lint-format lint-warnings sanitize sanitize-c sanitize-python tsan aarch64 \
	mutants environment thorough docs docs-links wheel wheels gpu clean

# Another interpreter has another stamp, which makes the environment anew.
TAG := $(shell $(PYTHON) -c 'import sys; print(sys.implementation.cache_tag + getattr(sys, "abiflags", ""))')
NATIVE := $(BIN)/python -m build_native
C_FILES := find csrc cuda tests benchmarks -name '*.[ch]' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh'

bench: $(VENV)/$(TAG).bench
	$(NATIVE) extension
	$(BIN)/vecadd bench $(ARGS)

peers: $(VENV)/$(TAG).peers
	$(NATIVE) extension
	$(BIN)/python -m benchmarks.peers --json-dir $(RESULTS) $(ARGS)

proof: $(VENV)/$(TAG).bench
	$(NATIVE) extension
	mkdir -p $(RESULTS)
	$(BIN)/python -m benchmarks.proof --json $(RESULTS) $(ARGS)

test: $(VENV)/$(TAG).test
	$(NATIVE) extension double
	$(NATIVE) --run ctests conformance
	VECADD_TEST_RUNTIME=double $(BIN)/python -m pytest $(XDIST) $(if $(MARKS),-m "$(MARKS)") $(ARGS)

lint: lint-python lint-format lint-warnings

lint-python: $(VENV)/$(TAG).lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

lint-format: $(VENV)/$(TAG).lint
	$(C_FILES) | xargs $(BIN)/clang-format --dry-run -Werror

# Checks the very objects that the extension and the tests are linked from.
lint-warnings: $(VENV)/$(TAG).lint
	$(NATIVE) warnings
	VECADD_CUDA=0 $(NATIVE) warnings

# PYTHONMALLOC=malloc: Python's own allocator hides use after free. The C tests and the double look for leaks: the
# interpreter itself leaks at exit. libstdc++ is preloaded so that ASan finds the __cxa_throw that it wraps; ASan leaves
# SIGSEGV alone because tests kill children by it. ASan reports to files, for child processes too; UBSan has no log file
# of its own beside ASan, so that pytest must not capture standard error's descriptor (--capture=sys).
REPORTS := $(CURDIR)/build/asan/report
sanitize: sanitize-c sanitize-python

sanitize-c: $(VENV)/$(TAG).test
	UBSAN_OPTIONS=print_stacktrace=1 $(NATIVE) --variant asan --run ctests conformance

sanitize-python: MARKS ?= not slow and not no_native
sanitize-python: export VECADD_TEST_PARAMETERS ?= 3
# pytest imports a file before it deselects it by its mark, which takes each worker 7 s: such files are ignored here.
LEFT_OUT = $(if $(findstring not no_native,$(MARKS)),$(patsubst %,--ignore=%,$(shell grep -l '^pytestmark = pytest.mark.no_native' tests/*/test_*.py)))
sanitize-python: $(VENV)/$(TAG).test
	$(NATIVE) --variant asan double
	rm -f $(REPORTS).*
	status=0; LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libstdc++.so)" PYTHONMALLOC=malloc \
	ASAN_OPTIONS=detect_leaks=0:handle_segv=0:log_path=$(REPORTS) UBSAN_OPTIONS=print_stacktrace=1 \
	VECADD_HYPOTHESIS="$${VECADD_HYPOTHESIS:-brief}" VECADD_TEST_RUNTIME=double VECADD_DOUBLE_CORE=$(CURDIR)/build/asan/double/_core.abi3.so \
	$(BIN)/python -m pytest $(XDIST) --capture=sys -m "$(MARKS)" $(LEFT_OUT) $(ARGS) || status=$$?; \
	! cat $(REPORTS).* 2>/dev/null && exit $$status

tsan: $(VENV)/$(TAG).test
	$(NATIVE) --variant tsan --run --only "$(PROGRAMS)" ctests

aarch64: $(VENV)/$(TAG).test
	$(NATIVE) --variant aarch64 --run ctests

mutants: $(VENV)/$(TAG).test
	$(NATIVE) extension double ctests
	$(BIN)/python -m tests.mutants $(ARGS)

# All is made anew: a page changes with the recorded results and the docstrings too.
NOTEBOOKS ?= force
SPHINX := $(BIN)/python -m sphinx -q -j auto -E -W --keep-going -c docs/site -d build/doctrees
docs: $(VENV)/$(TAG).docs
	$(NATIVE) extension
	rm -rf build/docs
	$(SPHINX) -D nb_execution_mode=$(NOTEBOOKS) $(ARGS) . build/docs
	$(BIN)/python -m docs.site.check build/docs

docs-links: $(VENV)/$(TAG).docs
	$(NATIVE) extension
	$(SPHINX) -D nb_execution_mode=off -b linkcheck . build/docs-links

# The unpacked source distribution gets a copy of the objects built so far: the build reuses those that are up to date.
UNPACKED := build/unpacked
wheel: $(VENV)/$(TAG).lint
	rm -rf dist $(UNPACKED)
	$(BIN)/python -m build $(ISOLATION) --sdist
	mkdir -p $(UNPACKED)/build
	tar -xzf dist/*.tar.gz -C $(UNPACKED) --strip-components 1
	! test -d build/release || cp -r build/release $(UNPACKED)/build
	$(BIN)/python -m build $(ISOLATION) --wheel --outdir dist $(UNPACKED)
	$(BIN)/auditwheel show dist/*.whl
	$(BIN)/abi3audit --strict --report dist/*.whl
	VECADD_TEST_WHEEL=$$(echo dist/*.whl) $(BIN)/python -m pytest -q -k the_wheel tests/project/test_build.py

# pyproject.toml configures cibuildwheel. A wheel built here needs a C library as new as the symbols that it uses.
wheels: wheel
	if docker info > /dev/null 2>&1 || podman info > /dev/null 2>&1; then \
		$(BIN)/pip install --disable-pip-version-check -q 'cibuildwheel>=3'; \
		rm dist/*.whl; \
		$(BIN)/cibuildwheel --platform linux --output-dir dist; \
	else \
		echo "neither docker nor podman runs: a wheel for this processor alone"; \
		PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/auditwheel repair --wheel-dir dist dist/*.whl; \
		rm dist/*-linux_*.whl; \
	fi
	$(BIN)/abi3audit --strict --report dist/*.whl
	ls -l dist/*.whl

# What lint, test, wheel and docs install, so that make -j runs them without a pip beside them.
environment: $(VENV)/$(TAG).lint $(VENV)/$(TAG).test $(VENV)/$(TAG).docs

thorough: $(VENV)/$(TAG).lint
	.ci/thorough

gpu:
	.ci/gpu "$(PYTHON)" "$(RESULTS)" "$(STAGE)"

clean:
	rm -rf build dist vecadd.egg-info vecadd/_core*.so $(VENV)

# requirements.txt has the compiler's packages where no nvcc works. Builds without isolation can reuse objects.
$(VENV)/$(TAG): build_backend.py build_native/toolkit.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "vecadd needs Python 3.11 or later, for example: make PYTHON=python3.12")'
	$(PYTHON) -m venv --clear $(VENV)
	$(NATIVE) requirements > $(VENV)/requirements.txt
	$(BIN)/pip install --disable-pip-version-check -q --no-compile -r $(VENV)/requirements.txt
	touch $@

# The compilers work while pip downloads. Python compiles what it imports; pip would compile all that it installs.
$(VENV)/$(TAG).%: $(VENV)/$(TAG) pyproject.toml setup.py
	$(NATIVE) objects & status=0; \
	$(BIN)/pip install --disable-pip-version-check -q --no-compile --no-build-isolation -e '.[$*]' || status=$$?; \
	wait $$! && exit $$status
	touch $@
