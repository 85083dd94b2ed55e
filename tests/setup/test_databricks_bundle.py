"""The Databricks bundle names things that exist, and its wheel does not replace the runtime's Spark."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobs import pipeline
from jobs.settings import Settings

FOLDER = Path(__file__).parents[2] / "conf" / "databricks"
BUNDLE: dict[str, Any] = yaml.safe_load((FOLDER / "databricks.yml").read_text())
PROJECT: dict[str, Any] = tomllib.loads((FOLDER.parents[1] / "pyproject.toml").read_text())["project"]
JOB: dict[str, Any] = BUNDLE["resources"]["jobs"]["audit"]


def test_the_wheel_task_calls_the_projects_command() -> None:
    task = JOB["tasks"][0]["python_wheel_task"]
    assert task["package_name"] == PROJECT["name"]
    assert task["entry_point"] in PROJECT["scripts"]
    assert task["parameters"] == ["run", "--exit-0-on-warnings", "--conf", "${var.configuration}"]


@pytest.mark.parametrize(("code", "seen"), [(0, 0), (10, 0), (20, 20), (2, 2), (1, 1)])
def test_a_run_with_warnings_is_no_failed_task(monkeypatch: pytest.MonkeyPatch, code: int, seen: int) -> None:
    monkeypatch.setattr(pipeline, "audit", lambda _settings, telling: code)
    path = str(FOLDER / "prod-eu.yml")
    assert pipeline.main(["--exit-0-on-warnings", "--conf", path]) == seen
    assert pipeline.main(["--conf", path]) == code


def test_the_configuration_it_names_is_valid_and_its_secret_is_provided() -> None:
    path = BUNDLE["variables"]["configuration"]["default"].removeprefix("${workspace.file_path}/")
    settings = Settings.model_validate(yaml.safe_load((FOLDER.parents[1] / path).read_text()))
    variables = JOB["job_clusters"][0]["new_cluster"]["spark_env_vars"]
    assert settings.catalog
    assert BUNDLE["variables"]["warehouse"]["default"] == settings.warehouse
    assert JOB["tasks"][1]["notebook_task"]["base_parameters"] == {
        "warehouse": "${var.warehouse}",
        "cluster": settings.cluster,
    }
    assert settings.report.mail is not None
    named = (settings.secrets.fingerprint_key_env, settings.report.mail.username_env, settings.report.mail.password_env)
    assert variables.keys() == set(named)
    assert all(value.startswith("{{secrets/${var.secret_scope}/") for value in variables.values())
    described = re.findall(r"put-secret kraft-audit (\S+)", (FOLDER / "databricks.yml").read_text())
    assert {value.rstrip("}").split("/")[-1] for value in variables.values()} == set(described)


# Those of the bundle's published JSON schema (databricks/cli, bundle/schema/jsonschema.json) that are used here. The
# whole file was held against that schema when it was last changed; this notices a key that was not.
KEYS = {
    "": {"bundle", "sync", "variables", "artifacts", "resources", "targets"},
    "job": {"name", "max_concurrent_runs", "schedule", "email_notifications", "job_clusters", "tasks"},
    "schedule": {"quartz_cron_expression", "timezone_id", "pause_status"},
    "new_cluster": {"spark_version", "node_type_id", "num_workers", "data_security_mode", "spark_env_vars"},
    "task": {
        "task_key",
        "job_cluster_key",
        "libraries",
        "python_wheel_task",
        "notebook_task",
        "depends_on",
        "run_if",
    },
    "python_wheel_task": {"package_name", "entry_point", "parameters", "named_parameters"},
    "notebook_task": {"notebook_path", "base_parameters", "source", "warehouse_id"},
}


def test_every_key_is_of_the_published_schema() -> None:
    assert BUNDLE.keys() <= KEYS[""]
    assert JOB.keys() <= KEYS["job"]
    assert JOB["schedule"].keys() <= KEYS["schedule"]
    for cluster in JOB["job_clusters"]:
        assert cluster["new_cluster"].keys() <= KEYS["new_cluster"]
    for task in JOB["tasks"]:
        assert task.keys() <= KEYS["task"]
        for kind in ("python_wheel_task", "notebook_task"):
            assert task.get(kind, {}).keys() <= KEYS[kind]
        assert task.get("run_if", "ALL_DONE") in ("ALL_SUCCESS", "ALL_DONE", "NONE_FAILED", "AT_LEAST_ONE_SUCCESS")


def test_every_name_used_is_declared() -> None:
    text = (FOLDER / "databricks.yml").read_text()
    assert set(re.findall(r"\$\{var\.(\w+)\}", text)) == BUNDLE["variables"].keys()
    keys = {cluster["job_cluster_key"] for cluster in JOB["job_clusters"]}
    tasks = {task["task_key"] for task in JOB["tasks"]}
    for task in JOB["tasks"]:
        assert task["job_cluster_key"] in keys
        assert {dependency["task_key"] for dependency in task.get("depends_on", [])} <= tasks
        if "notebook_task" in task:
            assert (FOLDER / task["notebook_task"]["notebook_path"]).is_file()


def test_the_wheel_leaves_spark_to_the_runtime() -> None:
    named = {re.split(r"[=<>\[;]", requirement)[0] for requirement in PROJECT["dependencies"]}
    assert not named & {"pyspark", "delta-spark"}
    assert {re.split("=", requirement)[0] for requirement in PROJECT["optional-dependencies"]["spark"]} == {
        "pyspark",
        "delta-spark",
    }
