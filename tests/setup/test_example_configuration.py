"""conf/example.yml is valid as it stands, with every option switched on, and it leaves no option out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel

from jobs.settings import Settings

EXAMPLE = (Path(__file__).parents[2] / "conf" / "example.yml").read_text()
EVERY_OPTION: dict[str, Any] = yaml.safe_load(re.sub(r"(?m)^( *)#((?:- )?\w+:)", r"\1\2", EXAMPLE))
SOURCES = ("connect", "folder", "dump")


def test_the_example_is_valid_as_it_stands() -> None:
    settings = Settings.model_validate(yaml.safe_load(EXAMPLE))
    assert settings == Settings.model_validate(
        {
            "cluster": "prod-eu",
            "warehouse": "/var/lib/kraft-audit",
            "zookeeper": {"connect": "zk1.example.com:2181,zk2.example.com:2181,zk3.example.com:2181/kafka"},
            "kraft": {"folders": [f"/backup/controllers/{controller}" for controller in (3000, 3001, 3002)]},
        }
    )


@pytest.mark.parametrize("source", SOURCES)
def test_every_option_of_the_example_is_valid(source: str) -> None:
    zookeeper = {key: value for key, value in EVERY_OPTION["zookeeper"].items() if key == source or key not in SOURCES}
    settings = Settings.model_validate(EVERY_OPTION | {"zookeeper": zookeeper})
    assert settings.report.mail is not None
    assert settings.zookeeper is not None
    assert settings.zookeeper.tls is not None


def test_the_example_leaves_no_option_out() -> None:
    assert sorted(_keys(EVERY_OPTION)) == sorted(_fields(Settings))


def test_defaults_shown_are_the_defaults() -> None:
    shown = EVERY_OPTION["thresholds"] | {"rows": EVERY_OPTION["report"]["rows"], "fail_on": EVERY_OPTION["fail_on"]}
    defaults = Settings.model_validate(yaml.safe_load(EXAMPLE))
    assert shown == defaults.thresholds.model_dump() | {"rows": defaults.report.rows, "fail_on": defaults.fail_on}


def _keys(content: dict[str, Any], prefix: str = "") -> list[str]:
    found = []
    for key, value in content.items():
        found.append(prefix + key)
        if isinstance(value, dict):
            found += _keys(value, f"{prefix}{key}.")
        elif isinstance(value, list) and isinstance(value[0], dict):
            found += _keys(value[0], f"{prefix}{key}.")
    return found


def _fields(model: type[BaseModel], prefix: str = "") -> list[str]:
    found = []
    for name, field in model.model_fields.items():
        found.append(prefix + name)
        for candidate in (field.annotation, *get_args(field.annotation)):
            if isinstance(candidate, type) and issubclass(candidate, BaseModel):
                found += _fields(candidate, f"{prefix}{name}.")
    return found
