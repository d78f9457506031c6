# make bench      build in .venv and measure c = a + b on what this machine has      ARGS="--sizes 2^20 --json out.json"
# make peers      the same beside every other library that .venv has, a result file and a picture a stage; RESULTS=DIR
# make test       build, then the C tests and the Python tests on the CUDA-runtime double    ARGS="tests/test_add_host.py"
#                 MARKS="not slow": those tests alone
# make lint       ruff, mypy, clang-format, compilation without a warning with CUDA and without
# make sanitize   C tests, and Python tests of native code, under AddressSanitizer and UndefinedBehaviorSanitizer;
#                 MARKS="not slow": all Python tests but the slow ones
# make tsan       C tests under ThreadSanitizer, or those named in PROGRAMS: threads (the folder), or "wakes plan"
#                 VECADD_TEST_SECONDS=60: sixteen threads add for so long, in place of two seconds
# make aarch64    the host's C tests, NEON among them, by a cross compiler and qemu-user
# make mutants    one trap after another taken out of the code, on the double: does its test turn red
# make thorough   what a change needs once before it is called done, beside .ci/run: an hour on two processors
# make wheel      dist/*.whl by way of the source distribution, checked by auditwheel and abi3audit
# make wheels     those for PyPI: by cibuildwheel for x86-64 and aarch64 where docker or podman runs, else this machine's
# make gpu RESULTS=DIR [STAGE=test|large|sanitize|bench|ladder|peers|all]    on a machine with a GPU; needs no network
# make clean
#
# PYTHON chooses the interpreter, 3.11 or later; WORKERS how many processes run the Python tests.
# Every target does only what has not been done.

PYTHON ?= python3
STAGE ?= all
RESULTS ?= build/gpu
ARGS ?=
PROGRAMS ?=
# More than four would wait for memory: some tests add gigabytes.
WORKERS ?= $(shell n=$$(nproc); echo $$((n < 4 ? n : 4)))
# Each worker begins with a stretch of its own, so that what a file's tests share is made once. A worker that dies fails
# the run at once: of a deadlock that many tests meet, each would take its five minutes.
XDIST := -n $(WORKERS) --dist worksteal --max-worker-restart 0

VENV := .venv
BIN := $(VENV)/bin
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
# Without compiled Python each of a run's processes compiles for itself: three seconds of a worker's.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: bench peers test lint lint-python lint-format lint-warnings sanitize sanitize-c sanitize-python tsan aarch64 \
	mutants thorough wheel wheels gpu clean

# Another interpreter is another stamp, and makes the environment anew.
TAG := $(shell $(PYTHON) -c 'import sys; print(sys.implementation.cache_tag + getattr(sys, "abiflags", ""))')
NATIVE := $(BIN)/python -m build_native
C_FILES := find csrc cuda tests -name '*.[ch]' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh'

bench: $(VENV)/$(TAG).bench
	$(NATIVE) extension
	$(BIN)/vecadd bench $(ARGS)

peers: $(VENV)/$(TAG).bench $(VENV)/$(TAG).plot
	$(NATIVE) extension
	$(BIN)/python -m benchmarks.peers --json-dir $(RESULTS) --plot $(RESULTS) $(ARGS)

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

# Of the very objects that the extension and the tests are linked of.
lint-warnings: $(VENV)/$(TAG).lint
	$(NATIVE) warnings
	VECADD_CUDA=0 $(NATIVE) warnings

# PYTHONMALLOC=malloc: Python's own allocator hides use after free. Leaks are the C tests' and the double's business:
# the interpreter itself leaks at exit. libstdc++ is preloaded so that ASan finds the __cxa_throw that it wraps, SIGSEGV
# is left alone because tests kill children by it. ASan reports to files, those of child processes included; UBSan knows
# none beside ASan, and pytest would swallow what it writes to standard error.
REPORTS := $(CURDIR)/build/asan/report
sanitize: sanitize-c sanitize-python

sanitize-c: $(VENV)/$(TAG).test
	UBSAN_OPTIONS=print_stacktrace=1 $(NATIVE) --variant asan --run ctests conformance

sanitize-python: MARKS ?= not slow and not no_native
# To be left out by its mark, a file is imported first: 7 s of each worker's here.
LEFT_OUT = $(if $(findstring not no_native,$(MARKS)),$(patsubst %,--ignore=%,$(shell grep -l '^pytestmark = pytest.mark.no_native' tests/test_*.py)))
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

# The source distribution's tree has the objects that are there: each is looked at for whether it is of its sources.
UNPACKED := build/unpacked
wheel: $(VENV)/$(TAG).lint
	rm -rf dist $(UNPACKED)
	$(BIN)/python -m build --sdist
	mkdir -p $(UNPACKED)/build
	tar -xzf dist/*.tar.gz -C $(UNPACKED) --strip-components 1
	! test -d build/release || cp -r build/release $(UNPACKED)/build
	$(BIN)/python -m build --wheel --outdir dist $(UNPACKED)
	$(BIN)/auditwheel show dist/*.whl
	$(BIN)/abi3audit --strict --report dist/*.whl
	VECADD_TEST_WHEEL=$$(echo dist/*.whl) $(BIN)/python -m pytest -q -k the_wheel tests/test_build.py

# The recipe is in pyproject.toml. Here a wheel runs where the C library is as new as the symbols that it uses.
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

thorough: $(VENV)/$(TAG).lint
	.ci/thorough

gpu:
	.ci/gpu "$(PYTHON)" "$(RESULTS)" "$(STAGE)"

clean:
	rm -rf build dist vecadd.egg-info vecadd/_core*.so $(VENV)

# The compiler's packages are in the list where no nvcc works. Without isolation, objects stay good from build to build.
$(VENV)/$(TAG): build_backend.py build_native/toolkit.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "vecadd needs Python 3.11 or later: make PYTHON=python3.12, say")'
	$(PYTHON) -m venv --clear $(VENV)
	$(NATIVE) requirements > $(VENV)/requirements.txt
	$(BIN)/pip install --disable-pip-version-check -q -r $(VENV)/requirements.txt
	touch $@

$(VENV)/$(TAG).%: $(VENV)/$(TAG) pyproject.toml setup.py
	$(BIN)/pip install --disable-pip-version-check -q --no-build-isolation -e '.[$*]'
	touch $@
