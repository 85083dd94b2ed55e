"""Names of the configurations that Kafka 4.3 and later keep on replay, by the type of their resource.

`DefaultSupportedConfigChecker` (4.3): a ConfigRecord of a topic, a group or client metrics whose name the release does not
know is skipped, in the controller's state and in what it writes snapshots from. Those of brokers are all kept. The names are
4.3's, the fewest of any release that skips.
"""

from __future__ import annotations

from collections.abc import Mapping

_TOPIC = """
    cleanup.policy compression.gzip.level compression.lz4.level compression.type compression.zstd.level
    delete.retention.ms file.delete.delay.ms flush.messages flush.ms follower.replication.throttled.replicas
    index.interval.bytes internal.segment.bytes leader.replication.throttled.replicas local.retention.bytes
    local.retention.ms max.compaction.lag.ms max.message.bytes message.timestamp.after.max.ms
    message.timestamp.before.max.ms message.timestamp.type min.cleanable.dirty.ratio min.compaction.lag.ms
    min.insync.replicas preallocate remote.log.copy.disable remote.log.delete.on.disable remote.storage.enable
    retention.bytes retention.ms segment.bytes segment.index.bytes segment.jitter.ms segment.ms
    unclean.leader.election.enable
"""
_GROUP = """
    consumer.assignment.interval.ms consumer.heartbeat.interval.ms consumer.session.timeout.ms
    share.assignment.interval.ms share.auto.offset.reset share.delivery.count.limit share.heartbeat.interval.ms
    share.isolation.level share.partition.max.record.locks share.record.lock.duration.ms
    share.renew.acknowledge.enable share.session.timeout.ms streams.assignment.interval.ms
    streams.heartbeat.interval.ms streams.initial.rebalance.delay.ms streams.num.standby.replicas
    streams.session.timeout.ms
"""

# The first release that skips.
FORGETS_CONFIGS = (4, 3)
KEPT_CONFIGS: Mapping[str, frozenset[str]] = {
    "TOPIC": frozenset(_TOPIC.split()),
    "GROUP": frozenset(_GROUP.split()),
    "CLIENT_METRICS": frozenset(("interval.ms", "match", "metrics")),
}
