"""Delegation tokens (their HMAC is stored on neither side)."""

from pyspark.sql.types import ArrayType, LongType, StringType

from schemas.entities.entity import Entity
from schemas.table import column

DELEGATION_TOKENS = Entity(
    name="delegation_tokens",
    comment="Delegation tokens: `/delegation_token/tokens` and DelegationTokenRecord.",
    columns=(
        column("token_id", StringType(), "Token id."),
        column("owner", StringType(), "Principal that owns the token, type:name."),
        column("requester", StringType(), "Principal that asked for it; the owner before version 3 of the znode."),
        column("renewers", ArrayType(StringType()), "Principals that may renew it, sorted."),
        column("issue_timestamp", LongType(), "When it was issued, milliseconds since the epoch."),
        column("max_timestamp", LongType(), "Until when it can be renewed at most, milliseconds since the epoch."),
        column("expiry_timestamp", LongType(), "When it expires, milliseconds since the epoch."),
    ),
    key=("token_id",),
    compared=("owner", "requester", "renewers", "issue_timestamp", "max_timestamp", "expiry_timestamp"),
    unordered=frozenset({"renewers"}),
)
