"""`kraft-audit` with what serverless compute refuses refused here, too: `python -m tests.cluster.serverless COMMAND …`.

With `--notebook FILE NAME=VALUE …` in place of a command it runs a notebook with these parameters.
Of Databricks' limitations of serverless compute: nothing is cached, persisted or checkpointed, and six settings can be set.
"""

from __future__ import annotations

import os
import runpy
import sys
from typing import Any, NoReturn

from pyspark.errors import AnalysisException
from pyspark.sql.connect.conf import RuntimeConf
from pyspark.sql.connect.dataframe import DataFrame

from jobs import cli
from jobs.evidence.notebook import ENVIRONMENT_PREFIX

_REFUSED = ("persist", "cache", "checkpoint", "localCheckpoint")
_SETTABLE = (
    "spark.databricks.execution.timeout",
    "spark.sql.ansi.enabled",
    "spark.sql.files.maxPartitionBytes",
    "spark.sql.legacy.timeParserPolicy",
    "spark.sql.session.timeZone",
    "spark.sql.shuffle.partitions",
)


def _refusing(name: str) -> Any:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise AnalysisException(f"[NOT_SUPPORTED_WITH_SERVERLESS] {name} is not supported on serverless compute")

    return refuse


def refuse() -> None:
    """Patch PySpark's client in this process."""
    for name in _REFUSED:
        setattr(DataFrame, name, _refusing(name))
    allowed = RuntimeConf.set

    def set_allowed(self: RuntimeConf, key: str, value: Any) -> None:
        if key not in _SETTABLE:
            raise AnalysisException(f"[CONFIG_NOT_AVAILABLE] Configuration {key} is not available")
        allowed(self, key, value)

    RuntimeConf.set = set_allowed  # type: ignore[method-assign]


def main(arguments: list[str]) -> int:
    """Run a command or a notebook under the refusals."""
    refuse()
    if arguments[0] != "--notebook":
        return cli.main(arguments)
    for parameter in arguments[2:]:
        name, _, value = parameter.partition("=")
        os.environ[ENVIRONMENT_PREFIX + name.upper()] = value
    runpy.run_path(arguments[1])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
