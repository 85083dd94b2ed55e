"""The Spark session: reused when there is one, quiet, leaving no trace, and what spark-submit says wins."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from jobs.exit import UsageError
from jobs.runtime import spark as sessions
from jobs.runtime.java import java_home, java_without_vectors
from jobs.runtime.spark import (
    QUIET_JVM,
    SMALL_JVM_OPTIONS,
    class_archive,
    profile_settings,
    spark_java,
    spark_session,
)

pytestmark = pytest.mark.java
ROOT = Path(__file__).parents[2]
PROGRAM = """
import os
from jobs.runtime.spark import spark_session
with spark_session("{profile}", settings={{"spark.sql.shuffle.partitions": "3"}}) as spark:
    spark.range(2).write.format("delta").save("{folder}/table")
    keys = ["master", "sql.session.timeZone", "sql.shuffle.partitions", "sql.extensions", "app.name"]
    print([spark.conf.get(f"spark.{{key}}") for key in keys], spark.range(3).count(), os.environ.get("SPARK_LOCAL_IP"))
"""


def test_an_active_session_is_reused_and_left_running(spark: SparkSession) -> None:
    with spark_session("local", "another", settings={"spark.sql.shuffle.partitions": "77"}) as inner:
        assert inner is spark
    assert spark.conf.get("spark.sql.shuffle.partitions") != "77"
    assert spark.range(2).count() == 2


def test_profiles_differ_where_it_matters() -> None:
    assert "spark.master" not in profile_settings("cluster")
    assert profile_settings("local", cores=3, driver_memory="9g").items() >= {
        ("spark.master", "local[3,2]"),
        ("spark.driver.memory", "9g"),
        ("spark.sql.shuffle.partitions", "6"),
    }
    assert profile_settings("small")["spark.sql.shuffle.partitions"] == "1"


def test_large_values_are_written_in_groups_of_rows_that_a_reader_can_hold(spark: SparkSession, tmp_path: Path) -> None:
    """By default Parquet would guess from the small row that all of them are one small group."""
    sizes = [1, *[4 << 20] * 48]

    def values(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            for size in sizes:
                yield pa.RecordBatch.from_pydict({"payload": [os.urandom(size)]})

    one = spark.range(0, 1, 1, 1)
    one.mapInArrow(values, "payload binary").write.format("delta").save(str(tmp_path / "large"))
    [file] = (tmp_path / "large").glob("*.parquet")
    metadata = pq.read_metadata(file)
    groups = [metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups)]
    assert sum(groups) >= sum(sizes)
    assert max(groups) <= 80 << 20


@pytest.mark.slow
def test_a_run_prints_its_own_lines_only(tmp_path: Path) -> None:
    done = _run([sys.executable, "-c", PROGRAM.format(profile="small", folder=tmp_path)], cwd=tmp_path)
    assert done.stdout.splitlines() == [
        f"['local[{os.cpu_count()},2]', 'UTC', '3', 'io.delta.sql.DeltaSparkSessionExtension', 'kraft-audit'] 3 None"
    ]
    assert done.stderr == ""
    assert [path.name for path in tmp_path.iterdir()] == ["table"]


@pytest.mark.slow
def test_the_classes_that_audits_load_come_from_the_archive_that_set_up_made(tmp_path: Path) -> None:
    loads = tmp_path / "loads"
    asked = [
        "org.apache.spark.SparkContext",
        "org.apache.spark.sql.delta.DeltaLog",
        "org.apache.spark.sql.SparkSession",
    ]
    if not (java_home() / "lib" / "server" / "classes.jsa").is_file():
        pytest.skip("this Java has no archive of its own classes, so that it can make none beside it")
    with spark_java({"spark.driver.extraJavaOptions": f"-Xlog:class+load:file={loads}"}) as gateway:
        loader = gateway.jvm.java.lang.ClassLoader.getSystemClassLoader()
        for name in asked:
            gateway.jvm.java.lang.Class.forName(name, False, loader)
    sources = dict(
        line.split("] ")[-1].split(" source: ") for line in loads.read_text().splitlines() if " source: " in line
    )
    assert {name: sources[name] for name in asked} == dict.fromkeys(asked, "shared objects file (top)")


@pytest.mark.slow
def test_spark_submit_wins_over_the_profile(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM.format(profile="small", folder=tmp_path))
    submit = [str(Path(sys.executable).with_name("spark-submit")), "--master", "local[1]", "--name", "submitted"]
    settings = ["--conf", "spark.sql.session.timeZone=Asia/Tokyo", "--conf", "spark.ui.enabled=false"]
    # Nothing that is asked here, and a third of the time.
    settings += ["--conf", "spark.databricks.delta.snapshotPartitions=1"]
    settings += ["--driver-java-options", f"-XX:SharedArchiveFile={class_archive()} {SMALL_JVM_OPTIONS} {QUIET_JVM}"]
    done = _run([*submit, *settings, "program.py"], cwd=tmp_path)
    # But for the time zone, which an audit needs to be UTC.
    assert "['local[1]', 'UTC', '3', 'io.delta.sql.DeltaSparkSessionExtension', 'submitted'] 3 " in done.stdout


def _run(command: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    # spark-submit asks for a Java; this machine may have no other than the packaged one.
    with java_without_vectors(java_home()) as home:
        own = {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "JAVA_HOME": str(home)}
        environment = os.environ | own
        environment.pop("PYSPARK_GATEWAY_PORT", None)
        done = subprocess.run(
            command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=300
        )
    assert done.returncode == 0, done.stderr[-3000:]
    return done


@pytest.mark.parametrize("where", ["sc://connect..example.com:15002", "sc://connect.example.com:99999"])
def test_an_address_of_spark_connect_that_can_be_none_is_one_line(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in sessions._GRPC_PROXIES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_REMOTE", f"{where}/;token=a-secret")
    with pytest.raises(UsageError, match=f"^{where}/ is not an address: check SPARK_REMOTE$"):
        sessions._connected("test")
