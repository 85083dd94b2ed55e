# make setup   the environment in .venv: Python packages, Delta's jars, a Java if the machine has none
# make demo    two audits of a real migration, from a live ZooKeeper server to the report
# make test    every check that starts no Kafka and no Spark cluster
# make test-fast  the checks and tests that start no Spark
# make test-bare  set-up, pages and the tests that start Java, with this machine's Java and browsers hidden
# make test-live  real Kafka controllers and a real Spark cluster, started on loopback, a real migration, ten audits of a cluster that
#                 changes, Airflow, the profile of large inputs: half an hour; Kafka is fetched from Maven Central on first use
# make lock    new lock files from pyproject.toml
# make classes the list of Java classes that a quick start is prepared with: when Spark or Delta has changed
# make sbom    sbom.json: what a run is made of, by the lock file, as CycloneDX
# make docs    the pages of docs/ that are made from the declarations

# The first Python of these that is new enough; `make PYTHON=/path/to/python3.12 …` chooses another.
PYTHON ?= $(shell for name in python3.11 python3.12 python3.13 python3; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && command -v $$name && break; done)

.PHONY: setup demo test test-fast test-bare test-live lock classes docs sbom

setup:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: install it, or make PYTHON=/path/to/python3 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) tools/set_up.py

demo: setup
	@.venv/bin/kraft-audit demo

test: setup
	@tools/test.sh

test-fast: setup
	@tools/test.sh -m "not spark and not slow and not live"

test-bare: setup
	@.venv/bin/python tools/bare_machine.py tools/test_bare.sh

test-live: setup
	@unset PYTHONDONTWRITEBYTECODE; .venv/bin/python -m pytest -rs --no-fold-skipped -m live -n 2 --dist loadgroup --no-loadscope-reorder </dev/null

lock: setup
	@tools/lock.sh

classes: setup
	@.venv/bin/python tools/class_list.py

sbom: setup
	@.venv/bin/cyclonedx-py requirements requirements/run.lock --pyproject pyproject.toml --output-reproducible --of JSON -o sbom.json

docs: setup
	@.venv/bin/python tools/docs.py
