"""Record types by what the migration does with them: loaded from ZooKeeper, mirrored to it, or neither."""

from __future__ import annotations

# The records that the load makes from ZooKeeper (S§4.2), each of version 0 at every metadata.version.
LOADED: tuple[str, ...] = (
    "TOPIC_RECORD",
    "PARTITION_RECORD",
    "CONFIG_RECORD",
    "CLIENT_QUOTA_RECORD",
    "PRODUCER_IDS_RECORD",
    "USER_SCRAM_CREDENTIAL_RECORD",
    "ACCESS_CONTROL_ENTRY_RECORD",
    "DELEGATION_TOKEN_RECORD",
)
# What dual write brings to ZooKeeper (S§5.2). Registrations, features, no-ops and markers change nothing there.
MIRRORED: tuple[str, ...] = (
    *LOADED,
    "PARTITION_CHANGE_RECORD",
    "REMOVE_TOPIC_RECORD",
    "REMOVE_USER_SCRAM_CREDENTIAL_RECORD",
    "REMOVE_ACCESS_CONTROL_ENTRY_RECORD",
    "REMOVE_DELEGATION_TOKEN_RECORD",
)
