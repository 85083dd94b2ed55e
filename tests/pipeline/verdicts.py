"""What a report decides, without the words it says it in: the part of `report.json` that may only change on purpose.

`python -m tests.pipeline.verdicts REPORT.json` prints it, to replace a file of tests/data/verdicts with.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

STORED = Path(__file__).parents[1] / "data" / "verdicts"


def verdicts(report: dict[str, Any]) -> dict[str, Any]:
    """Verdicts, numbers and names of a report.json; explanations, evidence, times and run ids are left out."""
    migration, lag = report["migration"], report["lag"]
    return {
        "verdict": report["verdict"],
        "exit_code": report["exit_code"],
        "mode": report["mode"],
        "kafka_version": report["kafka_version"],
        "state": migration["state"],
        "phase": migration["phase"],
        "leader": [migration["leader_id"], migration["leader_epoch"]],
        "offsets": [migration[name] for name in ("kraft_metadata_offset", "committed_end_offset", "log_end_offset")],
        "lag": [lag["records"], lag["alive"]],
        "gates": {name: [gate["verdict"], *sorted(gate["blocking"])] for name, gate in report["gates"].items()},
        "checks": {check["id"]: [check["verdict"], check["violations"]] for check in report["checks"]},
        "counts": report["counts"],
        "divergences": report["divergences"]["by_class"],
        "rows": sorted(
            f"{row['class']} {row['entity']} {json.dumps(row['key'], sort_keys=True)}"
            for row in report["divergences"]["rows"]
        ),
        "brokers": {str(each["broker_id"]): [each["mode"], *each["blocks"]] for each in report["broker_presence"]},
        "metrics": {metric["name"]: metric["value"] for metric in report["metrics"]},
    }


def stored(name: str) -> dict[str, Any]:
    """What is known to be right of a capture, by VERSION-STAGE."""
    content: dict[str, Any] = json.loads((STORED / f"{name}.json").read_text())
    return content


def text(found: dict[str, Any]) -> str:
    """As it is stored: one line for each name, so that a change shows as one."""
    lines = []
    for name, value in found.items():
        inner = value.items() if isinstance(value, dict) and len(value) > 3 else None
        if inner is None:
            lines.append(f"{json.dumps(name)}: {json.dumps(value, sort_keys=True)}")
        else:
            body = ",\n".join(f"  {json.dumps(key)}: {json.dumps(one, sort_keys=True)}" for key, one in inner)
            lines.append(f"{json.dumps(name)}: {{\n{body}\n }}")
    return "{\n " + ",\n ".join(lines) + "\n}\n"


if __name__ == "__main__":
    print(text(verdicts(json.loads(Path(sys.argv[1]).read_text()))), end="")
