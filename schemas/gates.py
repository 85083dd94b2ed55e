"""Names of the gates: each is a decision that the checks open or close."""

from __future__ import annotations

from typing import Literal, get_args

GateName = Literal["start", "dual_write", "finalize", "rollback", "upgrade"]
GATES: tuple[str, ...] = get_args(GateName)
UPGRADE: tuple[str, ...] = ("upgrade",)
MIGRATION_GATES: tuple[str, ...] = tuple(gate for gate in GATES if gate not in UPGRADE)
