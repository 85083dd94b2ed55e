"""The catalogue of checks (S§7): what must hold, which gates it can block, what to do when it does not.

Each entry has one function of the same id in the module of the same name in `transforms.reconcile.judge.checks` that returns
the violations.
"""

from __future__ import annotations

from schemas.checks.between import CHECKS as BETWEEN
from schemas.checks.capture import CHECKS as CAPTURE
from schemas.checks.check import BOTH, BY_ZOOKEEPER, EVERY_PHASE, KRAFT, START_PHASES, ZOOKEEPER, Check, Phase
from schemas.checks.configuration import CHECKS as CONFIGURATION
from schemas.checks.dual_write import CHECKS as DUAL_WRITE
from schemas.checks.features import CHECKS as FEATURES
from schemas.checks.finish import CHECKS as FINISH
from schemas.checks.isr import CHECKS as ISR
from schemas.checks.kraft import CHECKS as KRAFT_HEALTH
from schemas.checks.operation import CHECKS as OPERATION
from schemas.checks.rollback import CHECKS as ROLLBACK
from schemas.checks.security import CHECKS as SECURITY
from schemas.checks.start import CHECKS as START
from schemas.checks.transactions import CHECKS as TRANSACTIONS

CHECKS: tuple[Check, ...] = (
    *CAPTURE,
    *BETWEEN,
    *START,
    *CONFIGURATION,
    *DUAL_WRITE,
    *TRANSACTIONS,
    *FINISH,
    *ROLLBACK,
    *SECURITY,
    *ISR,
    *FEATURES,
    *KRAFT_HEALTH,
    *OPERATION,
)

__all__ = ["BOTH", "BY_ZOOKEEPER", "CHECKS", "EVERY_PHASE", "KRAFT", "START_PHASES", "ZOOKEEPER", "Check", "Phase"]
