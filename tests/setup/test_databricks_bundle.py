"""The Databricks bundle names things that exist, and its wheel does not replace the runtime's Spark."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

from jobs.settings import Settings

FOLDER = Path(__file__).parents[2] / "conf" / "databricks"
BUNDLE: dict[str, Any] = yaml.safe_load((FOLDER / "databricks.yml").read_text())
PROJECT: dict[str, Any] = tomllib.loads((FOLDER.parents[1] / "pyproject.toml").read_text())["project"]
JOB: dict[str, Any] = BUNDLE["resources"]["jobs"]["audit"]


def test_the_wheel_task_calls_the_projects_command() -> None:
    task = JOB["tasks"][0]["python_wheel_task"]
    assert task["package_name"] == PROJECT["name"]
    assert task["entry_point"] in PROJECT["scripts"]
    assert task["parameters"] == ["run", "--conf", "${var.configuration}"]


def test_the_configuration_it_names_is_valid_and_its_secret_is_provided() -> None:
    path = BUNDLE["variables"]["configuration"]["default"].removeprefix("${workspace.file_path}/")
    settings = Settings.model_validate(yaml.safe_load((FOLDER.parents[1] / path).read_text()))
    variables = JOB["job_clusters"][0]["new_cluster"]["spark_env_vars"]
    assert settings.catalog
    assert JOB["tasks"][1]["notebook_task"]["base_parameters"] == {
        "warehouse": settings.warehouse,
        "cluster": settings.cluster,
    }
    assert settings.secrets.fingerprint_key_env in variables
    assert variables[settings.secrets.fingerprint_key_env].startswith("{{secrets/")


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
