"""One pure function a check, by its id in `schemas.checks`; the modules have the catalogue's names."""

from transforms.reconcile.judge.checks import (
    between,
    capture,
    configuration,
    dual_write,
    features,
    finish,
    isr,
    kraft,
    operation,
    rollback,
    security,
    start,
    transactions,
)
from transforms.reconcile.judge.checks.outcome import CheckFunction

FUNCTIONS: dict[str, CheckFunction] = {
    **capture.CHECKS,
    **between.CHECKS,
    **start.CHECKS,
    **configuration.CHECKS,
    **dual_write.CHECKS,
    **transactions.CHECKS,
    **finish.CHECKS,
    **rollback.CHECKS,
    **security.CHECKS,
    **isr.CHECKS,
    **features.CHECKS,
    **kraft.CHECKS,
    **operation.CHECKS,
}

__all__ = ["FUNCTIONS", "CheckFunction"]
