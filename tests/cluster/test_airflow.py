"""The DAG of conf/schedulers in a real Airflow, in an environment of its own: it loads, submits the pipeline, and fails when that does.

In place of spark-submit there is a program that records its arguments; `test_standalone.py` runs the real one.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from jobs.runtime.spark import DELTA_CATALOG, DELTA_EXTENSION, DELTA_PACKAGE
from tests.cluster.stores import HERE, ROOT, python_with

pytestmark = pytest.mark.live
DAG = ROOT / "conf" / "schedulers" / "airflow_dag.py"
_SECONDS = 300
SUBMIT = """#!/bin/sh
{ printf '%s\\n' "$@"; echo END; } >>"$RECORD"
exit "$EXIT_CODE"
"""


class Airflow:
    """What Airflow made of the DAG, and of one whose operator has an argument that does not exist."""

    def __init__(self, folder: Path) -> None:
        dags, program, record, result = (folder / name for name in ("dags", "bin", "record", "result.json"))
        dags.mkdir()
        (dags / DAG.name).write_text(DAG.read_text())
        (dags / "misspelt.py").write_text(
            DAG.read_text().replace('"kraft_audit"', '"misspelt"').replace("application_args=", "aplication_args=")
        )
        program.mkdir()
        (program / "spark-submit").write_text(SUBMIT)
        (program / "spark-submit").chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "PYTHON"))}
        environment = kept | {
            "AIRFLOW_HOME": str(folder / "home"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(
                {"conn_type": "spark", "host": "spark://spark.example.com", "port": 7077}
            ),
            "PATH": f"{program}{os.pathsep}{kept['PATH']}",
            "RECORD": str(record),
        }
        python = str(python_with(HERE / "airflow.lock"))
        for command in (
            ["-m", "airflow", "db", "migrate"],
            [str(HERE / "in_airflow.py"), str(dags), str(result), "0", "20"],
        ):
            done = subprocess.run(
                [python, *command],
                env=environment,
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
                timeout=_SECONDS,
            )
            assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        self.found: dict[str, Any] = json.loads(result.read_text())
        self.submitted = [each.splitlines() for each in record.read_text().split("END\n")[:-1]]


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Airflow:
    return Airflow(tmp_path_factory.mktemp("airflow"))


def test_it_takes_the_dag_and_refuses_an_argument_that_does_not_exist(airflow: Airflow) -> None:
    assert airflow.found["import_errors"].keys() == {"misspelt.py"}
    assert "aplication_args" in airflow.found["import_errors"]["misspelt.py"]
    assert airflow.found["warnings"] == []
    assert airflow.found["dags"] == ["kraft_audit"]


def test_the_dag_has_one_task_every_night_and_one_run_at_a_time(airflow: Airflow) -> None:
    assert airflow.found["tasks"] == {"audit": "SparkSubmitOperator"}
    assert airflow.found["schedule"] == ["0 4 * * *", "UTC"]
    assert (airflow.found["catchup"], airflow.found["max_active_runs"]) == (False, 1)


def test_airflow_waits_longer_than_the_run_may_take(airflow: Airflow) -> None:
    (timeout,) = airflow.found["timeouts"]
    assert all(int(command[command.index("--timeout") + 1]) * 60 < timeout for command in airflow.submitted)


def test_each_run_submits_the_pipeline_once(airflow: Airflow) -> None:
    expected = [
        *("--master", "spark://spark.example.com:7077"),
        *("--conf", f"spark.sql.extensions={DELTA_EXTENSION}"),
        *("--conf", f"spark.sql.catalog.spark_catalog={DELTA_CATALOG}"),
        *("--packages", DELTA_PACKAGE),
        *("--name", "kraft-audit"),
        "/opt/kraft-audit/lib/python3.12/site-packages/jobs/pipeline.py",
        *("--quiet", "--exit-0-on-warnings", "--timeout", "240", "--conf", "/etc/kraft-audit/prod-eu.yml"),
    ]
    assert airflow.submitted == [expected, expected], "the failed one is not tried again"


def test_the_run_ends_as_spark_submit_does(airflow: Airflow) -> None:
    assert airflow.found["runs"] == [["success", {"audit": "success"}], ["failed", {"audit": "failed"}]]
