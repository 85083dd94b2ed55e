"""One run over all clusters of the pipeline's tests: an audit's cost is in its queries, and nothing changes it afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from pyspark.sql import SparkSession

from jobs.run.run import Failure
from tests.captures import capture
from tests.pipeline.audits import PREPARED, Audit, audit_all, settings_content

# Every stage of the newest release, the telling ones of the others.
CAPTURES = [
    *[("3.9.1", str(stage)) for stage in range(3, 13)],
    *[
        ("3.9.1", stage)
        for stage in (
            "quota-removal",
            "blocked-by-missing-broker",
            "retry-leftover-migration",
            "retry-after-join",
            "rolled-back",
        )
    ],
    *[("3.6.2", stage) for stage in ("3", "5", "7", "8", "10", "12")],
    *[("3.5.2", stage) for stage in ("5", "8")],
]


@pytest.fixture(scope="session")
def fleet(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Audit | Failure]:
    """Audits by cluster: captures as `VERSION-STAGE`, and whatever test modules have prepared with `in_fleet`."""
    warehouse = tmp_path_factory.mktemp("fleet")
    contents: list[Mapping[str, object]] = [
        settings_content(capture(version, stage), warehouse, cluster=f"{version}-{stage}")
        for version, stage in CAPTURES
    ]
    for name, prepare in PREPARED.items():
        content = prepare(tmp_path_factory.mktemp(name))
        contents.append({**content, "cluster": name, "warehouse": str(warehouse), "report": {"folder": str(warehouse)}})
    return audit_all(contents)


@pytest.fixture(scope="session")
def audited(fleet: Mapping[str, Audit | Failure]) -> Callable[[str], Audit]:
    """Audit of a prepared cluster."""

    def of(name: str) -> Audit:
        found = fleet[name]
        assert isinstance(found, Audit), found
        return found

    return of


@pytest.fixture(scope="session")
def audit_of(audited: Callable[[str], Audit]) -> Callable[[str, str], Audit]:
    """Audit of a capture, by version and stage."""
    return lambda version, stage: audited(f"{version}-{stage}")
