"""Property files of Kafka nodes: what the checks ask of them, and nothing else of what is in them.

A property file holds secrets. Only whether `password.encoder.secret` is set is kept of those, never a value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

ENCODER = "password.encoder.secret"
MIGRATION_FLAG = "zookeeper.metadata.migration.enable"
_COMMENT = ("#", "!")
# An even number of backslashes before the end of the line is a value's own, an odd one goes on in the next line.
_CONTINUED = re.compile(r"(?<!\\)(\\\\)*\\$")
_PAIR = re.compile(r"((?:\\.|[^\\:=\s])*)[ \t\f]*[:= \t\f]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


@dataclass(frozen=True)
class NodeProperties:
    """A broker's or controller's property file: whose it is, and what it switches on."""

    location: str
    node_id: int | None
    has_encoder_secret: bool
    migration_enabled: bool


@dataclass(frozen=True)
class MetaProperties:
    """A broker's meta.properties; `version` is None when the file has none that is a number."""

    location: str
    broker_id: int | None
    version: int | None


@dataclass(frozen=True)
class PropertyFiles:
    """The files a run was given; a kind that was not given is empty.

    `clear_text_accepted` is the operator's word that broker passwords may lie in the metadata log in clear text.
    """

    controllers: tuple[NodeProperties, ...] = ()
    brokers: tuple[NodeProperties, ...] = ()
    broker_meta: tuple[MetaProperties, ...] = ()
    clear_text_accepted: bool = False


def node_properties(location: str, text: str) -> NodeProperties:
    """Keep of a node's property file what the checks need."""
    values = parse(text)
    return NodeProperties(
        location=location,
        node_id=_number(values.get("node.id", values.get("broker.id"))),
        has_encoder_secret=bool(values.get(ENCODER)),
        migration_enabled=values.get(MIGRATION_FLAG, "").strip().lower() == "true",
    )


def meta_properties(location: str, text: str) -> MetaProperties:
    """Read a meta.properties file, of version 0 (`broker.id`) or 1 (`node.id`)."""
    values = parse(text)
    return MetaProperties(
        location, _number(values.get("node.id", values.get("broker.id"))), _number(values.get("version"))
    )


def parse(text: str) -> dict[str, str]:
    """Key and value of every line, as `java.util.Properties.load` reads them; the last one of a key counts."""
    found = {}
    for line in _logical_lines(text):
        matched = _PAIR.fullmatch(line)
        if matched is not None:
            found[_unescaped(matched[1])] = _unescaped(matched[2])
    return found


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    begun: str | None = None
    for natural in re.split(r"\r\n|\n|\r", text):
        line = natural.lstrip(" \t\f")
        if begun is None and (not line or line.startswith(_COMMENT)):
            continue
        joined = (begun or "") + line
        if _CONTINUED.search(line):
            begun = joined[:-1]
        else:
            lines.append(joined)
            begun = None
    return lines if begun is None else [*lines, begun]


def _unescaped(text: str) -> str:
    def character(matched: re.Match[str]) -> str:
        code = matched[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else _LETTERS.get(code, code)

    return _ESCAPE.sub(character, text)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"\s*-?[0-9]{1,10}\s*", text) else None
