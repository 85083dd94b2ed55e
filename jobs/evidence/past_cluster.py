"""The state of a finished run's cluster: its registrations, finalised features and quorum."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.evidence.past_facts import PastFacts, past_facts
from jobs.evidence.past_run import PastRun
from jobs.exit import UsageError
from transforms.examination.answers import FIRST, SECOND
from transforms.features.levels import Release, release_tuple
from transforms.features.update import Cluster
from transforms.reconcile.judge.cluster import ClusterViews, views_of
from transforms.reconcile.judge.given import Rows
from transforms.reconcile.judge.kip_tables import feature_znode_of


@dataclass(frozen=True)
class PastCluster:
    """A finished run's cluster in the terms of the audits of ISR, features and downgrades, from the answers that its
    report was made from.

    `answers` are the run's stored answers, by the name of the question.
    """

    past: PastRun
    facts: PastFacts
    answers: Rows
    views: ClusterViews

    @property
    def active(self) -> Cluster:
        """The cluster as the active controller has it. Raises UsageError if that side was not read, or its release is unknown."""
        found = self.views.active
        if found is not None:
            return found
        if self.views.by_zookeeper and self.views.facts.zookeeper is not None:
            raise UsageError(f"run {self.past.run_id} does not know the cluster's release: give --kafka-version")
        side = "ZooKeeper" if self.views.by_zookeeper else "the metadata log"
        raise UsageError(f"run {self.past.run_id} did not read {side}, which has the features in this phase")


def past_cluster(past: PastRun, release: Release | None = None) -> PastCluster:
    """Gather a run's facts; `release` overrides the configured or inferred release.

    Raises UsageError if the run's results were removed.
    """
    if release is None and past.report.kafka_version != "unknown":
        release = release_tuple(past.report.kafka_version)
    facts = past_facts(past)
    answers = {**facts.answers[FIRST], **facts.answers[SECOND]}
    return PastCluster(past, facts, answers, views_of(facts.gathered, release, feature_znode_of(answers)))
