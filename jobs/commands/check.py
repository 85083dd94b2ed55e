"""A one-off audit of files: `kraft-audit check --zookeeper PATH --kraft PATH --out DIR`, without a configuration."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from jobs.exit import UsageError, guarded
from jobs.pipeline import add_output_arguments, add_verdict_arguments, audit, output_options_of
from jobs.places import Place, RemotePlace, place_of
from jobs.settings import TABLES_FOLDER, Settings, validated

_DUMP_SUFFIXES = (".jsonl", ".jsonl.gz")
_PROPERTY_FILES = (
    ("--controller-properties", "controllers", "a controller's property file; may be repeated"),
    ("--broker-properties", "brokers", "a broker's property file; may be repeated"),
    ("--broker-meta", "broker_meta", "a broker's meta.properties; may be repeated"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `kraft-audit check`."""
    parser.add_argument(
        "--zookeeper", type=place_of, metavar="PATH", help="ZooKeeper data folder, or a dump (.jsonl, .jsonl.gz)"
    )
    parser.add_argument(
        "--kraft",
        action="append",
        default=[],
        metavar="PATH",
        help="a controller's metadata log folder, or a parent of several; may be repeated",
    )
    parser.add_argument("--kafka-version", metavar="V", help="Kafka release, e.g. 3.9; inferred when left out")
    parser.add_argument("--cluster", default="check", help="name of the cluster in tables and reports")
    parser.add_argument(
        "--password-encoder-secret-env",
        action="append",
        default=[],
        metavar="NAME",
        help="environment variable with password.encoder.secret, to compare encrypted configurations",
    )
    for option, key, what in _PROPERTY_FILES:
        parser.add_argument(option, action="append", default=[], metavar="FILE", dest=key, help=what)
    parser.add_argument(
        "--clear-text-passwords-accepted",
        action="store_true",
        help="accept that the brokers' passwords from ZooKeeper are in the metadata log in clear text",
    )
    parser.add_argument(
        "--expectations",
        action="append",
        default=[],
        metavar="FILE",
        help="a suite of expectations (JSON), or a pattern of several; may be repeated",
    )
    parser.add_argument(
        "--out", type=place_of, metavar="DIR", help="folder for the report and the tables (default: a new one)"
    )
    add_output_arguments(parser)
    add_verdict_arguments(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Audit the files and write tables, report.html and report.json below the output folder."""
    out: Place = arguments.out or Path(tempfile.mkdtemp(prefix="kraft-audit-"))
    return audit(settings_for(arguments, out), out, output_options_of(arguments))


def settings_for(arguments: argparse.Namespace, out: Place) -> Settings:
    """The configuration these options stand for. Raises UsageError, naming the option that is wrong."""
    if arguments.zookeeper is None and not arguments.kraft:
        raise UsageError("nothing to audit: give --zookeeper, --kraft or both")
    content: dict[str, object] = {
        "cluster": arguments.cluster,
        "warehouse": str(_output(out) / TABLES_FOLDER),
        "secrets": {"password_encoder_secret_envs": arguments.password_encoder_secret_env},
        "properties": {
            **{key: getattr(arguments, key) for _, key, _ in _PROPERTY_FILES},
            "clear_text_passwords_accepted": arguments.clear_text_passwords_accepted,
        },
        "expectations": arguments.expectations,
        "report": {"folder": str(out)},
    }
    if arguments.zookeeper is not None:
        content["zookeeper"] = zookeeper_source(arguments.zookeeper)
    if arguments.kraft:
        content["kraft"] = {"folders": arguments.kraft}
    if arguments.allow_unknown:
        content["allow_unknown"] = True
    for name in ("kafka_version", "gate", "fail_on"):
        if getattr(arguments, name) is not None:
            content[name] = getattr(arguments, name)
    return validated(content, "command line", one_off=True)


def _output(out: Place) -> Path:
    if isinstance(out, RemotePlace):
        raise UsageError(f"--out: {out} is not on this machine; give a folder, or name it in a configuration for `run`")
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out: {out} is a file; give a folder")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out: {out} can't be made: {error.strerror}") from error
    return out


def zookeeper_source(path: Place) -> dict[str, str]:
    """A dump by its name, a data folder otherwise. Raises UsageError for anything else."""
    if path.name.endswith(_DUMP_SUFFIXES):
        return {"dump": str(path)}
    if isinstance(path, RemotePlace) or path.is_dir():
        return {"folder": str(path)}
    what = "is neither a folder nor a .jsonl or .jsonl.gz dump" if path.exists() else "does not exist"
    raise UsageError(f"--zookeeper: {path} {what}")


def main(argv: list[str] | None = None) -> int:
    """Entry point for spark-submit."""
    parser = argparse.ArgumentParser(prog="kraft-audit check", description=__doc__)
    add_arguments(parser)
    return guarded(lambda: execute(parser.parse_args(argv)))


if __name__ == "__main__":
    sys.exit(main())
