"""Run with the Python that has Airflow: `in_airflow.py FOLDER RESULT EXIT_CODE…`.

It loads the DAGs of a folder, runs kraft_audit once for each exit code of spark-submit, and writes to RESULT, as JSON, what happened.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from airflow.dag_processing.dagbag import DagBag  # type: ignore[import-not-found]


def main(folder: str, result: str, codes: list[str]) -> None:
    bag = DagBag(dag_folder=folder)
    dag = bag.dags["kraft_audit"]
    found = {
        "import_errors": {Path(path).name: text for path, text in bag.import_errors.items()},
        "warnings": [each for warnings in bag.captured_warnings.values() for each in warnings],
        "dags": sorted(bag.dags),
        "tasks": {task.task_id: type(task).__name__ for task in dag.tasks},
        "schedule": [dag.timetable.expression, str(dag.timezone)],
        "catchup": dag.catchup,
        "max_active_runs": dag.max_active_runs,
        "timeouts": [task.execution_timeout.total_seconds() for task in dag.tasks],
        "runs": [_run(dag, code) for code in codes],
    }
    Path(result).write_text(json.dumps(found))


def _run(dag: Any, code: str) -> list[Any]:
    """The states of a run and of its tasks."""
    os.environ["EXIT_CODE"] = code
    run = dag.test()
    return [run.state, {each.task_id: each.state for each in run.get_task_instances()}]


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
