"""Codes of what the tables show that is no violation by itself: a check makes one of it with what else it knows."""

from __future__ import annotations

# A broker's registration took the place of one that was not fenced (DUR-12).
BROKER_REPLACED = "BROKER-REPLACED"
# A broker configuration in ZooKeeper that is encrypted there and that the load decodes (START-15).
TO_DECODE = "TO-DECODE"
# Partitions by the broker they miss: the checks of leaders and in-sync replicas tell their counts (START-16, START-21).
OFFLINE_BY_BROKER = "OFFLINE-BY-BROKER"
UNDER_REPLICATED = "UNDER-REPLICATED"
