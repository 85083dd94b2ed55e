"""`kraft-audit doctor`: what would make a run fail, before it does: Java, Spark, Delta, sources, secrets, space. Starts no Spark."""

from __future__ import annotations

import argparse
import fcntl
import importlib.metadata
import os
import platform
import re
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from jobs.evidence.inputs import profile_of_run
from jobs.exit import OK, USAGE, WARNINGS, AuditError, UsageError
from jobs.expectations.suites import read_suites
from jobs.places import Place, RemotePlace
from jobs.run.run import shared
from jobs.runtime.java import java_home, java_version
from jobs.runtime.output import say
from jobs.runtime.spark import delta_jars, profile_settings
from jobs.settings import (
    KraftSettings,
    MailSettings,
    PropertySettings,
    Settings,
    add_files_argument,
    check_files,
    controllers_risk,
    load_settings,
    secret_from_environment,
    zookeeper_risk,
)
from jobs.sinks.storage import folder_of, is_uri, known_safe, unsafe_scheme
from jobs.sources.kraft.folder import KraftSourceError, find_log_folders
from jobs.sources.property_files import read_property_files
from jobs.sources.remote import RemoteError, is_remote, local_path, remote_size, remove_file, write_file
from jobs.sources.suppressions import read_suppressions
from jobs.sources.zookeeper.client import ZooKeeperWalkError, make_client, start
from jobs.steps.ingest_zookeeper import live_settings
from jobs.version import tool_version
from schemas.table import Layer
from transforms.report.printable import counted, size_text, visible

OKAY, WARN, FAIL = "ok", "warn", "FAIL"
_CONNECT_SECONDS = 10.0
# Bronze, silver and gold of a run take about as much as the log it reads; less than this is too little for any.
_LEAST_FREE_BYTES = 1 << 30
_MEMINFO = Path("/proc/meminfo")
_OPEN_FILES = 1024
_MOUNTS = Path("/proc/self/mountinfo")
_MAY_KEEP_LOCKS = ("fuse", "9p", "cifs", "smb", "virtiofs", "drvfs")
_LAYERS = tuple(layer.value for layer in Layer)


@dataclass(frozen=True)
class Diagnosis:
    """One thing looked at: `level` is OKAY, WARN (a run may go wrong or be slow) or FAIL (it will fail)."""

    level: str
    what: str
    detail: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `kraft-audit doctor`."""
    add_files_argument(parser, "configuration files; without them, only this machine is checked", default=[])


def execute(arguments: argparse.Namespace) -> int:
    """Print one line for each item that was checked. Returns 0 if all is well, 10 with warnings, 2 if a run would fail."""
    found = []
    for finding in examine(arguments.conf):
        say(visible(f"{finding.level:<5} {finding.what:<24} {finding.detail}", 400))
        found.append(finding.level)
    worst = FAIL if FAIL in found else WARN if WARN in found else OKAY
    print(
        {FAIL: "A run would fail.", WARN: "A run would work, but see the warnings.", OKAY: "Nothing is wrong."}[worst]
    )
    return {FAIL: USAGE, WARN: WARNINGS, OKAY: OK}[worst]


def examine(paths: Sequence[Path]) -> Iterator[Diagnosis]:
    """Look at the machine, then at each configuration and what it names."""
    yield from _machine()
    several = []
    for path in paths:
        try:
            settings = load_settings(path)
        except UsageError as error:
            yield Diagnosis(FAIL, "configuration", str(error))
            continue
        several.append(settings)
        yield from _configuration(settings)
    if len(several) > 1:
        yield _tried("the clusters together", lambda: f"{len(shared_names(several))} clusters in one run")
    if several:
        yield from _storage(several)
        yield _memory(several[0])


def shared_names(several: Sequence[Settings]) -> list[str]:
    """Names of clusters that one run can audit together. Raises UsageError when it can't."""
    shared(several)
    return [settings.cluster for settings in several]


def _machine() -> Iterator[Diagnosis]:
    yield Diagnosis(OKAY, "kraft-audit", f"{tool_version()}, Python {platform.python_version()}")
    yield _tried("Java", lambda: f"{java_version(java_home())} in {java_home()}")
    for package in ("pyspark", "delta-spark"):
        yield _package(package)
    jars = delta_jars()
    if jars:
        yield Diagnosis(OKAY, "Delta's jars", ", ".join(jar.name for jar in jars))
    else:
        yield Diagnosis(
            WARN,
            "Delta's jars",
            "not in Spark's folder of jars: every start downloads them from Maven (`make setup` puts them there)",
        )
    yield _loopback()
    yield _open_files()


def _package(name: str) -> Diagnosis:
    try:
        return Diagnosis(OKAY, name, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Diagnosis(
            WARN, name, "not installed as a package; under spark-submit or Databricks the cluster brings it"
        )


def _loopback() -> Diagnosis:
    """Spark's driver and workers talk over loopback."""
    try:
        with socket.create_server(("127.0.0.1", 0)):
            return Diagnosis(OKAY, "loopback", "127.0.0.1 can be listened on")
    except OSError as error:
        return Diagnosis(FAIL, "loopback", f"127.0.0.1 can't be listened on: {error.strerror}")


def _open_files() -> Diagnosis:
    import resource  # noqa: PLC0415 - not on every system

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < _OPEN_FILES:
        return Diagnosis(WARN, "open files", f"at most {soft}; a fleet needs {_OPEN_FILES} or more (`ulimit -n`)")
    return Diagnosis(OKAY, "open files", "no limit" if soft == resource.RLIM_INFINITY else f"at most {soft:,}")


def _configuration(settings: Settings) -> Iterator[Diagnosis]:
    name = settings.cluster
    yield _tried(f"{name}: files", lambda: _files(settings))
    yield from (_tried(f"{name}: {what}", look) for what, look in _looks(settings))
    if settings.report.mail is not None:
        yield _mail_server(name, settings.report.mail)
    if settings.metrics is not None and settings.metrics.textfile is not None:
        yield _metrics_folder(name, settings.metrics.textfile)


def _files(settings: Settings) -> str:
    check_files(settings)
    return "all are there and can be read"


def _looks(settings: Settings) -> Iterator[tuple[str, Callable[[], str]]]:
    """What to look at of a configuration: a name, and what gives the detail or raises."""
    zookeeper = settings.zookeeper
    if zookeeper is not None and zookeeper.connect is not None:
        yield "ZooKeeper", lambda: _live(settings)
    if zookeeper is not None and zookeeper.folder is not None:
        folder = zookeeper.folder
        yield "ZooKeeper's folder", lambda: _data_folder(folder, zookeeper.log_folder)
    yield from _controllers(settings)
    for place in settings.kraft.folders if settings.kraft else []:
        yield "metadata log", lambda place=place: _log_folders(place)  # type: ignore[misc]
    if settings.properties != PropertySettings():
        yield "property files", lambda: _properties(settings)
    if settings.expectations:
        yield "expectations", lambda: _suites(settings)
    if settings.suppressions is not None:
        yield "suppressions", lambda: counted(len(read_suppressions(settings.suppressions)), "entry", "entries")
    secrets = _secrets(settings)
    if secrets:
        yield "secrets", lambda: f"{len([secret_from_environment(n, k) for n, k in secrets])} variables are set"


def _properties(settings: Settings) -> str:
    read = read_property_files(settings.properties)
    return f"{counted(len((*read.controllers, *read.brokers, *read.broker_meta)), 'file')} can be read"


def _suites(settings: Settings) -> str:
    # The library takes seconds to load.
    from jobs.expectations import engine  # noqa: PLC0415

    suites = read_suites(settings.expectations)
    engine.check(suites)
    return f"{counted(len(suites), 'suite')} can be judged"


def _live(settings: Settings) -> str:
    if settings.zookeeper is None:
        raise AssertionError("checked for a live ensemble only")
    asked = replace(live_settings(settings.zookeeper), connect_timeout_seconds=_CONNECT_SECONDS)
    client = make_client(asked)
    try:
        start(client, asked)
        root = client.exists("/brokers")
    finally:
        client.stop()
        client.close()
    if root is None:
        raise UsageError(
            f"{asked.connect} answers but has no /brokers: check the chroot, and that this is Kafka's ZooKeeper"
        )
    return f"{asked.connect} answers, read-only, and has Kafka's /brokers"


def _controllers(settings: Settings) -> Iterator[tuple[str, Callable[[], str]]]:
    """Looks at the live quorum, and at the ways to both live sources."""
    kraft = settings.kraft
    if kraft is not None and kraft.controllers:
        yield "controllers", lambda: _quorum(kraft)
    for what, risk in (("ZooKeeper", zookeeper_risk(settings.zookeeper)), ("controllers", controllers_risk(kraft))):
        if risk:
            yield f"the way to {what}", lambda risk=risk: _doubted(risk)  # type: ignore[misc]


def _quorum(kraft: KraftSettings) -> str:
    """Find the leader as a run does: by a fetch that brings no records, with the cluster's id, by the same right."""
    # kafka-python is an extra.
    from jobs.sources.kraft.live.errors import QuorumError  # noqa: PLC0415
    from jobs.sources.kraft.live.fetch import quorum_settings  # noqa: PLC0415
    from jobs.sources.kraft.live.quorum import QuorumClient  # noqa: PLC0415

    seconds = min(kraft.request_seconds, _CONNECT_SECONDS)
    asked = replace(quorum_settings(kraft), request_seconds=seconds, patience_seconds=_CONNECT_SECONDS)
    try:
        with QuorumClient(asked) as quorum:
            leader = quorum.leader
            described = quorum.describe()
    except QuorumError as error:
        raise UsageError(str(error)) from None
    if described.error:
        raise _DoubtError(f"{leader} gives the log but not the voters: grant DESCRIBE on the cluster")
    return f"{leader} answers and leads {counted(len(described.voters), 'voter')}; the log can be read"


def _doubted(risk: str) -> str:
    raise _DoubtError(risk)


def _data_folder(folder: Place, log_folder: Place | None) -> str:
    if not isinstance(folder, Path) or isinstance(log_folder, RemotePlace):
        return ", ".join(_remote_files(str(each)) for each in (folder, log_folder) if each is not None)
    inside = folder / "version-2" if (folder / "version-2").is_dir() else folder
    snapshots = [file for file in inside.iterdir() if re.match(r"snapshot\.[0-9a-f]+", file.name)]
    logs_in = log_folder or inside
    logs_in = logs_in / "version-2" if (logs_in / "version-2").is_dir() else logs_in
    logs = [file for file in logs_in.iterdir() if re.match(r"log\.[0-9a-f]+", file.name)]
    if not snapshots:
        raise UsageError(f"{inside} holds no snapshot.* of ZooKeeper")
    if not logs:
        raise _DoubtError(f"{len(snapshots)} snapshots and no transaction log: the comparison can't be exact")
    return f"{counted(len(snapshots), 'snapshot')}, {counted(len(logs), 'transaction log')}"


def _remote_files(uri: str) -> str:
    size = remote_size(uri)
    if not size:
        raise UsageError(f"{uri}: there are no files")
    return f"{uri} can be read: {size_text(size)}"


def _log_folders(place: str) -> str:
    if is_remote(place):
        return _remote_files(place)
    folders = find_log_folders(local_path(place))
    size = sum(file.stat().st_size for folder in folders for file in folder.glob("*.log"))
    return f"{place}: {counted(len(folders), 'copy', 'copies')}, {size_text(size)}"


def _secrets(settings: Settings) -> list[tuple[str, str]]:
    """Environment variables that the configuration names, and the key that names each."""
    named = [(settings.secrets.fingerprint_key_env, "`secrets.fingerprint_key_env`")]
    named += [
        (name, "`secrets.password_encoder_secret_envs`") for name in settings.secrets.password_encoder_secret_envs
    ]
    zookeeper, mail = settings.zookeeper, settings.report.mail
    if settings.kraft is not None:
        security = settings.kraft.security
        named += [
            (security.password_env, "`kraft.security.password_env`"),
            (security.key_password_env, "`kraft.security.key_password_env`"),
        ]
    if zookeeper is not None and zookeeper.auth is not None:
        named.append((zookeeper.auth.password_env, "`zookeeper.auth.password_env`"))
    if zookeeper is not None and zookeeper.tls is not None:
        named.append((zookeeper.tls.key_password_env, "`zookeeper.tls.key_password_env`"))
    if mail is not None:
        named += [(mail.username_env, "`report.mail.username_env`"), (mail.password_env, "`report.mail.password_env`")]
    metrics = settings.metrics
    if metrics is not None:
        named += [(metrics.username_env, "`metrics.username_env`"), (metrics.password_env, "`metrics.password_env`")]
    named += [(target.url_env, "`notify.url_env`") for target in settings.notify]
    return [(name, key) for name, key in named if name is not None]


def _metrics_folder(name: str, folder: Path) -> Diagnosis:
    """Unwritable metrics fail no run, and nothing else reports a cluster that is missing in the file."""
    if not folder.is_dir():
        return Diagnosis(WARN, f"{name}: metrics", f"`metrics.textfile`: there is no folder {folder}; make it")
    if not os.access(folder, os.W_OK | os.X_OK):
        return Diagnosis(WARN, f"{name}: metrics", f"`metrics.textfile`: {folder} is not writable by this user")
    return Diagnosis(OKAY, f"{name}: metrics", f"{folder} can be written")


def _mail_server(name: str, mail: MailSettings) -> Diagnosis:
    """Connect only: no mail is sent and no password is used. A mail that cannot be sent fails no run."""
    where = f"{mail.host}:{mail.port}"
    try:
        with socket.create_connection((mail.host, mail.port), timeout=_CONNECT_SECONDS):
            return Diagnosis(OKAY, f"{name}: mail server", f"{where} answers")
    except OSError as error:
        return Diagnosis(WARN, f"{name}: mail server", f"{where}: {error.strerror or type(error).__name__}")
    except UnicodeError:
        # Python itself refuses names with an empty or too long part.
        return Diagnosis(WARN, f"{name}: mail server", f"{where}: no such host")


def _storage(several: Sequence[Settings]) -> Iterator[Diagnosis]:
    first = several[0]
    size = sum(_log_bytes(settings) for settings in several)
    tables = folder_of(first.warehouse, first.catalog)
    if tables is not None:
        yield from promises(tables)
    if first.catalog or is_remote(first.warehouse):
        yield _elsewhere(first)
        if first.secrets.fingerprint_key_env is None:
            yield Diagnosis(FAIL, "fingerprint key", "`secrets.fingerprint_key_env` is needed for such a warehouse")
    else:
        yield _folder("warehouse", Path(local_path(first.warehouse)), max(_LEAST_FREE_BYTES, 2 * size))
    for folder in sorted({settings.report.folder for settings in several}, key=str):
        if isinstance(folder, Path):
            yield _folder("reports", folder, 100 << 20)
        else:
            yield _tried("reports", lambda folder=folder: _remote_folder(folder))  # type: ignore[misc]
    yield _folder("temporary files", Path(os.environ.get("TMPDIR", "/tmp")), max(_LEAST_FREE_BYTES, size))  # noqa: S108


def _remote_folder(folder: RemotePlace) -> str:
    """Write a file there, and remove it."""
    tried = folder / f".kraft-audit-doctor-{socket.gethostname()}-{os.getpid()}"
    write_file(tried.uri, b"kraft-audit doctor")
    remove_file(tried.uri)
    return f"{folder} can be written"


def _elsewhere(settings: Settings) -> Diagnosis:
    """What a warehouse outside of local folders promises runs that write at the same time."""
    root = settings.warehouse
    unsafe = unsafe_scheme(root, settings.catalog)
    if unsafe is not None and settings.warehouse_single_driver:
        return Diagnosis(OKAY, "warehouse", f"{root}: one run at a time, as `warehouse_single_driver` says")
    if unsafe is not None:
        return Diagnosis(
            WARN,
            "warehouse",
            f"{root}: two runs at a time can overwrite each other's commits; a run refuses unless Spark has "
            f"spark.delta.logStore.{unsafe}.impl, or the configuration says `warehouse_single_driver: true`",
        )
    if not settings.catalog and is_uri(root) and not root.startswith("file:") and not known_safe(root):
        return Diagnosis(
            WARN, "warehouse", f"{root}: it is unknown here whether the storage refuses one of two writers"
        )
    return Diagnosis(OKAY, "warehouse", f"{root} is not a local folder: only a run can check it")


def promises(tables: Path) -> Iterator[Diagnosis]:
    """Does the file system keep what two runs at a time rely on: locks, and renames that replace at once?"""
    there = _nearest(tables)
    yield _tried("warehouse's locks", lambda: _locked(there, file_system(there)))
    unfinished = [
        f"{folder.parent.name}.{folder.name}"
        for folder in sorted(tables.glob("*/*"))
        if folder.is_dir() and folder.parent.name in _LAYERS and not list((folder / "_delta_log").glob("*.json"))
    ]
    if unfinished:
        named = ", ".join(unfinished[:5]) + (" …" if len(unfinished) > 5 else "")
        yield Diagnosis(OKAY, "unfinished tables", f"{named}: a first write did not finish; the next run repeats it")


def _locked(folder: Path, system: FileSystem) -> str:
    """Try a lock, a second one that must be refused, and a rename, with files that go again."""
    with tempfile.TemporaryDirectory(prefix=".kraft-audit-doctor-", dir=folder) as made:
        first, second = Path(made) / "first", Path(made) / "second"
        with first.open("w") as one, first.open("w") as other:
            _flock(one, folder)
            if _refused(other):
                second.write_text("x")
                second.replace(first)
            else:
                raise UsageError(f"{folder}: a lock is given twice there ({system.kind}); two runs would lose commits")
        if first.read_text() != "x":
            raise UsageError(f"{folder}: a rename does not replace a file there ({system.kind})")
    if system.between_machines is False:
        raise _DoubtError(
            f"{folder}: {system.kind} is mounted with locks of this machine only; runs of one warehouse must not write "
            "from several machines at a time"
        )
    if system.between_machines is None:
        raise _DoubtError(
            f"{folder}: locks work here; it is unknown whether they work between machines ({system.kind})"
        )
    return f"locks and renames work ({system.kind})"


def _flock(file: IO[str], folder: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise UsageError(f"{folder}: no locks there ({error.strerror}); use a file system with locks") from None


def _refused(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


@dataclass(frozen=True)
class FileSystem:
    """Its kind, and whether locks work between the machines that share it (None if unknown)."""

    kind: str
    between_machines: bool | None


def file_system(folder: Path, mounts: Path = _MOUNTS) -> FileSystem:
    """The file system that a folder is on, as Linux lists its mounts."""
    if not mounts.exists():
        return FileSystem("an unknown kind", True)
    found = ("", "unknown", "")
    for line in mounts.read_text(errors="replace").splitlines():
        # man 5 proc_pid_mountinfo: the fifth field is the mount point, spaces as \\040; after " - " type, source, options.
        before, _, after = line.partition(" - ")
        point = before.split()[4].replace("\\040", " ")
        kind, _, options = after.partition(" ")
        if folder.absolute().is_relative_to(point) and len(point) >= len(found[0]):
            found = (point, kind, options)
    _, kind, options = found
    if kind in ("nfs", "nfs4"):
        held = re.split(r"[\s,]", options)
        return FileSystem(kind, not {"nolock", "local_lock=all", "local_lock=flock"} & set(held))
    # A file system in a program may pass locks on or keep them to itself.
    return FileSystem(kind, None if kind.startswith(_MAY_KEEP_LOCKS) else True)


def _nearest(folder: Path) -> Path:
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())


def _log_bytes(settings: Settings) -> int:
    total = 0
    for place in settings.kraft.folders if settings.kraft else []:
        if not is_remote(place):
            path = Path(local_path(place))
            total += sum(file.stat().st_size for file in path.rglob("*.log")) if path.is_dir() else 0
    return total


def _folder(what: str, folder: Path, wanted: int) -> Diagnosis:
    there = _nearest(folder)
    if not there.is_dir():
        return Diagnosis(FAIL, what, f"{there} is a file; name a folder")
    if not os.access(there, os.W_OK | os.X_OK):
        return Diagnosis(FAIL, what, f"{there} can't be written by this user")
    free = shutil.disk_usage(there).free
    if free < wanted:
        return Diagnosis(WARN, what, f"{folder}: {size_text(free)} free, {size_text(wanted)} would be safe")
    return Diagnosis(OKAY, what, f"{folder}: {size_text(free)} free")


def _memory(settings: Settings) -> Diagnosis:
    wanted = profile_settings(profile_of_run([settings]), settings.spark.cores, settings.spark.driver_memory).get(
        "spark.driver.memory"
    )
    if wanted is None or not _MEMINFO.exists():
        return Diagnosis(OKAY, "memory", "Spark's own settings decide")
    found = re.search(r"MemAvailable:\s+(\d+) kB", _MEMINFO.read_text())
    available = int(found[1]) << 10 if found else 0
    needed = int(wanted[:-1]) << (30 if wanted.endswith("g") else 20)
    if available < needed:
        return Diagnosis(WARN, "memory", f"{size_text(available)} available, Spark's driver is given {wanted}")
    return Diagnosis(OKAY, "memory", f"{size_text(available)} available, Spark's driver is given {wanted}")


class _DoubtError(Exception):
    """Something that fails no run and is worth a warning."""


def _tried(what: str, look: Callable[[], str]) -> Diagnosis:
    try:
        return Diagnosis(OKAY, what, look())
    except _DoubtError as doubt:
        return Diagnosis(WARN, what, str(doubt))
    except (UsageError, AuditError, KraftSourceError, RemoteError, ZooKeeperWalkError) as error:
        return Diagnosis(FAIL, what, str(error))
    except OSError as error:
        return Diagnosis(FAIL, what, error.strerror or type(error).__name__)
