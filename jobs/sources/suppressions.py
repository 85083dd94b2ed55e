"""The file of suppressions that a configuration names: who accepts which difference, why, and until when."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, ValidationError, model_validator

from jobs.exit import UsageError
from jobs.settings import Strict, first_problem
from jobs.yaml_file import read_yaml
from schemas.classes import CLASSES
from schemas.entities import MIRRORED
from schemas.report import Suppression
from transforms.explain.keys import KeyFormError, RowKey, parse_key
from transforms.nearest import suggestion
from transforms.reconcile.compare.suppressions import SuppressionRule

_Text = Annotated[str, Field(min_length=1, max_length=500)]


class SuppressionEntry(Strict):
    """One entry: the fingerprint of a difference, or an entity and a class, narrowed by key and column."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    fingerprint: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")] | None = None
    entity: str | None = None
    key: str | dict[str, Any] | None = None
    column: str | None = None
    class_: Annotated[str | None, Field(alias="class")] = None
    who: _Text
    why: _Text
    until: date

    @model_validator(mode="after")
    def _names_one_thing(self) -> SuppressionEntry:
        described = [name for name in ("entity", "key", "column", "class_") if getattr(self, name) is not None]
        if self.fingerprint is not None and described:
            raise ValueError(f"give fingerprint alone, or entity and class; not `{described[0].rstrip('_')}` beside it")
        if self.fingerprint is None and (self.entity is None or self.class_ is None):
            raise ValueError("give fingerprint, or entity and class")
        return self


def read_suppressions(path: Path | None) -> tuple[SuppressionRule, ...]:
    """Read and validate the file; nothing without one. Raises UsageError naming the file, the entry and the key."""
    if path is None:
        return ()
    content = read_yaml(path, "suppressions")
    if content is not None and not isinstance(content, list):
        raise UsageError(f"suppressions {path} must be a list of entries")
    return tuple(_rule(entry, number, path) for number, entry in enumerate(content or [], 1))


def _rule(content: object, number: int, path: Path) -> SuppressionRule:
    where = f"suppressions {path}, entry {number}"
    try:
        entry = SuppressionEntry.model_validate(content)
    except ValidationError as error:
        raise UsageError(f"{where}: {first_problem(error, SuppressionEntry)}") from None
    row = _row(entry, where)
    return SuppressionRule(
        number=number,
        suppression=Suppression(entry.who, entry.why, entry.until.isoformat()),
        fingerprint=entry.fingerprint,
        entity=entry.entity,
        key=None if row is None else row.gold,
        column=entry.column,
        class_=entry.class_,
    )


def _row(entry: SuppressionEntry, where: str) -> RowKey | None:
    """The row the entry names, None when it names none; its entity, class and column must be known."""
    if entry.entity is None or entry.class_ is None:
        return None
    known = {entity.name: entity for entity in MIRRORED}
    if entry.entity not in known:
        raise UsageError(f"{where}: `entity`: there is no `{entry.entity}`; {suggestion(entry.entity, known)}")
    if entry.class_ not in CLASSES:
        raise UsageError(f"{where}: `class`: there is no `{entry.class_}`; {suggestion(entry.class_, CLASSES)}")
    columns = known[entry.entity].compared
    if entry.column is not None and entry.column not in columns:
        raise UsageError(f"{where}: `column`: there is no `{entry.column}`; {suggestion(entry.column, columns)}")
    try:
        return None if entry.key is None else parse_key(entry.entity, entry.key)
    except KeyFormError as error:
        raise UsageError(f"{where}: `key`: {error}") from None
