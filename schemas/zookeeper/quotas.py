"""Quota keys of `DynamicConfig` and the numbers they take (S§5.3)."""

# Keys by level: a whole number (LONG or INT in Kafka) or any number (DOUBLE).
_CLIENT_QUOTAS: dict[str, bool] = {
    "producer_byte_rate": True,
    "consumer_byte_rate": True,
    "request_percentage": False,
    "controller_mutation_rate": False,
}
QUOTA_KEYS: dict[str, dict[str, bool]] = {
    "user": _CLIENT_QUOTAS,
    "client-id": _CLIENT_QUOTAS,
    "ip": {"connection_creation_rate": True},
}
SCRAM_MECHANISMS: tuple[str, ...] = ("SCRAM-SHA-256", "SCRAM-SHA-512")
