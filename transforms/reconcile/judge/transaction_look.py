"""Facts from ZooKeeper's transaction logs, gathered while they are read, besides their writers (`zookeeper_writes`)."""

from __future__ import annotations

import polars as pl

from transforms.reconcile.judge.samples import Samples
from transforms.reconcile.judge.secret_rules import leaked


class TransactionLook:
    """Secrets that show in the data of transactions (SEC-05)."""

    def __init__(self) -> None:
        """Nothing was read."""
        self.violations = Samples()

    def add(self, transactions: pl.DataFrame) -> None:
        """Take in rows of bronze zk_transactions (path, data)."""
        self.violations.add(leaked(transactions, "zk_transactions", "path", "data"))
