"""What a run leaves of what no table tells: read back it judges the same, and no secret is in it."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.reconcile.kraft_clusters import kraft
from transforms.properties import PropertyFiles, node_properties
from transforms.reconcile.judge.beside import Beside, beside_of, read_beside
from transforms.reconcile.judge.cluster import cluster_of
from transforms.reconcile.judge.kip_tables import configurations_of
from transforms.reconcile.judge.thresholds import JudgeLimits

SECRETS = ("hush-key", "hush-encoder", "hush-jaas")
CONTROLLER = "\n".join(
    [
        "process.roles=controller",
        "node.id=3000",
        "controller.quorum.voters=3000@a:1,3001@b:2",
        "ssl.key.password=hush-key",
    ]
)
BROKER = "\n".join(
    [
        "broker.id=0",
        "inter.broker.protocol.version=3.4",
        "log.message.format.version=2.8",
        "min.insync.replicas=2",
        "errors.deadletterqueue.auto.create.topics.enable=true",
        "password.encoder.secret=hush-encoder",
        "sasl.jaas.config=LoginModule required hush-jaas;",
    ]
)
FILES = PropertyFiles(
    controllers=(node_properties("c", CONTROLLER),),
    brokers=(node_properties("b", BROKER), node_properties("nameless", "log.dirs=/d")),
)


def test_what_is_read_back_judges_as_the_run_did() -> None:
    facts = kraft(
        properties=FILES,
        reading_ms=90_000,
        lag_limit=1.0,
        alive_limit=2.0,
        capture_skew_limit=3.0,
        interruption_accepted=True,
    )
    left = read_beside(beside_of(facts))
    assert left.reading_ms == 90_000
    assert left.thresholds == JudgeLimits(3.0, 2.0, 1.0, restart_may_interrupt=True)
    then = replace(facts, properties=left.properties)
    assert cluster_of(then, (3, 9)) == cluster_of(facts, (3, 9))
    assert cluster_of(then, (3, 9)).configured == {3000, 3001}
    assert configurations_of(FILES) is not None
    assert configurations_of(left.properties) == configurations_of(FILES)
    assert left.properties.static_min_isr() == FILES.static_min_isr() == {0: 2}
    assert left.properties.creates_dead_letter_topics() == FILES.creates_dead_letter_topics() == {0: True}


def test_files_without_voters_are_not_the_same_as_no_files() -> None:
    """In a dynamic quorum they say that there is no `controller.quorum.voters`."""
    named = kraft(properties=PropertyFiles(controllers=(node_properties("c", "node.id=3000"),)))
    assert named.quorum is not None
    assert named.quorum.kraft_version > 0
    for facts, configured in ((named, frozenset()), (kraft(), None)):
        then = replace(facts, properties=read_beside(beside_of(facts)).properties)
        assert cluster_of(then, (4, 3)).configured == cluster_of(facts, (4, 3)).configured == configured


def test_no_secret_and_no_long_text_is_kept() -> None:
    text = beside_of(kraft(properties=FILES))
    assert not [secret for secret in SECRETS if secret in text]
    hostile = f"broker.id=0\ninter.broker.protocol.version=encryptedPassword:{'x' * 5000}\nlog.message.format.version={'9' * 5000}"
    text = beside_of(kraft(properties=PropertyFiles(brokers=(node_properties("b", hostile),))))
    assert "encryptedPassword" not in text
    assert len(text) < 1000


def test_of_a_release_that_left_less_the_defaults_are_taken_and_what_is_new_is_passed_over() -> None:
    assert read_beside("{}") == Beside()
    assert read_beside(json.dumps({"thresholds": {"lag_seconds": 5, "moon": 1}, "moon": 2})).thresholds == JudgeLimits(
        lag_seconds=5
    )
