"""The time of a run's capture: silence is measured up to it, not up to the log's own end."""

from __future__ import annotations

from datetime import datetime

from jobs.run.run import ClusterRun


def captured_at(cluster: ClusterRun) -> int | None:
    """When ZooKeeper was read, milliseconds since the epoch; None if the data itself must show it.

    A live walk reads `/migration` first, so its begin counts. Files do not show when they were copied, because copying changes
    their times: the newest time in the content of either side counts, unless the configuration gives one (`as_of`).
    """
    given = cluster.settings.as_of
    if isinstance(given, datetime):
        return round(given.timestamp() * 1000)
    return None if given == "data" else cluster.walked_at_ms


def reading_ms(cluster: ClusterRun) -> int:
    """How long after `/migration` the log's end was looked up, in milliseconds: records that were appended meanwhile are not lag."""
    walked, seen = cluster.walked_at_ms, cluster.log_seen_at_ms
    if cluster.settings.as_of is not None or walked is None or seen is None:
        return 0
    return max(0, seen - walked)
