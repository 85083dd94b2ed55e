"""`kraft-audit schema`: what it prints takes the example and real reports, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
import yaml

from jobs.cli import main
from jobs.commands.schema import conf_schema, report_schema
from schemas.report import Report
from tests.report.samples import defective, finalised, healthy, lagging, not_ready
from tests.setup.test_example_configuration import EVERY_OPTION, EXAMPLE
from transforms.report.json import to_json


def valid(content: Any, schema: dict[str, Any]) -> bool:
    jsonschema.Draft202012Validator.check_schema(schema)
    return bool(jsonschema.Draft202012Validator(schema).is_valid(json.loads(json.dumps(content, default=str))))


@pytest.mark.parametrize(("what", "schema"), [("conf", conf_schema), ("report", report_schema)], ids=["conf", "report"])
def test_it_is_printed_whole(what: str, schema: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", what]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == schema()
    assert printed["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_the_example_fits_as_it_stands_and_with_every_option() -> None:
    assert valid(yaml.safe_load(EXAMPLE), conf_schema())
    assert valid(EVERY_OPTION, conf_schema())


@pytest.mark.parametrize(
    "wrong",
    [
        {"clusters": "a"},
        {"cluster": "a b"},
        {"kraft": {"folders": "one"}},
        {"fail_on": "sometimes"},
        {"notify": [{"form": "slack"}]},
        {"report": {"rows": 0}},
    ],
)
def test_what_the_program_refuses_does_not_fit(wrong: dict[str, Any]) -> None:
    assert not valid(yaml.safe_load(EXAMPLE) | wrong, conf_schema())


@pytest.mark.parametrize("make", [defective, finalised, healthy, lagging, not_ready])
def test_reports_fit(make: Any) -> None:
    report: Report = make()
    content = json.loads(to_json(report))
    assert valid(content, report_schema())
    # A newer release of the same format may say more.
    assert valid(content | {"more": 1}, report_schema())
    for row in content["divergences"]["rows"]:
        row["class"] = 7
    assert valid(content, report_schema()) == (not content["divergences"]["rows"])
    del content["verdict"]
    assert not valid(content, report_schema())


def test_an_editor_learns_every_key() -> None:
    schema = conf_schema()
    assert {*schema["properties"]} == {*EVERY_OPTION}
    assert schema["additionalProperties"] is False
    assert "kraft-audit schema conf" in EXAMPLE
