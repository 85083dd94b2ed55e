#!/bin/sh
# The tests that could miss a Java or a browser of the machine's: set-up, pages, and what starts a Java. For `tools/bare_machine.py`.
set -eu
cd "$(dirname "$0")/.."
unset SPARK_HOME PYTHONPATH PYTHONDONTWRITEBYTECODE
for program in java chromium google-chrome; do
  if command -v "$program"; then echo "$program is to be hidden; run make test-bare" >&2; exit 2; fi
done
# Set-up prepared a quick start for the Java that is hidden now; here it does so for the packaged one, as it would have.
.venv/bin/python tools/warm_up.py </dev/null
export PATH="$PWD/.venv/bin:$PATH"
exec pytest -n 2 --dist loadgroup --no-loadscope-reorder -rs -m "(java or not (spark or slow)) and not live" \
  tests/setup tests/report tests/zookeeper/test_live.py tests/zookeeper/test_read_only.py "$@" </dev/null
