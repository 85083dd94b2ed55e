"""One pure function a check, by its id in `schemas.checks`."""

from transforms.reconcile.checks import capture, dual_write, finish, start
from transforms.reconcile.checks.outcome import CheckFunction, Outcome

FUNCTIONS: dict[str, CheckFunction] = {**capture.CHECKS, **start.CHECKS, **dual_write.CHECKS, **finish.CHECKS}

__all__ = ["FUNCTIONS", "CheckFunction", "Outcome"]
