"""Every record type of the metadata log that Kafka 3.4 to 4.4 can write (S§2.5), in Kafka's order of fields.

The decoder, the dump and the tests' encoder are all driven by these declarations: a new record type is one entry.
"""

from __future__ import annotations

from schemas.kraft import enums
from schemas.kraft.fields import Body, Field, RecordType, WireType

INT8, INT16, UINT16, INT32 = WireType.INT8, WireType.INT16, WireType.UINT16, WireType.INT32
INT64, FLOAT64, BOOL, UUID = WireType.INT64, WireType.FLOAT64, WireType.BOOL, WireType.UUID
STRING, BYTES, STRUCT = WireType.STRING, WireType.BYTES, WireType.STRUCT

_END_POINTS = Field(
    "endPoints",
    STRUCT,
    array=True,
    fields=(
        Field("name", STRING),
        Field("host", STRING),
        Field("port", UINT16),
        Field("securityProtocol", INT16, enum=enums.SECURITY_PROTOCOLS),
    ),
)
_FEATURES = Field(
    "features",
    STRUCT,
    array=True,
    fields=(Field("name", STRING), Field("minSupportedVersion", INT16), Field("maxSupportedVersion", INT16)),
)
_TOPIC_ID = Field("topicId", UUID)
_PARTITION_ID = Field("partitionId", INT32)
_BROKER = (Field("brokerId", INT32), Field("brokerEpoch", INT64))
_FENCING = (Field("id", INT32), Field("epoch", INT64))
_MECHANISM = Field("mechanism", INT8, enum=enums.SCRAM_MECHANISMS)


def _tagged_ints(name: str, tag: int, since: int = 0) -> Field:
    return Field(name, INT32, array=True, nullable=True, tag=tag, since=since)


REGISTER_BROKER = RecordType(
    0,
    "REGISTER_BROKER_RECORD",
    Body(
        (
            Field("brokerId", INT32),
            Field("isMigratingZkBroker", BOOL, since=2, default=False),
            Field("incarnationId", UUID),
            Field("brokerEpoch", INT64),
            _END_POINTS,
            _FEATURES,
            Field("rack", STRING, nullable=True),
            Field("fenced", BOOL, default=True),
            Field("inControlledShutdown", BOOL, since=1, default=False),
            Field("logDirs", UUID, array=True, since=3, tag=0, default=()),
            Field("cordonedLogDirs", UUID, array=True, since=4, tag=1, nullable=True),
        ),
        highest=4,
    ),
)
UNREGISTER_BROKER = RecordType(1, "UNREGISTER_BROKER_RECORD", Body(_BROKER))
TOPIC = RecordType(2, "TOPIC_RECORD", Body((Field("name", STRING), _TOPIC_ID)))
PARTITION = RecordType(
    3,
    "PARTITION_RECORD",
    Body(
        (
            _PARTITION_ID,
            _TOPIC_ID,
            Field("replicas", INT32, array=True),
            Field("isr", INT32, array=True),
            Field("removingReplicas", INT32, array=True),
            Field("addingReplicas", INT32, array=True),
            Field("leader", INT32),
            Field("leaderRecoveryState", INT8, tag=0, default=0, enum=enums.LEADER_RECOVERY_STATES),
            Field("leaderEpoch", INT32),
            Field("partitionEpoch", INT32),
            Field("directories", UUID, array=True, since=1),
            _tagged_ints("eligibleLeaderReplicas", 1, since=2),
            _tagged_ints("lastKnownElr", 2, since=2),
        ),
        highest=2,
    ),
)
CONFIG = RecordType(
    4,
    "CONFIG_RECORD",
    Body(
        (
            Field("resourceType", INT8, enum=enums.CONFIG_RESOURCE_TYPES),
            Field("resourceName", STRING),
            Field("name", STRING),
            Field("value", STRING, nullable=True),
        )
    ),
)
PARTITION_CHANGE = RecordType(
    5,
    "PARTITION_CHANGE_RECORD",
    Body(
        (
            _PARTITION_ID,
            _TOPIC_ID,
            _tagged_ints("isr", 0),
            Field("leader", INT32, tag=1, default=-2),
            _tagged_ints("replicas", 2),
            _tagged_ints("removingReplicas", 3),
            _tagged_ints("addingReplicas", 4),
            Field("leaderRecoveryState", INT8, tag=5, default=-1, enum=enums.LEADER_RECOVERY_CHANGES),
            Field("directories", UUID, array=True, since=1, tag=8, nullable=True),
            _tagged_ints("eligibleLeaderReplicas", 6, since=2),
            _tagged_ints("lastKnownElr", 7, since=2),
        ),
        highest=2,
    ),
)
ACCESS_CONTROL = RecordType(
    6,
    "ACCESS_CONTROL_RECORD",
    Body(
        (
            Field("resourceType", INT8, enum=enums.ACL_RESOURCE_TYPES),
            Field("resourceName", STRING, nullable=True),
            Field("patternType", INT8, enum=enums.PATTERN_TYPES),
            Field("principal", STRING),
            Field("host", STRING),
            Field("operation", INT8, enum=enums.ACL_OPERATIONS),
            Field("permissionType", INT8, enum=enums.ACL_PERMISSIONS),
        )
    ),
)
FENCE_BROKER = RecordType(7, "FENCE_BROKER_RECORD", Body(_FENCING))
UNFENCE_BROKER = RecordType(8, "UNFENCE_BROKER_RECORD", Body(_FENCING))
REMOVE_TOPIC = RecordType(9, "REMOVE_TOPIC_RECORD", Body((_TOPIC_ID,)))
_TOKEN_TAIL = (
    Field("renewers", STRING, array=True),
    Field("issueTimestamp", INT64),
    Field("maxTimestamp", INT64),
    Field("expirationTimestamp", INT64),
    Field("tokenId", STRING),
)
DELEGATION_TOKEN = RecordType(
    10,
    "DELEGATION_TOKEN_RECORD",
    Body((Field("owner", STRING), Field("requester", STRING), *_TOKEN_TAIL)),
    dead=(Body((Field("owner", STRING), *_TOKEN_TAIL)),),
)
USER_SCRAM_CREDENTIAL = RecordType(
    11,
    "USER_SCRAM_CREDENTIAL_RECORD",
    Body(
        (
            Field("name", STRING),
            _MECHANISM,
            Field("salt", BYTES, secret=True),
            Field("storedKey", BYTES, secret=True),
            Field("serverKey", BYTES, secret=True),
            Field("iterations", INT32),
        )
    ),
    dead=(
        Body(
            (
                Field("name", STRING),
                _MECHANISM,
                Field("salt", BYTES, secret=True),
                Field("saltedPassword", BYTES, secret=True),
                Field("iterations", INT32),
            )
        ),
        Body(
            (
                Field("name", STRING),
                Field(
                    "credentialInfos",
                    STRUCT,
                    array=True,
                    fields=(
                        _MECHANISM,
                        Field("salt", BYTES, secret=True),
                        Field("saltedPassword", BYTES, secret=True),
                        Field("iterations", INT32),
                    ),
                ),
            )
        ),
    ),
)
FEATURE_LEVEL = RecordType(12, "FEATURE_LEVEL_RECORD", Body((Field("name", STRING), Field("featureLevel", INT16))))
CLIENT_QUOTA = RecordType(
    14,
    "CLIENT_QUOTA_RECORD",
    Body(
        (
            Field(
                "entity",
                STRUCT,
                array=True,
                fields=(Field("entityType", STRING), Field("entityName", STRING, nullable=True)),
            ),
            Field("key", STRING),
            Field("value", FLOAT64),
            Field("remove", BOOL),
        )
    ),
)
PRODUCER_IDS = RecordType(15, "PRODUCER_IDS_RECORD", Body((*_BROKER, Field("nextProducerId", INT64))))
BROKER_REGISTRATION_CHANGE = RecordType(
    17,
    "BROKER_REGISTRATION_CHANGE_RECORD",
    Body(
        (
            *_BROKER,
            Field("fenced", INT8, tag=0, default=0, enum=enums.FENCING_CHANGES),
            Field("inControlledShutdown", INT8, since=1, tag=1, default=0, enum=enums.CONTROLLED_SHUTDOWN_CHANGES),
            Field("logDirs", UUID, array=True, since=2, tag=2, default=()),
            Field("cordonedLogDirs", UUID, array=True, since=3, tag=3, nullable=True),
        ),
        highest=3,
    ),
)
ACCESS_CONTROL_ENTRY = RecordType(
    18,
    "ACCESS_CONTROL_ENTRY_RECORD",
    Body(
        (
            Field("id", UUID),
            Field("resourceType", INT8, enum=enums.ACL_RESOURCE_TYPES),
            Field("resourceName", STRING),
            Field("patternType", INT8, enum=enums.PATTERN_TYPES),
            Field("principal", STRING),
            Field("host", STRING),
            Field("operation", INT8, enum=enums.ACL_OPERATIONS),
            Field("permissionType", INT8, enum=enums.ACL_PERMISSIONS),
        )
    ),
)
REMOVE_ACCESS_CONTROL_ENTRY = RecordType(19, "REMOVE_ACCESS_CONTROL_ENTRY_RECORD", Body((Field("id", UUID),)))
NO_OP = RecordType(20, "NO_OP_RECORD", Body(()))
ZK_MIGRATION_STATE = RecordType(
    21,
    "ZK_MIGRATION_STATE_RECORD",
    Body((Field("zkMigrationState", INT8, enum=enums.ZK_MIGRATION_STATE_BYTES),)),
)
REMOVE_USER_SCRAM_CREDENTIAL = RecordType(
    22, "REMOVE_USER_SCRAM_CREDENTIAL_RECORD", Body((Field("name", STRING), _MECHANISM))
)
BEGIN_TRANSACTION = RecordType(23, "BEGIN_TRANSACTION_RECORD", Body((Field("name", STRING, nullable=True, tag=0),)))
END_TRANSACTION = RecordType(24, "END_TRANSACTION_RECORD", Body(()))
ABORT_TRANSACTION = RecordType(25, "ABORT_TRANSACTION_RECORD", Body((Field("reason", STRING, nullable=True, tag=0),)))
REMOVE_DELEGATION_TOKEN = RecordType(26, "REMOVE_DELEGATION_TOKEN_RECORD", Body((Field("tokenId", STRING),)))
REGISTER_CONTROLLER = RecordType(
    27,
    "REGISTER_CONTROLLER_RECORD",
    Body(
        (
            Field("controllerId", INT32),
            Field("incarnationId", UUID),
            Field("zkMigrationReady", BOOL),
            _END_POINTS,
            _FEATURES,
        )
    ),
)
CLEAR_ELR = RecordType(28, "CLEAR_ELR_RECORD", Body((Field("topicName", STRING),)))
# From metadata.version 4.4-IV2 on: the way to forget a controller that is gone for good (KIP-1312).
UNREGISTER_CONTROLLER = RecordType(29, "UNREGISTER_CONTROLLER_RECORD", Body((Field("controllerId", INT32),)))

# 90 % and more of any large log: their bodies are typed columns of the bronze table, all others' one JSON text.
PARTITION_TYPES = (PARTITION, PARTITION_CHANGE)

RECORD_TYPES: dict[int, RecordType] = {
    record.key: record
    for record in (
        REGISTER_BROKER,
        UNREGISTER_BROKER,
        TOPIC,
        PARTITION,
        CONFIG,
        PARTITION_CHANGE,
        ACCESS_CONTROL,
        FENCE_BROKER,
        UNFENCE_BROKER,
        REMOVE_TOPIC,
        DELEGATION_TOKEN,
        USER_SCRAM_CREDENTIAL,
        FEATURE_LEVEL,
        CLIENT_QUOTA,
        PRODUCER_IDS,
        BROKER_REGISTRATION_CHANGE,
        ACCESS_CONTROL_ENTRY,
        REMOVE_ACCESS_CONTROL_ENTRY,
        NO_OP,
        ZK_MIGRATION_STATE,
        REMOVE_USER_SCRAM_CREDENTIAL,
        BEGIN_TRANSACTION,
        END_TRANSACTION,
        ABORT_TRANSACTION,
        REMOVE_DELEGATION_TOKEN,
        REGISTER_CONTROLLER,
        CLEAR_ELR,
        UNREGISTER_CONTROLLER,
    )
}
