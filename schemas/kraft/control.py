"""Control records: what the Raft layer itself writes into the log and into snapshots (S§2.4, `ControlRecordType`).

The body's first field, `version`, is its version.
"""

from __future__ import annotations

from schemas.kraft.fields import Body, Field, Kind, RecordType

_VERSION = Field("version", Kind.INT16)
_VOTER = (Field("voterId", Kind.INT32), Field("voterDirectoryId", Kind.UUID, since=1))
_MARKER = Body((_VERSION, Field("coordinatorEpoch", Kind.INT32)), flexible=False)

# Markers of client transactions: never in a metadata log, named so that a finding can say what they are.
ABORT = RecordType(0, "ABORT", _MARKER)
COMMIT = RecordType(1, "COMMIT", _MARKER)
LEADER_CHANGE = RecordType(
    2,
    "LEADER_CHANGE",
    Body(
        (
            _VERSION,
            Field("leaderId", Kind.INT32),
            Field("voters", Kind.STRUCT, array=True, fields=_VOTER),
            Field("grantingVoters", Kind.STRUCT, array=True, fields=_VOTER),
        ),
        highest=1,
    ),
)
SNAPSHOT_HEADER = RecordType(3, "SNAPSHOT_HEADER", Body((_VERSION, Field("lastContainedLogTimestamp", Kind.INT64))))
SNAPSHOT_FOOTER = RecordType(4, "SNAPSHOT_FOOTER", Body((_VERSION,)))
KRAFT_VERSION = RecordType(5, "KRAFT_VERSION", Body((_VERSION, Field("kRaftVersion", Kind.INT16))), since="3.9")
KRAFT_VOTERS = RecordType(
    6,
    "KRAFT_VOTERS",
    Body(
        (
            _VERSION,
            Field(
                "voters",
                Kind.STRUCT,
                array=True,
                fields=(
                    Field("voterId", Kind.INT32),
                    Field("voterDirectoryId", Kind.UUID),
                    Field(
                        "endpoints",
                        Kind.STRUCT,
                        array=True,
                        fields=(
                            Field("name", Kind.STRING),
                            Field("host", Kind.STRING),
                            Field("port", Kind.UINT16),
                        ),
                    ),
                    Field(
                        "kRaftVersionFeature",
                        Kind.STRUCT,
                        fields=(
                            Field("minSupportedVersion", Kind.INT16),
                            Field("maxSupportedVersion", Kind.INT16),
                        ),
                    ),
                ),
            ),
        )
    ),
    since="3.9",
)

CONTROL_TYPES: dict[int, RecordType] = {
    record.key: record
    for record in (ABORT, COMMIT, LEADER_CHANGE, SNAPSHOT_HEADER, SNAPSHOT_FOOTER, KRAFT_VERSION, KRAFT_VOTERS)
}
FOREIGN_CONTROL_KEYS = frozenset({ABORT.key, COMMIT.key})
