"""Control records: what the Raft layer itself writes into the log and into snapshots (S§2.4, `ControlRecordType`).

The body's first field, `version`, is its version.
"""

from __future__ import annotations

from schemas.kraft.fields import Body, Field, RecordType, WireType

_VERSION = Field("version", WireType.INT16)
_VOTER = (Field("voterId", WireType.INT32), Field("voterDirectoryId", WireType.UUID, since=1))
_MARKER = Body((_VERSION, Field("coordinatorEpoch", WireType.INT32)), flexible=False)

# Markers of client transactions: never in a metadata log, named for findings.
ABORT = RecordType(0, "ABORT", _MARKER)
COMMIT = RecordType(1, "COMMIT", _MARKER)
LEADER_CHANGE = RecordType(
    2,
    "LEADER_CHANGE",
    Body(
        (
            _VERSION,
            Field("leaderId", WireType.INT32),
            Field("voters", WireType.STRUCT, array=True, fields=_VOTER),
            Field("grantingVoters", WireType.STRUCT, array=True, fields=_VOTER),
        ),
        highest=1,
    ),
)
SNAPSHOT_HEADER = RecordType(3, "SNAPSHOT_HEADER", Body((_VERSION, Field("lastContainedLogTimestamp", WireType.INT64))))
SNAPSHOT_FOOTER = RecordType(4, "SNAPSHOT_FOOTER", Body((_VERSION,)))
KRAFT_VERSION = RecordType(5, "KRAFT_VERSION", Body((_VERSION, Field("kRaftVersion", WireType.INT16))))
KRAFT_VOTERS = RecordType(
    6,
    "KRAFT_VOTERS",
    Body(
        (
            _VERSION,
            Field(
                "voters",
                WireType.STRUCT,
                array=True,
                fields=(
                    Field("voterId", WireType.INT32),
                    Field("voterDirectoryId", WireType.UUID),
                    Field(
                        "endpoints",
                        WireType.STRUCT,
                        array=True,
                        fields=(
                            Field("name", WireType.STRING),
                            Field("host", WireType.STRING),
                            Field("port", WireType.UINT16),
                        ),
                    ),
                    Field(
                        "kRaftVersionFeature",
                        WireType.STRUCT,
                        fields=(
                            Field("minSupportedVersion", WireType.INT16),
                            Field("maxSupportedVersion", WireType.INT16),
                        ),
                    ),
                ),
            ),
        )
    ),
)

CONTROL_TYPES: dict[int, RecordType] = {
    record.key: record
    for record in (ABORT, COMMIT, LEADER_CHANGE, SNAPSHOT_HEADER, SNAPSHOT_FOOTER, KRAFT_VERSION, KRAFT_VOTERS)
}
FOREIGN_CONTROL_KEYS = frozenset({ABORT.key, COMMIT.key})
