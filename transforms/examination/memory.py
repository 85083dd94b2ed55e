"""What a run remembers of a cluster for the next one, beside the state of the log (`transforms.kernel.kept`).

- the rows that differ, which the next run follows (new, persisting, resolved);
- epochs of ZooKeeper's partitions, which never fall;
- changes of partitions: the last day's, which are summed up, and those that rules look at until they are healed;
- registrations of the log's last hour, and append times since the newest checkpoint;
- the stories of rows that seem lost (`transforms.examination.stories`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

import polars as pl
import pyarrow as pa

from schemas.entities.partitions import PARTITIONS
from schemas.gold import ISR_CHANGE
from transforms.examination.stories import TOLD, Stories
from transforms.frames import columns_of
from transforms.isr.audit import RECENT
from transforms.isr.violations import JUDGED
from transforms.kernel.versions import VERSIONS
from transforms.reconcile.compare.divergences import FOLLOWED
from transforms.units import batches_of, stream

DIFFERENCES: pl.Schema = FOLLOWED
CHANGES: pl.Schema = columns_of(ISR_CHANGE.fields, "cluster")
JUDGED_CHANGES = pl.Schema({name: CHANGES[name] for name in JUDGED})
_EPOCHS = ("topic", "partition", "zk_czxid", "leader_epoch", "partition_epoch")
EPOCHS: pl.Schema = pl.Schema(
    {name: kind for name, kind in columns_of(PARTITIONS.table.columns).items() if name in _EPOCHS}
)
REGISTRATIONS = pl.Schema({"offset": pl.Int64, "append_time": pl.Int64, "broker_id": pl.Int32})
APPENDED = pl.Schema({"offset": pl.Int64, "append_time": pl.Int64})


def _none(columns: pl.Schema) -> pl.DataFrame:
    return pl.DataFrame(schema=columns)


@dataclass(frozen=True)
class Memory:
    """The frames: `differences` have DIFFERENCES, `epochs` EPOCHS, `judged` JUDGED_CHANGES, `recent` RECENT and so on;
    `told` and `versions` are those of `Stories`."""

    differences: pl.DataFrame = field(default_factory=lambda: _none(DIFFERENCES))
    epochs: pl.DataFrame = field(default_factory=lambda: _none(EPOCHS))
    judged: pl.DataFrame = field(default_factory=lambda: _none(JUDGED_CHANGES))
    recent: pl.DataFrame = field(default_factory=lambda: _none(RECENT))
    registrations: pl.DataFrame = field(default_factory=lambda: _none(REGISTRATIONS))
    appended: pl.DataFrame = field(default_factory=lambda: _none(APPENDED))
    told: pl.DataFrame = field(default_factory=lambda: _none(TOLD))
    versions: pl.DataFrame = field(default_factory=lambda: _none(VERSIONS))

    @property
    def stories(self) -> Stories:
        """Of rows that seemed lost."""
        return Stories(self.told, self.versions)

    def without_changes(self) -> Memory:
        """The same without the changes of partitions, which are most of a large cluster's."""
        return replace(self, judged=_none(JUDGED_CHANGES), recent=_none(RECENT))

    def to_bytes(self) -> bytes:
        """All of it as the bytes of one Arrow stream of streams."""
        names = [each.name for each in fields(self)]
        streams = [stream(getattr(self, name).to_arrow(compat_level=pl.CompatLevel.oldest())) for name in names]
        return stream(pl.DataFrame({"part": names, "rows": streams}).to_arrow())

    @staticmethod
    def from_bytes(payload: bytes) -> Memory:
        """Read `to_bytes`."""
        parts: Mapping[str, bytes] = {
            row["part"]: row["rows"] for batch in batches_of(payload) for row in batch.to_pylist()
        }
        return Memory(**{name: _frame(rows) for name, rows in parts.items()})


def _frame(rows: bytes) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(pa.ipc.open_stream(rows).read_all()))
