"""Delegation tokens (their HMAC is stored on neither side)."""

from pyspark.sql.types import ArrayType, LongType, StringType

from schemas.entities.entity import Entity
from schemas.table import column

DELEGATION_TOKENS = Entity(
    name="delegation_tokens",
    comment="Delegation tokens: `/delegation_token/tokens` and DelegationTokenRecord.",
    columns=(
        column("token_id", StringType(), "Token id."),
        column("owner", StringType(), "Principal."),
        column("requester", StringType(), "Principal; the owner before version 3 of the znode."),
        column("renewers", ArrayType(StringType()), "Principals, sorted."),
        column("issue_timestamp", LongType(), "Milliseconds since the epoch."),
        column("max_timestamp", LongType(), "Milliseconds since the epoch."),
        column("expiry_timestamp", LongType(), "Milliseconds since the epoch."),
    ),
    key=("token_id",),
    compared=("owner", "requester", "renewers", "issue_timestamp", "max_timestamp", "expiry_timestamp"),
    unordered=frozenset({"renewers"}),
)
