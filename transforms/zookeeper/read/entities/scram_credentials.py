"""SCRAM credentials inside `/config/users/<user>` (`ScramCredentialUtils.credentialFromString`, S§1.5)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from schemas.sensitive import SCRAM_SECRETS
from transforms.secrets import PREFIX
from transforms.zookeeper.read.reading import StateRow, finding

_ITERATIONS = re.compile(r"[+-]?[0-9]{1,9}")


def read_scram(path: str, user: str, mechanism: str, value: str) -> Iterator[StateRow]:
    """Yield one credential; `value` is redacted: its secrets are fingerprints, or it is masked whole."""
    fields = dict(part.split("=", 1) for part in value.split(",") if "=" in part)
    well_formed = fields.keys() == {*SCRAM_SECRETS, "iterations"} and all(
        fields[name].startswith(PREFIX) for name in SCRAM_SECRETS
    )
    if not well_formed or not _ITERATIONS.fullmatch(fields["iterations"]):
        yield finding("START-13", path, f"the '{mechanism}' credential does not have its four parts (value masked)")
        return
    row = {name: fields[name] for name in SCRAM_SECRETS}
    yield StateRow(
        "scram_credentials", {"user": user, "mechanism": mechanism, **row, "iterations": int(fields["iterations"])}
    )
