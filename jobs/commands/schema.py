"""`kraft-audit schema`: the JSON Schema of a configuration, for editors, and of report.json, for programs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from jobs.exit import OK
from jobs.settings import Settings
from schemas.report import FORMAT, Report

CONF, REPORT = "conf", "report"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `kraft-audit schema`."""
    parser.add_argument(
        "what",
        choices=(CONF, REPORT),
        help="conf: a configuration file; report: report.json, and column report of gold runs",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Print the schema, as JSON Schema 2020-12."""
    print(json.dumps(conf_schema() if arguments.what == CONF else report_schema(), indent=2))
    return OK


def conf_schema() -> dict[str, Any]:
    """The JSON Schema of a configuration. Rules between several keys are checked only when the program reads the file."""
    return _of(Settings.model_json_schema(), "A configuration of kraft-audit")


def report_schema() -> dict[str, Any]:
    """What report.json holds: later releases of the same format may add to it."""
    return _of(_named(TypeAdapter(Report).json_schema()), f"report.json of kraft-audit, format {FORMAT}")


def _of(schema: dict[str, Any], title: str) -> dict[str, Any]:
    return {"$schema": GenerateJsonSchema.schema_dialect, **schema, "title": title}


def _named(schema: Any) -> Any:
    """The schema with names as JSON has them: `class`, which Python's own word is, is spelled `class_` in Python."""
    if isinstance(schema, list):
        return [_named(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    named = {key: _named(value) for key, value in schema.items()}
    if "properties" in named:
        named["properties"] = {name.rstrip("_"): value for name, value in named["properties"].items()}
    if "required" in named:
        named["required"] = [name.rstrip("_") for name in named["required"]]
    return named
