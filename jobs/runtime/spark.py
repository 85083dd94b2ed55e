"""The Spark session of a run: made with the settings that were measured to matter, or the one that is already there.

Nothing outside this module makes a session or reaches into the JVM, so the same jobs run on a laptop, under
`spark-submit`, on Databricks and through Spark Connect (`SPARK_REMOTE`, or a session that is given).
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pyspark
from pyspark.errors import PySparkException, PySparkImportError
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from jobs.exit import UsageError
from jobs.out_of_memory import java_is_gone
from jobs.runtime.databricks import on_databricks
from jobs.runtime.java import java_home, java_version, java_without_vectors
from jobs.runtime.stopping import not_halfway

# small: demonstration, tests, one-off audits; local: one large machine; cluster: the settings of spark-submit.
Profile = Literal["small", "local", "cluster"]

DELTA_VERSION = "4.4.0"
DELTA_PACKAGE = f"io.delta:delta-spark_4.2_2.13:{DELTA_VERSION}"
# The package declares 31 more jars for catalog and kernel clients; Spark brings what is needed of them.
DELTA_EXCLUDES = "com.*:*,org.*:*,commons-*:*,javax.*:*,io.airlift:*,io.unitycatalog:*,io.delta:delta-kernel*"
DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
LOOPBACK = "127.0.0.1"
LOG_CONFIGURATION = Path(__file__).with_name("log4j2.properties")

# Results of a pass are rows of megabytes. Parquet guesses from the rows before when to look at the size of a page, or of a group
# of rows, again: after one small row hundreds of large ones came together, and Java had no memory left to read them
# (tests/benchmarks/README.md, "Where the time of a large run goes").
PARQUET_SETTINGS: dict[str, str] = {
    "parquet.block.size": str(32 * 1024 * 1024),
    **{f"parquet.{part}.size.row.check.{limit}": "10" for part in ("page", "block") for limit in ("min", "max")},
}
COMMON_SETTINGS: dict[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    # Names that come from a cluster may hold "${…}".
    "spark.sql.variable.substitute": "false",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Rows for Python come in batches that both limits end. What is packed for a pass is a few rows of megabytes: without a limit of
    # bytes all of a large cluster's would be one batch, whose memory doubles in Java as it grows. Where only the rows can be limited,
    # a row may have 128 KiB on average: a tree whose znodes could have more is refused where it is read
    # (`transforms.zookeeper.storage.limits`).
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16384",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(64 * 1024 * 1024),
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.ui.showConsoleProgress": "false",
}
# A session that somebody else made must have them, or timestamps of reports and tables would be another zone's.
NEEDED_SETTINGS: dict[str, str] = {"spark.sql.session.timeZone": "UTC"}
# It gets these too where its owner allows that; serverless compute does not, and goes without.
WANTED_SETTINGS: dict[str, str] = PARQUET_SETTINGS | {
    name: COMMON_SETTINGS[name]
    for name in (
        "spark.sql.variable.substitute",
        "spark.sql.execution.arrow.maxRecordsPerBatch",
        "spark.sql.execution.arrow.maxBytesPerBatch",
    )
}
ONE_MACHINE_SETTINGS: dict[str, str] = {
    "spark.ui.enabled": "false",
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    # Reading the Delta log with one task instead of 50 is the largest single saving on small tables.
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    # Files that are named (`Warehouse.read`) are looked at by the driver: with the default of 32 more are looked for in a query.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
}
LOCAL_SETTINGS: dict[str, str] = {
    # With the default of 128 MB ten million records are three tasks, and two cores wait for the third.
    "spark.sql.files.maxPartitionBytes": "24m",
    # Where tables are partitioned by cluster, a run writes few of them: without this Delta sorts every row by it.
    "spark.sql.maxConcurrentOutputFileWriters": "2",
}
SMALL_SETTINGS: dict[str, str] = {
    "spark.sql.shuffle.partitions": "1",
    # A copy of a table's list of files in each commit's checksum is one more query for each table that is made.
    "spark.databricks.delta.allFilesInCrc.enabled": "false",
    "spark.default.parallelism": "2",
    # Compiling a query takes longer than interpreting it on the few thousand rows of a small cluster.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
# Without the second compiler Java reserves 48 MB for compiled code; one audit fills them and continues uncompiled.
SMALL_JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"
# A batch wants throughput: a tenth less time than with the default collector, and no longer pauses that anybody sees.
LOCAL_JVM_OPTIONS = "-XX:+UseParallelGC"
_PROFILE_JVM_OPTIONS: dict[str, str] = {"small": SMALL_JVM_OPTIONS, "local": LOCAL_JVM_OPTIONS}
_CONNECT_PORT = 15002
_ANSWER_SECONDS = 15.0
# Behind a proxy a connection test from here proves nothing.
_GRPC_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
_JVM_OPTIONS = "spark.driver.extraJavaOptions"
# Long enough to write an archive of classes at the end.
_JAVA_END_SECONDS = 180
MAKE_ARCHIVE = "-XX:ArchiveClassesAtExit"
QUIET_JVM = "-Xshare:auto -Xlog:disable -Xlog:all=error:stderr"


def session_is_given() -> bool:
    """True when whoever started Python decides on the session: a notebook, Databricks, spark-submit, Spark Connect."""
    return SparkSession.getActiveSession() is not None or _through_connect() or "PYSPARK_GATEWAY_PORT" in os.environ


def _through_connect() -> bool:
    """True if the environment, or the only installed PySpark, requires Spark Connect."""
    return bool(os.environ.get("SPARK_REMOTE")) or os.environ.get("SPARK_API_MODE") == "connect" or is_remote()


@contextmanager
def spark_session(
    profile: Profile,
    app_name: str = "kraft-audit",
    *,
    cores: int | None = None,
    driver_memory: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """Yield a Spark session; stop it at the end only if this call started it.

    profile: how much machine to expect. An active session (Databricks, a notebook, an enclosing call) is yielded as it is,
    regardless of the profile, with NEEDED_SETTINGS and WANTED_SETTINGS meanwhile. cores and driver_memory (`"6g"`) count for
    the profiles of one machine only. settings: Spark settings that override the profile's.

    Raises `JavaNotFoundError` when a session must be started here and there is no Java for it, and `UsageError` when a
    given session has other NEEDED_SETTINGS and refuses them.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        with _made_fit(active):
            yield active
        return
    session: SparkSession | None = None
    try:
        with not_halfway():
            session = _start(profile, app_name, cores, driver_memory, dict(settings or {}))
            _keep_quiet(session)
        with _made_fit(session):
            yield session
    finally:
        # On Databricks a session belongs to the cluster or the notebook, even if this code requested it first.
        if session is not None and not on_databricks():
            _stop(session)


@contextmanager
def _made_fit(session: SparkSession) -> Iterator[None]:
    """Give a session the settings that an audit needs, and its own ones back at the end."""
    before: dict[str, str] = {}
    try:
        for name, value in (NEEDED_SETTINGS | WANTED_SETTINGS).items():
            given = _setting(session, name)
            if given == value:
                continue
            try:
                session.conf.set(name, value)
            except PySparkException as error:
                if name in NEEDED_SETTINGS:
                    raise UsageError(
                        f"the Spark session has {name}={given} and does not let it be changed: start it with {name}={value}"
                    ) from error
            else:
                before[name] = given
        yield
    finally:
        # A session that has ended meanwhile has nothing to be given back.
        with suppress(Exception):
            for name, value in before.items():
                session.conf.set(name, value) if value else session.conf.unset(name)


def _setting(session: SparkSession, name: str) -> str:
    """A setting of a session; empty if it is not set or may not be read."""
    try:
        return session.conf.get(name, None) or ""
    except PySparkException:
        return ""


def is_connect(session: SparkSession) -> bool:
    """True when the session's Spark is another program, spoken to by Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect.")


def _keep_quiet(session: SparkSession) -> None:
    """Have PySpark's server for counters print no trace when its Java is gone: the query that failed says so."""
    if not is_connect(session):
        server = getattr(session.sparkContext, "_accumulatorServer", None)
        if server is not None:
            server.handle_error = lambda _request, _client: None


def _stop(session: SparkSession) -> None:
    """End a session. If its Java was killed it has ended already; the last query has reported that."""
    try:
        session.stop()
    except Exception as error:
        if not java_is_gone(error):
            raise


@contextmanager
def spark_java(settings: Mapping[str, str]) -> Iterator[Any]:
    """Yield the gateway (py4j) of a Java as the profile `small` starts it, without Spark in it yet; waits for its end.

    Class path and options are those of sessions; `settings` may ask for packages and more options of Java. Raises
    `JavaNotFoundError`, and `PySparkRuntimeError` if it does not start: the reason is on standard error.
    """
    # Where only Spark Connect is installed there is neither.
    from pyspark import SparkConf, java_gateway  # noqa: PLC0415

    launch: Callable[[SparkConf], Any] = java_gateway.launch_gateway
    conf = SparkConf(loadDefaults=False)
    for key, value in _own_settings("small", None, None, settings).items():
        conf.set(key, value)
    with java_without_vectors(java_home()) as home, _environment(_launch_environment("small", home)):
        gateway = launch(conf)
    try:
        yield gateway
    finally:
        gateway.shutdown()
        # It ends with its standard input.
        gateway.proc.stdin.close()
        gateway.proc.wait(_JAVA_END_SECONDS)


def java_of(spark: SparkSession) -> int | None:
    """Number of the process that commits for this session, if it runs on this machine; None if that is unknown."""
    # Spark Connect has no Java here, and a shared cluster does not let anybody look.
    with suppress(Exception):
        gateway: Any = spark.sparkContext._gateway
        started = getattr(gateway, "proc", None)
        if started is not None:
            return int(started.pid)
        return int(gateway.jvm.java.lang.ProcessHandle.current().pid())
    return None


def profile_settings(profile: Profile, cores: int | None = None, driver_memory: str | None = None) -> dict[str, str]:
    """Spark settings of a profile, without those that only the starting of a JVM needs."""
    if profile == "cluster":
        return dict(COMMON_SETTINGS)
    cores = cores or os.cpu_count() or 2
    chosen = COMMON_SETTINGS | ONE_MACHINE_SETTINGS
    if profile == "small":
        chosen |= SMALL_SETTINGS
    else:
        chosen |= LOCAL_SETTINGS | {"spark.sql.shuffle.partitions": str(2 * cores)}
    return chosen | {
        # A task whose Python worker was killed is tried once more.
        "spark.master": f"local[{cores},2]",
        "spark.driver.memory": driver_memory or ("2g" if profile == "small" else "6g"),
    }


def _start(
    profile: Profile, app_name: str, cores: int | None, driver_memory: str | None, extra: dict[str, str]
) -> SparkSession:
    if _through_connect():
        return _connected(app_name)
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        submitted = _under_submit(profile_settings("cluster") | extra)
        return _configured(SparkSession.builder, submitted).getOrCreate()
    settings = _own_settings(profile, cores, driver_memory, extra)
    with java_without_vectors(java_home()) as home, _environment(_launch_environment(profile, home)), _quiet_output():
        return _configured(SparkSession.builder.appName(app_name), settings).getOrCreate()


def _connected(app_name: str) -> SparkSession:
    """A session of a Spark that is another program. Raises UsageError when it can't be had."""
    # The rest of the address may hold a token.
    where = os.environ.get("SPARK_REMOTE", "").partition(";")[0]
    _refuse_unanswered(where)
    try:
        return SparkSession.builder.appName(app_name).getOrCreate()
    except PySparkImportError as error:
        raise UsageError(
            "Spark Connect needs more Python packages than are installed: install kraft-migration-audit[connect]"
        ) from error
    except PySparkException as error:
        raise UsageError(
            f"Spark Connect at {where or 'its default address'} can't be used: check SPARK_REMOTE"
        ) from error


def _refuse_unanswered(where: str) -> None:
    """Raise UsageError when nothing answers at `sc://host:port`, where PySpark itself would try for ten minutes."""
    address = urlsplit(where)
    if address.scheme != "sc" or any(os.environ.get(name) for name in _GRPC_PROXIES):
        return
    try:
        socket.create_connection((address.hostname or LOOPBACK, address.port or _CONNECT_PORT), _ANSWER_SECONDS).close()
    except OSError as error:
        raise UsageError(
            f"nothing answers at {where} ({error.strerror or 'no answer in time'}): check SPARK_REMOTE and the Spark Connect server"
        ) from None
    except ValueError:
        # What Python says of a port or a name that can be none.
        raise UsageError(f"{where} is not an address: check SPARK_REMOTE") from None


def _own_settings(
    profile: Profile, cores: int | None, driver_memory: str | None, extra: Mapping[str, str]
) -> dict[str, str]:
    """Settings of a session whose Java is started here."""
    settings = profile_settings(profile, cores, driver_memory) | _delta_settings() | dict(extra)
    if profile != "cluster":
        settings[_JVM_OPTIONS] = _jvm_options(profile, settings.get(_JVM_OPTIONS, ""))
    return settings


def _configured(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession.Builder:
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder


def _under_submit(settings: dict[str, str]) -> dict[str, str]:
    """Options of spark-submit override the profile; Delta is added to the extensions given there."""
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415

    SparkContext._ensure_initialized()
    submitted = SparkConf()
    chosen = {key: value for key, value in settings.items() if not submitted.contains(key)}
    extensions = [name for name in submitted.get("spark.sql.extensions", "").split(",") if name]
    if DELTA_EXTENSION not in extensions:
        chosen["spark.sql.extensions"] = ",".join([*extensions, DELTA_EXTENSION])
    if not submitted.contains("spark.sql.catalog.spark_catalog"):
        chosen["spark.sql.catalog.spark_catalog"] = DELTA_CATALOG
    return chosen


def _delta_settings() -> dict[str, str]:
    """Settings that load Delta: from the jars `make setup` put beside Spark's, else through Spark's own resolver."""
    chosen = {"spark.sql.extensions": DELTA_EXTENSION, "spark.sql.catalog.spark_catalog": DELTA_CATALOG}
    if not delta_jars():
        chosen |= {"spark.jars.packages": DELTA_PACKAGE, "spark.jars.excludes": DELTA_EXCLUDES}
    return chosen


def delta_jars() -> list[Path]:
    """Delta's jars beside Spark's own, where `make setup` puts them; none when every start has to fetch them."""
    home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    return sorted((home / "jars").glob("delta-spark_*.jar"))


def class_archive() -> Path:
    """Where `make setup` keeps the classes that an audit loads, in a form that the Java in use starts quickly from."""
    return Path(sys.prefix) / f"spark-classes-java{java_version(java_home())}.jsa"


def _jvm_options(profile: Profile, extra: str) -> str:
    options = [
        f"-Dlog4j2.configurationFile={LOG_CONFIGURATION.as_uri()}",
        _PROFILE_JVM_OPTIONS.get(profile, ""),
    ]
    if MAKE_ARCHIVE not in extra and class_archive().is_file():
        # Java ignores an archive of another build or class path; it need not print that.
        options.append(f"-XX:SharedArchiveFile={class_archive()} {QUIET_JVM}")
    # Of two options that contradict each other Java takes the last one.
    options.append(extra)
    return " ".join(option for option in options if option)


def _launch_environment(profile: Profile, home: Path) -> dict[str, str]:
    variables = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable, "JAVA_HOME": str(home)}
    if profile != "cluster":
        variables["SPARK_LOCAL_IP"] = LOOPBACK
    return variables


@contextmanager
def _quiet_output() -> Iterator[None]:
    """Give a Java that starts no standard output: Delta's VACUUM writes there, between the lines of whoever reads ours."""
    sys.stdout.flush()
    try:
        ours = os.dup(1)
    except OSError:
        # There is none.
        yield
        return
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)
        yield
    finally:
        os.dup2(ours, 1)
        os.close(ours)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables while the JVM starts: it inherits them, and nothing after it does."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def stop_queries(spark: SparkSession) -> None:
    """Interrupt this session's running queries, and nothing else in a shared context. What cannot be interrupted continues."""
    with suppress(Exception):
        spark.interruptAll()


def tasks_of_queries(spark: SparkSession) -> tuple[int, int]:
    """Tasks of the running stages: how many are done, and all. (0, 0) where the session is over or remote: it has no such counts."""
    try:
        tracker = spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    except Exception:
        return (0, 0)
    known = [stage for stage in stages if stage is not None]
    return sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known)
