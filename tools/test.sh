#!/bin/sh
# Every check there is, quick ones first; the last line is pytest's summary.
set -eu
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
# Where Python keeps no compiled modules, each of the tests' hundreds of processes compiles all it imports: half of its start.
unset SPARK_HOME PYTHONPATH PYTHONDONTWRITEBYTECODE
step() { echo "== $*"; "$@" </dev/null; }
step ruff check --quiet .
step ruff format --check --quiet .
step mypy jobs transforms schemas
step lint-imports
step pytest -rs -n 2 --dist loadgroup --no-loadscope-reorder "$@"
