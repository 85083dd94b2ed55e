"""Which part of a cluster one pass of the kernel keeps.

A run examines a cluster whole. The second look at the log, for rows that seem lost, keeps their topics alone
(`transforms.kraft.replayed`).
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Shard:
    """Shard `number` of `of`, from 0. A topic with all that is its own is in one shard, by its name; shard 0 has the rest."""

    number: int = 0
    of: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.number < self.of:
            raise ValueError(f"shard {self.number} of {self.of}: the first is 0")

    def owns(self, topic: str) -> bool:
        """Whether a topic of this name is here: the same in every process and release."""
        return zlib.crc32(utf8(topic)) % self.of == self.number

    @property
    def has_the_rest(self) -> bool:
        """Whether what belongs to no topic is here."""
        return self.number == 0


# A cluster that is not cut.
WHOLE = Shard()


def utf8(text: str) -> bytes:
    """A text from a cluster as bytes; what can't be encoded is replaced."""
    return text.encode("utf-8", "replace")
