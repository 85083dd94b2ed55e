"""Which values are secrets."""

from schemas.configs import PASSWORDS

# Password-type configurations, and what every release has of them. A listener-prefixed key
# (`listener.name.x.ssl.key.password`) ends with one of these (`DynamicBrokerConfig.isPasswordConfig`).
PASSWORD_CONFIGS: tuple[str, ...] = PASSWORDS

# Keys inside a SCRAM credential of a user znode that hold secrets; `iterations` is not one.
SCRAM_SECRETS: tuple[str, ...] = ("salt", "stored_key", "server_key")
