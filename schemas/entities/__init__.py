"""The entities of cluster metadata. Every mirrored one is compared between ZooKeeper and KRaft."""

from schemas.entities.acls import ACLS
from schemas.entities.brokers import BROKERS
from schemas.entities.client_quotas import CLIENT_QUOTAS
from schemas.entities.configs import CONFIGS
from schemas.entities.controllers import CONTROLLERS
from schemas.entities.delegation_tokens import DELEGATION_TOKENS
from schemas.entities.entity import Entity
from schemas.entities.features import FEATURES
from schemas.entities.migration import MIGRATION
from schemas.entities.partitions import PARTITIONS
from schemas.entities.producer_ids import PRODUCER_IDS
from schemas.entities.scram_credentials import SCRAM_CREDENTIALS
from schemas.entities.topics import TOPICS

ENTITIES: tuple[Entity, ...] = (
    TOPICS,
    PARTITIONS,
    CONFIGS,
    CLIENT_QUOTAS,
    ACLS,
    SCRAM_CREDENTIALS,
    DELEGATION_TOKENS,
    PRODUCER_IDS,
    FEATURES,
    BROKERS,
    CONTROLLERS,
    MIGRATION,
)
MIRRORED: tuple[Entity, ...] = tuple(entity for entity in ENTITIES if entity.mirrored)

__all__ = ["ENTITIES", "MIRRORED", "Entity"]
