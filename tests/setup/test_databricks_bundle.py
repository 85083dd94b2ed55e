"""The Databricks bundle names things that exist, and its wheel does not replace the runtime's Spark."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from databricks.bundles.alerts import Alert
from databricks.bundles.dashboards import Dashboard
from databricks.bundles.jobs import Job
from pyspark.sql import DataFrame, SparkSession

from jobs import pipeline
from jobs.settings import Settings
from jobs.sinks.delta import Warehouse
from jobs.sinks.folder_table import arrow_rows
from schemas.gold import CHECKS, GATES, RUNS
from schemas.table import Table

FOLDER = Path(__file__).parents[2] / "conf" / "databricks"
BUNDLE: dict[str, Any] = yaml.safe_load((FOLDER / "databricks.yml").read_text())
PROJECT: dict[str, Any] = tomllib.loads((FOLDER.parents[1] / "pyproject.toml").read_text())["project"]
JOB: dict[str, Any] = BUNDLE["resources"]["jobs"]["audit"]


TARGETS: dict[str, Any] = {name: target["resources"]["jobs"]["audit"] for name, target in BUNDLE["targets"].items()}
WITH_CLUSTERS = ("standard", "dedicated")


def test_the_wheel_task_calls_the_projects_command() -> None:
    task = JOB["tasks"][0]["python_wheel_task"]
    assert task["package_name"] == PROJECT["name"]
    assert task["entry_point"] in PROJECT["scripts"]
    command = task["parameters"][task["parameters"].index("run") :]
    assert command == ["run", "--exit-0-on-warnings", "--conf", "{{job.parameters.configuration}}"]
    defaults = {parameter["name"]: parameter["default"] for parameter in JOB["parameters"]}
    assert defaults == {"configuration": "${var.configuration}", "cluster": "${var.cluster}"}


@pytest.mark.parametrize(("code", "seen"), [(0, 0), (10, 0), (20, 20), (2, 2), (1, 1)])
def test_a_run_with_warnings_is_no_failed_task(monkeypatch: pytest.MonkeyPatch, code: int, seen: int) -> None:
    monkeypatch.setattr(pipeline, "audit", lambda _settings, output: code)
    path = str(FOLDER / "prod-eu.yml")
    assert pipeline.main(["--exit-0-on-warnings", "--conf", path]) == seen
    assert pipeline.main(["--conf", path]) == code


def test_the_configuration_it_names_is_valid_and_its_secrets_are_provided() -> None:
    path = BUNDLE["variables"]["configuration"]["default"].removeprefix("${workspace.file_path}/")
    settings = Settings.model_validate(yaml.safe_load((FOLDER.parents[1] / path).read_text()))
    defaults = {name: variable.get("default") for name, variable in BUNDLE["variables"].items()}
    assert settings.catalog
    assert settings.warehouse == f"{defaults['catalog']}.{defaults['schema']}"
    assert settings.cluster == defaults["cluster"]
    assert settings.report.mail is not None
    named = (settings.secrets.fingerprint_key_env, settings.report.mail.username_env, settings.report.mail.password_env)
    parameters = JOB["tasks"][0]["python_wheel_task"]["parameters"]
    given = dict(following.split("=", 1) for option, following in pairwise(parameters) if option == "--secret")
    assert given.keys() == set(named)
    assert all(where.startswith("${var.secret_scope}/") for where in given.values())
    described = re.findall(r"put-secret kraft_audit (\S+)", (FOLDER.parents[1] / "docs/databricks.md").read_text())
    assert {where.split("/")[-1] for where in given.values()} == set(described)


def merged(target: str) -> dict[str, Any]:
    """The job as a target has it: its keys replace the job's own, its tasks are joined to the job's by their keys."""
    tasks = {task["task_key"]: task for task in JOB["tasks"]}
    for task in TARGETS[target]["tasks"]:
        tasks[task["task_key"]] = tasks.get(task["task_key"], {}) | task
    return {**JOB, **TARGETS[target], "tasks": [*tasks.values()]}


@pytest.mark.parametrize("target", TARGETS)
def test_databricks_own_library_takes_the_job_of_every_target(target: str) -> None:
    """It is made from the bundle's published schema: it refuses keys and values of a fixed set that are not there."""
    job = Job.from_dict(cast(Any, merged(target)))
    assert isinstance(job.tasks, list)
    assert len(job.tasks) == len(TARGETS[target]["tasks"])


@pytest.mark.parametrize("name", ["red", "gates"])
def test_databricks_own_library_takes_the_alerts(name: str) -> None:
    alert = Alert.from_dict(BUNDLE["resources"]["alerts"][name])
    assert alert.custom_summary


def test_databricks_own_library_takes_the_dashboard_and_its_file_is_there() -> None:
    assert BUNDLE["resources"].keys() == {"jobs", "dashboards", "alerts"}
    dashboard = Dashboard.from_dict(BUNDLE["resources"]["dashboards"]["fleet"])
    assert (FOLDER / str(dashboard.file_path)).is_file()


@pytest.mark.parametrize("wrong", [{"scedule": {}}, {"tasks": [{}]}, {"tasks": [{"task_key": "a", "run_if": "LATER"}]}])
def test_databricks_own_library_refuses_what_is_not_of_the_schema(wrong: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError), match=r"scedule|task_key|LATER"):
        Job.from_dict(cast(Any, JOB | wrong))


def test_what_that_library_does_not_know_has_no_other_key() -> None:
    """Of the schema that `databricks bundle schema` prints; the whole file was compared with it when it was last changed."""
    assert BUNDLE.keys() == {"bundle", "sync", "variables", "artifacts", "resources", "targets"}
    assert {key for variable in BUNDLE["variables"].values() for key in variable} <= {"description", "default", "type"}
    assert BUNDLE["artifacts"]["wheel"].keys() == {"type", "path", "build"}
    assert {key for target in BUNDLE["targets"].values() for key in target} == {"default", "resources"}
    assert [name for name, target in BUNDLE["targets"].items() if target.get("default")] == ["serverless"]


def test_every_name_used_is_declared() -> None:
    text = (FOLDER / "databricks.yml").read_text()
    assert set(re.findall(r"\$\{var\.(\w+)\}", text)) == BUNDLE["variables"].keys()
    for target in WITH_CLUSTERS:
        keys = {cluster["job_cluster_key"] for cluster in TARGETS[target]["job_clusters"]}
        tasks = {task["task_key"] for task in TARGETS[target]["tasks"]}
        for task in TARGETS[target]["tasks"]:
            assert task["job_cluster_key"] in keys
            assert {dependency["task_key"] for dependency in task.get("depends_on", [])} <= tasks
            if "notebook_task" in task:
                assert (FOLDER / task["notebook_task"]["notebook_path"]).is_file()
    environments = {environment["environment_key"] for environment in TARGETS["serverless"]["environments"]}
    assert {task["environment_key"] for task in TARGETS["serverless"]["tasks"]} == environments


def test_every_target_has_compute_for_the_audit() -> None:
    """What the job itself leaves open: each target says where its first task runs, and installs the wheel there."""
    for target, job in TARGETS.items():
        audit = next(task for task in job["tasks"] if task["task_key"] == "audit")
        if target == "serverless":
            assert "job_cluster_key" not in audit
            assert job["environments"][0]["spec"]["dependencies"] == ["../../dist/*.whl"]
        else:
            assert audit["libraries"] == [{"whl": "../../dist/*.whl"}]


DASHBOARD: dict[str, Any] = json.loads((FOLDER / "fleet.lvdash.json").read_text())


def test_every_widget_asks_for_columns_that_its_dataset_has(filled: Warehouse) -> None:
    """The queries of dashboard and alert run on the tables, and find what is in them."""
    columns = {}
    for dataset in DASHBOARD["datasets"]:
        rows = _asked(filled, "".join(dataset["queryLines"]))
        columns[dataset["name"]] = set(rows.columns)
        assert rows.count() > 0, dataset["name"]
    for placed in DASHBOARD["pages"][0]["layout"]:
        for query in placed["widget"]["queries"]:
            asked = {field["expression"].strip("`") for field in query["query"]["fields"]}
            assert asked <= columns[query["query"]["datasetName"]]


def _dataset(warehouse: Warehouse, name: str) -> DataFrame:
    [dataset] = [each for each in DASHBOARD["datasets"] if each["name"] == name]
    return _asked(warehouse, "".join(dataset["queryLines"]))


def test_the_dashboard_shows_nothing_that_a_failed_run_stored(filled: Warehouse) -> None:
    """A run that fails late has gates and checks; what is known of the cluster is what the last finished run found."""
    gates = _dataset(filled, "gates").select("cluster", "verdict").collect()
    assert sorted(map(tuple, gates)) == [("failed", "no_go"), ("red", "no_go")]
    checks = _dataset(filled, "checks").select("cluster", "check_id").collect()
    assert sorted(map(tuple, checks)) == [("failed", "DUR-04"), ("red", "DUR-01")]


def test_the_alert_counts_red_failed_and_silent_clusters_and_those_of_a_wrong_clock(filled: Warehouse) -> None:
    query = BUNDLE["resources"]["alerts"]["red"]["query_text"]
    [row] = _asked(filled, query.replace("${var.catalog}.${var.schema}.", "")).collect()
    # All but clean. How old the run of a clock that is ahead is, nobody knows.
    assert row[BUNDLE["resources"]["alerts"]["red"]["evaluation"]["source"]["name"]] == 5


def test_the_dashboard_shows_the_run_that_was_counted_last_whatever_its_clock_said(filled: Warehouse) -> None:
    shown = {row["cluster"]: row["verdict"] for row in _dataset(filled, "fleet").collect()}
    clean = dict.fromkeys(("silent", "ahead", "clean"), "clean")
    assert shown == {"red": "errors", "back": "errors", "failed": "failed"} | clean


def test_alerts_differ_in_what_they_ask_alone() -> None:
    red, gates = (BUNDLE["resources"]["alerts"][name] for name in ("red", "gates"))
    assert red.keys() == gates.keys()
    for same in ("warehouse_id", "schedule"):
        assert red[same] == gates[same]
    assert {**red["evaluation"], "source": None} == {**gates["evaluation"], "source": None}
    for alert in (red, gates):
        source = alert["evaluation"]["source"]["name"]
        assert f"SELECT count(*) AS {source} FROM" in alert["query_text"]


@pytest.mark.parametrize(("wanted", "number"), [("", 4), ("start", 6), ("finalize , start", 6)])
def test_the_alert_on_gates_counts_those_that_were_open_or_are_wanted(
    spark: SparkSession, tmp_path: Path, wanted: str, number: int
) -> None:
    warehouse, now = Warehouse(spark, str(tmp_path)), datetime.now(UTC).replace(tzinfo=None)
    went = [
        # Cluster, days ago, verdict of the run, phase, gates.
        ("shut", 3, "clean", "dual_write", {"finalize": "go", "start": "no_go"}),
        ("shut", 1, "errors", "dual_write", {"finalize": "no_go", "start": "no_go"}),
        ("shut", 0, "failed", None, {}),
        # What is unknown is not open.
        ("blind", 2, "clean", "dual_write", {"finalize": "go"}),
        ("blind", 0, "warnings", "dual_write", {"finalize": "unknown"}),
        # However long ago it was open.
        ("early", 90, "clean", "waiting", {"finalize": "go"}),
        ("early", 0, "errors", "waiting", {"finalize": "no_go", "start": "unknown"}),
        ("done", 2, "clean", "dual_write", {"rollback": "go"}),
        ("done", 0, "clean", "finalized", {"rollback": "no_go"}),
        ("open", 2, "clean", "dual_write", {"finalize": "no_go"}),
        ("open", 0, "clean", "dual_write", {"finalize": "go"}),
        # The clock was ahead in the first of these runs.
        ("back", 0, "clean", "dual_write", {"finalize": "go"}),
        ("back", 1, "errors", "dual_write", {"finalize": "no_go"}),
    ]
    runs, gates = [], []
    for number_of_run, (cluster, days, verdict, phase, its) in enumerate(went):
        run = {"cluster": cluster, "run_id": f"r{number_of_run}"}
        runs.append(
            {
                **run,
                "sequence": number_of_run,
                "started_at": now - timedelta(days=days),
                "verdict": verdict,
                "phase": phase,
            }
        )
        gates += [{**run, "gate": gate, "verdict": said} for gate, said in its.items()]
    _store(warehouse, {RUNS: runs, GATES: gates})
    query = BUNDLE["resources"]["alerts"]["gates"]["query_text"].replace("${var.wanted_gates}", wanted)
    [row] = _asked(warehouse, query.replace("${var.catalog}.${var.schema}.", "")).collect()
    assert row["gates"] == number


@pytest.fixture(scope="module")
def filled(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Six clusters: one with errors now, one also after a run whose clock was ahead, one that failed after it had stored its results,
    one that was clean three days ago, one whose only run was by a clock that is ahead, one clean.
    """
    warehouse = Warehouse(spark, str(tmp_path_factory.mktemp("warehouse")))
    now = datetime.now(UTC).replace(tzinfo=None)
    runs = [
        {"cluster": "red", "verdict": "clean", "started_at": now - timedelta(hours=5), "defects": 0},
        {"cluster": "red", "verdict": "errors", "started_at": now, "defects": 2},
        {"cluster": "failed", "verdict": "warnings", "started_at": now - timedelta(hours=5), "defects": 0},
        {"cluster": "failed", "verdict": "failed", "started_at": now, "failure": "the report could not be written"},
        {"cluster": "silent", "verdict": "clean", "started_at": now - timedelta(days=3), "defects": 0},
        {"cluster": "ahead", "verdict": "clean", "started_at": now + timedelta(days=9), "defects": 0},
        {"cluster": "clean", "verdict": "clean", "started_at": now, "defects": 0},
        {"cluster": "back", "verdict": "clean", "started_at": now + timedelta(days=9), "sequence": 1},
        {"cluster": "back", "verdict": "errors", "started_at": now, "sequence": 2},
    ]
    runs = [{**run, "run_id": f"r{number}", "finished_at": run["started_at"]} for number, run in enumerate(runs)]
    judged = [("red", "r1", "no_go", "DUR-01"), ("failed", "r2", "no_go", "DUR-04"), ("failed", "r3", "go", "DUR-06")]
    gates = [{"cluster": name, "run_id": run, "gate": "finalize", "verdict": said} for name, run, said, _ in judged]
    checks = [
        {"cluster": name, "run_id": run, "check_id": check, "verdict": "fail", "evidence": ["a row"]}
        for name, run, _, check in judged
    ]
    _store(warehouse, {RUNS: runs, GATES: gates, CHECKS: checks})
    return warehouse


def _store(warehouse: Warehouse, tables: Mapping[Table, Sequence[Mapping[str, Any]]]) -> None:
    for table, rows in tables.items():
        warehouse.append(table, arrow_rows(table, rows))


def _asked(warehouse: Warehouse, query: str) -> DataFrame:
    for table in (RUNS, GATES, CHECKS):
        query = re.sub(rf"\bgold_{table.name}\b", warehouse.identifier(table).replace("\\", r"\\"), query)
    return warehouse.spark.sql(query)


def test_the_wheel_leaves_spark_to_the_runtime() -> None:
    named = {re.split(r"[=<>\[;]", requirement)[0] for requirement in PROJECT["dependencies"]}
    assert not named & {"pyspark", "delta-spark"}
    assert {re.split("=", requirement)[0] for requirement in PROJECT["optional-dependencies"]["spark"]} == {
        "pyspark",
        "delta-spark",
    }
