"""A local warehouse that is read and written as one on a store is: by Spark alone."""

from __future__ import annotations

from pathlib import Path

from jobs.sinks.delta import Warehouse


class BySpark(Warehouse):
    """The warehouse of a folder, without the shortcuts that a local folder has."""

    @property
    def folder(self) -> Path | None:
        """None, as for a store."""
        return None
