# Everything sets itself up: a virtual environment in .venv, from the package index alone, with the versions of
# requirements.lock. It is made for the Pythons that pyproject.toml names; another one gets the newest versions.
PYTHON ?= python3
VENV ?= .venv
PYTHON_VERSION = $(shell $(PYTHON) -c 'import sys; print("{}.{}".format(*sys.version_info))')
CONSTRAINTS ?= $(if $(shell grep 'Python :: $(PYTHON_VERSION)"' pyproject.toml),requirements.lock)
PAPER ?= # all of them
SLOW ?= # yes: also the tests that are marked slow
READINGS ?= # yes: also the readings that only differences.md tells of
BIN = $(VENV)/bin
OPTIONS = --quiet $(CONSTRAINTS:%=--constraint %) --editable
# uv takes a tenth of pip's time, and asks the index that pip is set to; where it fails, pip does the same.
INDEX = $$($(BIN)/python -m pip config list | sed -n "s/.*[.]index-url='\(.*\)'/UV_DEFAULT_INDEX=\1/p" | tail -n 1)
install = env $(INDEX) $(BIN)/uv pip install --system-certs --python $(BIN)/python $(OPTIONS) $(1) 2>/dev/null \
	|| $(BIN)/python -m pip install --no-compile $(OPTIONS) $(1)
DIST = federated_kernel_learning-$(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' fkl/__init__.py)
SBOM = dist/$(DIST).cdx.json

# A test session starts hundreds of Pythons: each would compile all that it imports anew, some 5 s of CPU.
unexport PYTHONDONTWRITEBYTECODE

SLOW_TESTS = $(addprefix tests/,algorithms conditions docs engines runs/test_runs_end_to_end.py sites/test_sites.py test_screens.py)

.PHONY: run test test-without-data test-slow test-costs test-installed sites lint format docs bench \
	reproduce-tables lock newest lowest sbom dist clean

run: $(VENV)/run
	$(BIN)/fkl run

test: $(VENV)/ready
	$(BIN)/python -m pytest --numprocesses=auto --dist=loadfile $(if $(SLOW),,-m 'not slow')

# The tests that look for data files, where there are none.
test-without-data: $(VENV)/ready
	FKL_DATA=no-data $(BIN)/python -m pytest --numprocesses=auto --dist=loadfile -m 'not slow' \
		$$(grep -rl published_files --include='test_*.py' tests)

# The slow tests that CI runs: all methods, pages and the site. `make test SLOW=yes` runs every slow test, also those with
# a process for each party of each method, which take longer than all others of the methods together.
test-slow: $(VENV)/ready
	$(BIN)/python -m pytest --numprocesses=auto --dist=loadfile -m slow $(SLOW_TESTS) \
		-k 'not (parties_share_nothing or seeded_runs_repeat)'

# What the tests of `make test` cost: the twenty most expensive ones, and each folder.
test-costs: $(VENV)/ready
	PYTHONPATH=tests $(BIN)/python -m pytest -p costs --numprocesses=auto --dist=loadfile -m 'not slow'

# The tests of the source distribution on the wheel, in an empty environment and away from this folder.
test-installed: dist
	folder=$$(mktemp -d) && $(PYTHON) -m venv $$folder/venv && mkdir $$folder/source \
	&& $$folder/venv/bin/python -m pip install --quiet --no-compile 'dist/$(DIST)-py3-none-any.whl[dev]' \
	&& tar -xzf dist/$(DIST).tar.gz --strip-components=1 -C $$folder/source && cd $$folder/source \
	&& ../venv/bin/pytest --numprocesses=auto --dist=loadfile $(if $(SLOW),,-m 'not slow')

# Three sites of Flower on this machine, one killed and back.
sites: $(VENV)/ready
	$(BIN)/python -m pytest tests/sites/test_sites_deployed.py

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python scripts/prose.py
	$(BIN)/python scripts/house.py

format: $(VENV)/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Writes the pages to build/docs, and build/site/index.html from them; a broken link is an error.
docs: $(VENV)/ready
	$(BIN)/python docs/pages.py build/docs
	$(BIN)/python -m sphinx -q -W --keep-going -c docs build/docs build/site

# Times beside the floor of their arithmetic, then how many times longer literal transcriptions of the papers take.
bench: $(VENV)/ready
	$(BIN)/python -m benchmarks
	PYTHONPATH=tests $(BIN)/python -m benchmarks.literal

reproduce-tables: $(VENV)/ready
	$(BIN)/fkl reproduce $(if $(READINGS),--readings) $(PAPER)

# Writes the newest versions that pyproject.toml allows into requirements.lock, for all systems and Pythons.
lock: $(VENV)/run
	$(BIN)/uv pip compile --universal --upgrade --extra dev --quiet --custom-compile-command 'make lock' \
		--output-file requirements.lock pyproject.toml

# Runs the tests with the newest versions that pyproject.toml allows.
newest:
	rm -rf .venv-newest
	$(MAKE) test VENV=.venv-newest CONSTRAINTS=

# Runs the tests with the oldest versions that pyproject.toml allows; they exist for Python 3.11 and 3.12.
lowest: $(VENV)/run
	$(BIN)/uv pip compile --resolution lowest-direct --python $(BIN)/python --extra dev --quiet \
		--output-file $(VENV)/lowest.txt pyproject.toml
	$(MAKE) test VENV=.venv-lowest CONSTRAINTS=$(VENV)/lowest.txt

# What requirements.lock names, tools of development too, in the format of CycloneDX.
sbom: $(VENV)/ready
	mkdir -p $(dir $(SBOM))
	$(BIN)/cyclonedx-py requirements --pyproject pyproject.toml --mc-type library --output-reproducible \
		--output-file $(SBOM) requirements.lock

# A wheel, a source distribution and the list of `make sbom`, in dist/.
dist: sbom
	$(BIN)/python -m build --no-isolation

clean:
	rm -rf $(VENV) .venv-newest .venv-lowest .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find fkl -name '*.nb[ci]' -delete

# What a run needs. Python compiles what it imports by itself; compiling all that is installed would take most of this
# command's time.
$(VENV)/run: pyproject.toml requirements.lock
	@echo 'Python $(PYTHON_VERSION): installing $(if $(CONSTRAINTS),the versions of $(CONSTRAINTS),the newest versions that pyproject.toml allows)'
	$(PYTHON) -m venv $(VENV)
	-$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check uv
	$(call install,.)
	touch $@

# What the tests and lint need, too.
$(VENV)/ready: $(VENV)/run
	$(call install,'.[dev]')
	touch $@
