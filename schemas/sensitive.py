"""Which values are secrets."""

# Password-type configurations (`DynamicBrokerConfig.DynamicPasswordConfigs` and the key material beside them).
# A listener-prefixed key (`listener.name.x.ssl.key.password`) ends with one of these.
PASSWORD_CONFIGS: tuple[str, ...] = (
    "sasl.jaas.config",
    "ssl.key.password",
    "ssl.keystore.password",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.truststore.password",
    "ssl.truststore.certificates",
    "sasl.oauthbearer.client.credentials.client.secret",
)
# Names nobody declared but that only ever hold secrets: custom plugins' settings.
SECRET_WORDS: tuple[str, ...] = ("password", "secret", "credential", "private.key", "api.key", "access.key", "token")

# Keys inside a SCRAM credential of a user znode that hold secrets; `iterations` is not one.
SCRAM_SECRETS: tuple[str, ...] = ("salt", "stored_key", "server_key")
