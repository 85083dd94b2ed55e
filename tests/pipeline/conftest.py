"""One audit a capture for all tests of the pipeline: an audit is the costly part, and nothing changes it afterwards."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from tests.captures import capture
from tests.pipeline.audits import Audit, audit, settings_content


@pytest.fixture(scope="session")
def audit_of(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Audit]:
    made: dict[tuple[str, str], Audit] = {}

    def run(version: str, stage: str) -> Audit:
        if (version, stage) not in made:
            made[version, stage] = audit(settings_content(capture(version, stage), tmp_path_factory.mktemp("audit")))
            spark.catalog.clearCache()
        return made[version, stage]

    return run
