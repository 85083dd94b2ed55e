"""The metrics of a run: gauges for each cluster, as OpenMetrics text.

Every family is a gauge without a unit line, so the text is valid for node_exporter's textfile collector as well, which reads
the older Prometheus format. Ages are left to the reader's clock: a file that is no longer written must not look fresh.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from transforms.reconcile.judge.requested_gate import GO, NO_GO, NOT_APPLICABLE, UNKNOWN
from transforms.report.fleet_model import FleetRun, gates_in_order
from transforms.runs import CLEAN, ERRORS, WARNINGS

CLUSTER_LABEL = "cluster"
VERDICTS = (CLEAN, WARNINGS, ERRORS)
GATE_VERDICTS = (GO, NO_GO, UNKNOWN, NOT_APPLICABLE)

LAST_GOOD_RUN = "kraft_audit_last_good_run_timestamp_seconds"
RUN_FAILED = "kraft_audit_run_failed"
# Of the newest run, failed or not.
_OF_ANY_RUN = {
    RUN_FAILED: "1 when the newest run of the cluster failed, else 0.",
    "kraft_audit_last_run_timestamp_seconds": "End of the newest run, failed or not, in seconds since the epoch.",
    "kraft_audit_run_seconds": "How long the newest run took, in seconds.",
}
# From the newest finished run: a failed run leaves them unchanged.
_OF_GOOD_RUN = {
    LAST_GOOD_RUN: "End of the newest finished run, in seconds since the epoch.",
    "kraft_audit_verdict": "1 for the verdict of the last good run, 0 for the others.",
    "kraft_audit_gate": "1 for the verdict of the gate in the last good run, 0 for the others.",
    "kraft_audit_phase": "1 for the phase in which the last good run found the cluster.",
    "kraft_audit_defects": "Number of differences that are defects; absent if the last good run compared nothing.",
    "kraft_audit_defects_new": "Of the defects, how many the run before did not have; absent if the last good run compared nothing.",
    "kraft_audit_divergences": "Number of all differences; absent if the last good run compared nothing.",
    "kraft_audit_lag_records": "Records of the log that ZooKeeper did not have yet; absent where lag does not apply or is unknown.",
    "kraft_audit_lag_seconds": "How far ZooKeeper was behind the log, in seconds; absent where lag does not apply or is unknown.",
}
FAMILIES: Mapping[str, str] = _OF_ANY_RUN | _OF_GOOD_RUN


class MetricSample(NamedTuple):
    """One value of one family; `labels` are pairs of name and value, in the order of the names."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: float

    @property
    def cluster(self) -> str:
        """The cluster that it is of; empty without that label."""
        return dict(self.labels).get(CLUSTER_LABEL, "")


def samples_of(newest: FleetRun, judged: FleetRun | None) -> list[MetricSample]:
    """The metrics of a cluster, from its `newest` run and its newest finished run (None if none is known)."""
    name = newest.cluster
    took = max(0.0, (newest.finished_at - newest.started_at).total_seconds())
    found = [
        _sample(RUN_FAILED, newest.failed, cluster=name),
        _sample("kraft_audit_last_run_timestamp_seconds", newest.finished_at.timestamp(), cluster=name),
        _sample("kraft_audit_run_seconds", took, cluster=name),
    ]
    return found if judged is None else [*found, *_good(judged)]


def _good(run: FleetRun) -> Iterator[MetricSample]:
    name = run.cluster
    yield _sample(LAST_GOOD_RUN, run.finished_at.timestamp(), cluster=name)
    for verdict in VERDICTS:
        yield _sample("kraft_audit_verdict", run.verdict == verdict, cluster=name, verdict=verdict)
    for gate in gates_in_order(run.gates):
        for verdict in GATE_VERDICTS:
            yield _sample("kraft_audit_gate", run.gates[gate] == verdict, cluster=name, gate=gate, verdict=verdict)
    if run.phase:
        yield _sample("kraft_audit_phase", 1, cluster=name, phase=run.phase)
    if run.defects is not None:
        yield _sample("kraft_audit_defects", run.defects, cluster=name)
        yield _sample("kraft_audit_defects_new", run.statuses.get("new", 0), cluster=name)
    if run.divergences is not None:
        yield _sample("kraft_audit_divergences", run.divergences, cluster=name)
    if run.lag_records is not None:
        yield _sample("kraft_audit_lag_records", run.lag_records, cluster=name)
    if run.lag_seconds is not None:
        yield _sample("kraft_audit_lag_seconds", run.lag_seconds, cluster=name)


def _sample(family: str, value: float, **labels: str) -> MetricSample:
    return MetricSample(family, tuple(sorted(labels.items())), float(value))


def knows_good_run(samples: Iterable[MetricSample]) -> bool:
    """True if a cluster's metrics include a good run: then they replace all earlier ones."""
    return any(sample.name == LAST_GOOD_RUN for sample in samples)


def merged(
    earlier: Sequence[MetricSample], now: Mapping[str, Sequence[MetricSample]], retired: Collection[str] = ()
) -> list[MetricSample]:
    """The `earlier` metrics, with the clusters of this run (`now`, by name) replaced.

    Other clusters stay, except `retired` ones. If no good run of a cluster is known now, the values of its last good run stay.
    """

    def stays(sample: MetricSample) -> bool:
        mine = now.get(sample.cluster)
        if mine is None:
            return sample.cluster not in retired
        return sample.name in _OF_GOOD_RUN and not knows_good_run(mine)

    return [*filter(stays, earlier), *(sample for samples in now.values() for sample in samples)]


class SampleCollector(Collector):
    """Samples as a collector of prometheus-client, in the order of FAMILIES, then cluster by cluster."""

    def __init__(self, samples: Iterable[MetricSample]) -> None:
        self._samples = sorted(samples, key=lambda sample: (sample.cluster, sample.labels))

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The families that have a sample."""
        for name, documentation in FAMILIES.items():
            family = GaugeMetricFamily(name, documentation)
            for sample in self._samples:
                if sample.name == name:
                    family.add_sample(name, dict(sample.labels), sample.value)
            if family.samples:
                yield family


def registry_of(samples: Iterable[MetricSample]) -> CollectorRegistry:
    """A registry of prometheus-client that holds these samples and nothing else."""
    registry = CollectorRegistry()
    registry.register(SampleCollector(samples))
    return registry


def text_of(samples: Iterable[MetricSample]) -> str:
    """The samples as OpenMetrics text."""
    text: bytes = generate_latest(registry_of(samples))  # type: ignore[no-untyped-call]
    return text.decode("utf-8")


def read_text(text: str) -> list[MetricSample]:
    """Read what `text_of` wrote; families of other programs are left out. Raises ValueError if it is not OpenMetrics."""
    return [
        MetricSample(each.name, tuple(sorted(each.labels.items())), float(each.value))
        for family in text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
        for each in family.samples
        if each.name in FAMILIES
    ]
