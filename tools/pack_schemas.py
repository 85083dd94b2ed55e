"""Pack the schemas that tests/setup/test_schedulers.py holds the manifests of conf/schedulers to.

`python tools/pack_schemas.py FOLDER` reads FOLDER, where `pip install --no-deps --target FOLDER PACKAGE==VERSION` has put the two packages
that tests/data/schemas/README.md names, and writes tests/data/schemas/<kind>.json.xz. Descriptions are left out. Kubernetes drops
a field that it does not know, and a misspelt setting would have no effect: here each such field is an error.
"""

from __future__ import annotations

import importlib
import json
import lzma
import sys
from pathlib import Path
from typing import Any

KUBERNETES = "1.37.0"
TARGET = Path(__file__).parents[1] / "tests" / "data" / "schemas"
PREFIX = "/api/_definitions.json"
# The operator's classes have each of these as an object with one field for each form that its value can have.
ONE_OF = {
    "IoK8sApimachineryPkgApiResourceQuantity": ["string", "number"],
    "IoK8sApimachineryPkgUtilIntstrIntOrString": ["string", "integer"],
}


def cron_job(folder: Path) -> dict[str, Any]:
    """Kubernetes' own schema of a CronJob, with all that it refers to."""
    schemas = folder / "kubernetes_validate" / "kubernetes-json-schema" / f"v{KUBERNETES}-local-strict"
    definitions = json.loads((schemas / "_definitions.json").read_text())["$defs"]
    schema = _bare(json.loads((schemas / "cronjob-batch-v1.json").read_text()))
    reached, left = {}, _references(schema)
    while left:
        name = left.pop()
        if name not in reached:
            reached[name] = _bare(definitions[name])
            left |= _references(reached[name])
    return {**schema, "$defs": dict(sorted(reached.items()))}


def scheduled_spark_application(folder: Path) -> dict[str, Any]:
    """What the Spark operator's own classes accept as a ScheduledSparkApplication."""
    sys.path.insert(0, str(folder))
    name = "spark_v1beta2_scheduled_spark_application"
    module = importlib.import_module(f"kubeflow_spark_api.models.{name}")
    model = getattr(module, "".join(part.capitalize() for part in name.split("_")))
    schema = model.model_json_schema(by_alias=True)
    schema["$defs"] |= {one_of: {"type": types} for one_of, types in ONE_OF.items()}
    packed: dict[str, Any] = _without_null(_bare(schema))
    return packed


def _references(schema: Any) -> set[str]:
    """The names of the definitions that a schema uses."""
    if isinstance(schema, dict):
        own = {schema["$ref"].rpartition("/")[2]} if isinstance(schema.get("$ref"), str) else set()
        return own.union(*map(_references, schema.values()))
    return set().union(*map(_references, schema)) if isinstance(schema, list) else set()


def _without_null(schema: Any) -> Any:
    """A schema whose fields may be absent and not null: so an error in a field's value is reported as that, and where it is."""
    if isinstance(schema, list):
        return [_without_null(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: _without_null(value) for name, value in schema.items() if name != "default" or value is not None}
    if isinstance(kept.get("anyOf"), list):
        (only,) = (each for each in kept.pop("anyOf") if each != {"type": "null"})
        kept |= only
    return kept


def _bare(schema: Any) -> Any:
    """A schema without what it says to people, whose objects have no other fields than those that it names."""
    if isinstance(schema, list):
        return [_bare(each) for each in schema]
    if not isinstance(schema, dict):
        return schema.removeprefix(PREFIX) if isinstance(schema, str) else schema
    # A field may have one of these names, too; its value is a schema and no text.
    kept = {
        name: _bare(value)
        for name, value in schema.items()
        if not (name in ("description", "title") and isinstance(value, str)) and not name.startswith("x-kubernetes-")
    }
    if isinstance(kept.get("properties"), dict) and kept.get("type") in ("object", ["object", "null"]):
        kept.setdefault("additionalProperties", False)
    return kept


def main(folder: Path) -> None:
    """Write both schemas."""
    TARGET.mkdir(exist_ok=True)
    for pack in (cron_job, scheduled_spark_application):
        text = json.dumps(pack(folder), separators=(",", ":"))
        path = TARGET / f"{pack.__name__}.json.xz"
        path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
