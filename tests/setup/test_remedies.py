"""What a remedy or a message tells people to type or to set exists: commands, options, keys and pages, ours and Kafka's."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from pydantic import BaseModel

from jobs.commands.completion import whole_parser
from jobs.settings import Settings
from schemas import bronze, gold, silver
from schemas.checks import CHECKS
from schemas.classes import CLASSES
from schemas.configs import CONFIG_TYPES
from schemas.kraft import feature_levels
from tests.setup.test_words import messages

ROOT = Path(__file__).parents[2]
# Sub-commands and options of Kafka's tools that messages may name, as `--help` of 3.9.1 prints them; of later releases
# `upgrade --release-version` (4.0, KIP-1022), `unregister-controller` and `--unregister` (4.4, KIP-1312); of releases
# below 3.3 `--downgrade-all` (KIP-584).
KAFKA_TOOLS: dict[str, set[str]] = {
    "kafka-acls.sh": set(),
    "kafka-cluster.sh": {"unregister", "unregister-controller", "--id"},
    "kafka-configs.sh": {
        "--alter",
        "--add-config",
        "--delete-config",
        "--entity-type",
        "--entity-name",
        "--entity-default",
    },
    "kafka-features.sh": {
        "upgrade",
        "disable",
        "--metadata",
        "--feature",
        "--release-version",
        "--downgrade-all",
    },
    "kafka-leader-election.sh": {"--election-type"},
    "kafka-metadata-quorum.sh": {
        "describe",
        "add-controller",
        "remove-controller",
        "--status",
        "--unregister",
        "--bootstrap-controller",
    },
    "kafka-reassign-partitions.sh": {"--cancel", "--verify", "--execute"},
    "kafka-storage.sh": {"format", "--cluster-id", "--config"},
    "kafka-topics.sh": {"--describe"},
    "zookeeper-security-migration.sh": {"--zookeeper.acl"},
    "zookeeper-shell.sh": {"delete", "setAcl"},
}
# What follows an option or stands for a value: brokers, topics, files and numbers.
_VALUE = re.compile(r"^([A-Z/0-9….\[{<]|users$|brokers$|topics$|preferred$|unclean$|client-metrics$)")
# Dotted names that are neither settings nor tables: files, and a key of such a file.
_OTHER_NAMES = {"meta.properties", "bootstrap.checkpoint", "cluster.id", "directory.id"}
_DOTTED = re.compile(r"(?<![\w./*`-])`?([a-z][a-z0-9_]*(?:\.[a-z0-9_]+)+)\b(?![(/])")


def remedies() -> dict[str, str]:
    """Every text that says what to do, by the check or the class it is of."""
    return {each.id: each.remedy for each in CHECKS} | {each.name: each.remedy for each in CLASSES.values()}


@cache
def texts() -> list[tuple[str, str]]:
    """Remedies, and all other messages of the program, each with where it is."""
    found = [*remedies().items()]
    for folder in ("jobs", "transforms", "schemas"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            found += [(str(path.relative_to(ROOT)), text) for text in messages(path.read_text())]
    return found


def keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Dotted names of a model's keys, those of the models below it included."""
    for name, field in model.model_fields.items():
        yield prefix + name
        for below in models(field.annotation):
            yield from keys(below, f"{prefix}{name}.")


def models(annotation: object) -> Iterator[type[BaseModel]]:
    """The models in a type such as `list[Mail] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in getattr(annotation, "__args__", ()):
        yield from models(part)


def words_after(text: str, program: str) -> Iterator[list[str]]:
    """The words that follow a program's name, up to the end of its command."""
    for hit in re.finditer(rf"(?<![\w-]){re.escape(program)}(?![\w-])", text):
        rest = " ".join(text[hit.end() :].split())
        yield re.split(r"[`;,)]|\. |: |\.$", rest)[0].split()


@pytest.mark.parametrize("program", KAFKA_TOOLS)
def test_tools_of_kafka_have_what_is_named(program: str) -> None:
    for where, text in texts():
        for words in words_after(text, program):
            # In a sentence the name stands alone; a command goes on with a sub-command or an option.
            options = {word.split("=")[0] for word in words if word.startswith("--")}
            first = {words[0]} if words and "`" + program + " " in text and not words[0].startswith("--") else set()
            named = {word for word in options | first if not _VALUE.match(word)}
            assert named <= KAFKA_TOOLS[program], (where, text)


def test_every_tool_of_kafka_that_is_named_is_known() -> None:
    named = {tool for _, text in texts() for tool in re.findall(r"\b(?:kafka|zookeeper)-[a-z-]+\.sh\b", text)}
    assert named <= KAFKA_TOOLS.keys()
    assert len(named) > 8


def commands() -> dict[str, argparse.ArgumentParser]:
    """Every command of the program, with its options."""
    (below,) = (each for each in whole_parser()._actions if isinstance(each, argparse._SubParsersAction))
    return dict(below.choices)


def test_commands_of_the_program_that_are_named_exist() -> None:
    known, seen = commands(), 0
    for where, text in texts():
        for words in words_after(text, "`kraft-audit"):
            command = words[0] if words else ""
            if command in ("", "COMMAND"):
                continue
            assert command in known, (where, text)
            options = {word.split("=")[0] for word in words if word.startswith("--")}
            assert options <= known[command]._option_string_actions.keys(), (where, text)
            seen += 1
    assert seen > 15


@pytest.mark.parametrize(("where", "text"), remedies().items(), ids=remedies())
def test_names_in_a_remedy_are_settings_tables_or_features(where: str, text: str) -> None:
    ours = set(keys(Settings))
    tables = {table.full_name for table in (*bronze.TABLES, *silver.TABLES, *gold.TABLES)}
    features = {value for name, value in vars(feature_levels).items() if name.endswith(("_VERSION", "FEATURE_NAME"))}
    known = CONFIG_TYPES.keys() | ours | tables | features | _OTHER_NAMES
    # A tool's own option, such as `--zookeeper.acl`, is judged with the tool.
    assert {name for name in _DOTTED.findall(text) if not name.endswith((".sh", ".md"))} <= known, where


@pytest.mark.parametrize(("where", "text"), remedies().items(), ids=remedies())
def test_checks_and_pages_in_a_remedy_exist(where: str, text: str) -> None:
    assert set(re.findall(r"\b[A-Z]{2,5}-\d\d\b", text)) <= {each.id for each in CHECKS}
    for page in re.findall(r"docs/\w+\.md", text):
        assert (ROOT / page).exists(), where


def test_controllers_are_formatted_in_an_empty_folder() -> None:
    """`kafka-storage.sh format` refuses a formatted folder, and with --ignore-formatted the old log stays in it (StorageTool)."""
    again = {where: text for where, text in remedies().items() if re.search(r"\bformat (them|the controllers)\b", text)}
    assert {"START-06", "START-07", "START-11", "DUR-08", "RB-05"} <= again.keys()
    assert [
        where for where, text in again.items() if not re.search(r"[Ee]mpty the(ir| controllers') log folders", text)
    ] == []


def test_a_name_that_does_not_exist_is_found() -> None:
    text = "Set `kraft.folder` and zookeeper.conect: run `kafka-features.sh raise --level 3`, then `kraft-audit audit --now`."
    assert set(_DOTTED.findall(text)) == {"kraft.folder", "zookeeper.conect"}
    assert [*words_after(text, "kafka-features.sh")] == [["raise", "--level", "3"]]
    assert [*words_after(text, "`kraft-audit")] == [["audit", "--now"]]


def test_a_foreign_write_is_not_repaired_by_setting_the_value_that_kraft_has() -> None:
    """Seen in 3.7.2: after an edit of /config/clients/x, the quota set to KRaft's value left the znode as it was; a failover repaired it.

    `ClientQuotaControlManager` and `ConfigurationControlManager` write no record of an equal value, and no request sets a state.
    """
    remedy = CLASSES["foreign_write"].remedy
    assert "force a full sync" in remedy
    assert "a value that KRaft already has writes nothing" in remedy
