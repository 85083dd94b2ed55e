"""Names of dynamic configurations by the type of their resource and the first release that knows them.

Those of topics (`LogConfig`, from 3.4 on), groups (`GroupConfig`, all since 4.0) and brokers (`DynamicBrokerConfig`, from 3.8
on); of client metrics no name is newer than the type (`ClientMetricsConfigs`). An older release ignores such a configuration.
Of topics and groups it refuses each later change of the resource (`ControllerConfigurationValidator`: "Unknown topic config
name"), but for 4.3, which skips the record on replay (`schemas.kraft.kept_configs`).
"""

from __future__ import annotations

from collections.abc import Mapping

_NAMES: Mapping[str, Mapping[tuple[int, int], str]] = {
    "TOPIC": {
        (3, 6): "message.timestamp.after.max.ms message.timestamp.before.max.ms",
        (3, 8): "compression.gzip.level compression.lz4.level compression.zstd.level",
        (3, 9): "remote.log.copy.disable remote.log.delete.on.disable",
        (4, 1): "internal.segment.bytes",
        (
            4,
            4,
        ): "errors.deadletterqueue.group.enable max.decompressed.message.bytes remote.copy.lag.bytes remote.copy.lag.ms",
    },
    "GROUP": {
        (4, 1): """
        share.isolation.level streams.heartbeat.interval.ms streams.num.standby.replicas streams.session.timeout.ms
        """,
        (4, 2): "streams.initial.rebalance.delay.ms",
        (4, 3): """
        consumer.assignment.interval.ms share.assignment.interval.ms share.delivery.count.limit
        share.partition.max.record.locks share.renew.acknowledge.enable streams.assignment.interval.ms
        """,
        (4, 4): """
        consumer.assignor.offload.enable errors.deadletterqueue.copy.record.enable errors.deadletterqueue.topic.name
        share.assignor.offload.enable streams.acceptable.recovery.lag streams.assignor.name
        streams.assignor.offload.enable streams.num.warmup.replicas streams.rack.aware.assignment.tags
        streams.task.offset.interval.ms
        """,
    },
    "BROKER": {
        (3, 8): """
        compression.gzip.level compression.lz4.level compression.zstd.level remote.fetch.max.wait.ms
        remote.log.manager.copy.max.bytes.per.second remote.log.manager.fetch.max.bytes.per.second
        """,
        (4, 0): """
        remote.list.offsets.request.timeout.ms remote.log.manager.copier.thread.pool.size
        remote.log.manager.expiration.thread.pool.size remote.log.reader.threads
        """,
        (4, 2): "config.providers remote.log.manager.follower.thread.pool.size",
        (4, 3): """
        cordoned.log.dirs follower.fetch.last.tiered.offset.enable group.consumer.assignment.interval.ms
        group.coordinator.cached.buffer.max.bytes group.share.assignment.interval.ms
        group.streams.assignment.interval.ms share.coordinator.cached.buffer.max.bytes
        """,
        (4, 4): """
        errors.deadletterqueue.auto.create.topics.enable errors.deadletterqueue.topic.name.prefix
        group.consumer.assignor.offload.enable group.share.assignor.offload.enable
        group.streams.assignor.offload.enable log.remote.copy.lag.bytes log.remote.copy.lag.ms
        max.decompressed.message.bytes
        """,
    },
}
NEW_CONFIGS: Mapping[str, Mapping[tuple[int, int], frozenset[str]]] = {
    kind: {release: frozenset(names.split()) for release, names in of_kind.items()} for kind, of_kind in _NAMES.items()
}
