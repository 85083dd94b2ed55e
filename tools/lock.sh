#!/bin/sh
# Write the lock files again from pyproject.toml: `tools/lock.sh` keeps what is locked where it can, `tools/lock.sh --upgrade` doesn't.
# No index address is written: the machine that installs decides where packages come from.
set -eu
cd "$(dirname "$0")/.."
lock() { .venv/bin/python tools/run_uv.py pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --custom-compile-command tools/lock.sh -q "$@"; }
lock "$@" pyproject.toml --extra spark --extra java --extra live --extra connect --extra expectations --extra pictures --group dev -o requirements/dev.lock
lock "$@" pyproject.toml --extra spark --extra java --extra live --extra expectations --extra pictures -c requirements/dev.lock -o requirements/run.lock
# What `make test-live` fetches for itself.
echo 'moto[s3]>=5.2
flask>=3.1
flask-cors>=6.0' | lock "$@" - -o tests/cluster/moto.lock
echo 'hdfs-native>=0.14
fsspec>=2025.3' | lock "$@" - -o tests/cluster/hdfs.lock
echo 'pyspark-client==4.2.0' | lock "$@" --no-deps - -o tests/cluster/pyspark-client.lock
echo 'apache-airflow>=3.3,<4
apache-airflow-providers-apache-spark>=6.3' | lock "$@" - -o tests/cluster/airflow.lock
echo 'uv>=0.9' | lock "$@" - -o requirements/uv.lock
