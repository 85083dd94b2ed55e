"""SCRAM credentials, as fingerprints."""

from pyspark.sql.types import IntegerType, StringType

from schemas.entities.entity import Entity
from schemas.table import column

SCRAM_CREDENTIALS = Entity(
    name="scram_credentials",
    comment="SCRAM credentials: `/config/users/<u>` and UserScramCredentialRecord; secrets are fingerprints.",
    columns=(
        column("user", StringType(), "User name."),
        column("mechanism", StringType(), "SCRAM-SHA-256 or SCRAM-SHA-512."),
        column("salt", StringType(), "Fingerprint of the salt."),
        column("stored_key", StringType(), "Fingerprint of the stored key."),
        column("server_key", StringType(), "Fingerprint of the server key."),
        column("iterations", IntegerType(), "Number of iterations of the hash."),
    ),
    key=("user", "mechanism"),
    compared=("salt", "stored_key", "server_key", "iterations"),
    severity="critical",
)
