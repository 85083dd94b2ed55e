"""Dry runs of feature updates: each rule of S§9.3 for both kinds of controller, and what real controllers answered."""

from __future__ import annotations

import gzip
from dataclasses import replace
from typing import Any

import pytest

from tests.captures import capture, stages
from tests.features.clusters import cluster
from transforms.features.levels import latest_of
from transforms.features.matrix import BROKER, CONTROLLER, Node
from transforms.features.update import ELR, Cluster, FeatureVerdict, RequestKind, Update, dry_run

UP, SAFE, UNSAFE = RequestKind.UPGRADE, RequestKind.SAFE_DOWNGRADE, RequestKind.UNSAFE_DOWNGRADE
MV = "metadata.version"
RANGES = {MV: (1, 21), "kraft.version": (0, 1)}
KRAFT = Cluster(
    release=(3, 9),
    finalised={MV: 19},
    nodes=(
        *(Node(BROKER, number, RANGES) for number in (0, 1, 2)),
        *(Node(CONTROLLER, number, RANGES) for number in (3000, 3001)),
    ),
    voters=frozenset({3000, 3001}),
    local=3000,
)
NEWER = replace(
    KRAFT,
    release=(4, 3),
    finalised={MV: 30, ELR: 1, "group.version": 1},
    nodes=tuple(
        replace(node, ranges={MV: (7, 30), ELR: (0, 1), "group.version": (0, 1), "kraft.version": (0, 1)})
        for node in KRAFT.nodes
    ),
)


def with_node(base: Cluster, *nodes: Node) -> Cluster:
    return replace(base, nodes=(*base.nodes, *nodes))


OLD = {MV: (1, 19)}
ELR_NEEDS = (
    "Invalid update version 1 for feature eligible.leader.replicas.version. eligible.leader.replicas.version"
    " could not be set to 1 because it depends on metadata.version level 23"
)

# cluster, update, Kafka's words (empty: accepted), how many nodes are in the way
RULES: dict[str, tuple[Cluster, Update, str, int]] = {
    "upgrade": (KRAFT, Update(MV, 21), "", 0),
    "the same level": (KRAFT, Update(MV, 19), "", 0),
    "below 0": (
        KRAFT,
        Update("x", -1, SAFE),
        "Invalid update version -1 for feature x. A feature version cannot be less than 0.",
        5,
    ),
    "a name that the controller does not know": (
        KRAFT,
        Update("x", 1),
        "Invalid update version 1 for feature x. Local controller 3000 does not support this feature.",
        5,
    ),
    "a level above the controller": (
        KRAFT,
        Update(MV, 22),
        "Invalid update version 22 for feature metadata.version. Local controller 3000 only supports versions 1-21",
        5,
    ),
    "a broker in the way": (
        with_node(KRAFT, Node(BROKER, 3, OLD)),
        Update(MV, 21),
        "Invalid update version 21 for feature metadata.version. Broker 3 only supports versions 1-19",
        1,
    ),
    "a fenced broker in the way": (
        with_node(KRAFT, Node(BROKER, 3, OLD, fenced=True)),
        Update(MV, 21),
        "Invalid update version 21 for feature metadata.version. Broker 3 only supports versions 1-19",
        1,
    ),
    "a broker that says nothing": (
        with_node(KRAFT, Node(BROKER, 3)),
        Update(MV, 21),
        "Invalid update version 21 for feature metadata.version. Broker 3 does not support this feature.",
        1,
    ),
    "all that are in the way": (
        with_node(KRAFT, Node(BROKER, 4, OLD), Node(BROKER, 3, OLD), Node(CONTROLLER, 3002, {MV: (20, 20)})),
        Update(MV, 21),
        "Invalid update version 21 for feature metadata.version. Broker 4 only supports versions 1-19",
        3,
    ),
    "a controller that is no voter": (
        with_node(KRAFT, Node(CONTROLLER, 3003, OLD)),
        Update(MV, 21),
        "Invalid update version 21 for feature metadata.version. Controller 3003 only supports versions 1-19",
        1,
    ),
    "a voter that is not registered": (
        replace(KRAFT, voters=frozenset({3000, 3001, 3002})),
        Update(MV, 21),
        "Invalid update version 21 for feature metadata.version."
        " controller 3002 has not registered, and may not support this feature",
        1,
    ),
    "a downgrade without saying so": (
        KRAFT,
        Update(MV, 18),
        "Invalid update version 18 for feature metadata.version. Can't downgrade the version of this feature without"
        " setting the upgrade type to either safe or unsafe downgrade.",
        0,
    ),
    "an upgrade as a downgrade": (
        KRAFT,
        Update(MV, 21, SAFE),
        "Invalid update version 21 for feature metadata.version. Can't downgrade to a newer version.",
        0,
    ),
    "a downgrade that loses nothing": (KRAFT, Update(MV, 17, SAFE), "", 0),
    "an unsafe downgrade that loses nothing": (KRAFT, Update(MV, 17, UNSAFE), "", 0),
    "a downgrade that loses metadata": (
        KRAFT,
        Update(MV, 16, SAFE),
        "Invalid metadata.version 16. Refusing to perform the requested downgrade because it might delete metadata"
        " information.",
        0,
    ),
    "an unsafe one": (
        KRAFT,
        Update(MV, 16, UNSAFE),
        "Invalid metadata.version 16. Unsafe metadata downgrade is not supported in this version.",
        0,
    ),
    "below the first that has a record": (
        KRAFT,
        Update(MV, 3, SAFE),
        "Invalid metadata.version 3. Unable to set a metadata.version less than 3.3-IV0",
        0,
    ),
    "below the first of 4.x": (
        NEWER,
        Update(MV, 6, SAFE),
        "Invalid update version 6 for feature metadata.version. Local controller 3000 only supports versions 7-30",
        5,
    ),
    "while waiting for the brokers": (
        replace(KRAFT, migration_state="PRE_MIGRATION"),
        Update(MV, 21),
        "Invalid metadata.version 21. Unable to modify metadata.version while a ZK migration is in progress.",
        0,
    ),
    "while migrating": (
        replace(KRAFT, migration_state="MIGRATION"),
        Update(MV, 21),
        "Invalid metadata.version 21. Unable to modify metadata.version while a ZK migration is in progress.",
        0,
    ),
    "after migrating": (replace(KRAFT, migration_state="POST_MIGRATION"), Update(MV, 21), "", 0),
    "another feature while migrating": (
        replace(KRAFT, finalised={MV: 21}, migration_state="MIGRATION"),
        Update("kraft.version", 1),
        "",
        0,
    ),
    "a feature that depends on a level": (
        replace(NEWER, finalised={MV: 22}),
        Update(ELR, 1),
        ELR_NEEDS,
        0,
    ),
    "a feature below the first level of 4.x": (
        replace(NEWER, finalised={MV: 4}),
        Update("group.version", 1),
        "Invalid update version 1 for feature group.version. group.version could not be set to 1 because it depends on"
        " metadata.version=7 (3.3-IV3)",
        0,
    ),
    "a name that 4.x does not know, at level 0": (
        NEWER,
        Update("x", 0, SAFE),
        "Invalid update version 0 for feature x. Feature x not found.",
        0,
    ),
    "the same in 3.9": (KRAFT, Update("x", 0, SAFE), "", 0),
    "a name that came with a later release": (
        replace(NEWER, release=(4, 0)),
        Update("streams.version", 0, SAFE),
        "Invalid update version 0 for feature streams.version. Feature streams.version not found.",
        0,
    ),
    "a dynamic quorum's voter that is not registered": (
        replace(NEWER, finalised={**NEWER.finalised, "kraft.version": 1}, voters=frozenset({3000, 3001, 3002})),
        Update("group.version", 1),
        "",
        0,
    ),
    "kraft.version below the level that 4.0 asks for": (
        replace(NEWER, release=(4, 0), finalised={MV: 20}),
        Update("kraft.version", 1),
        "Invalid update version 1 for feature kraft.version. kraft.version could not be set to 1 because it depends on"
        " metadata.version level 21",
        0,
    ),
    "3.9 asks for no level": (replace(KRAFT, finalised={MV: 20}), Update("kraft.version", 1), "", 0),
    "3.9 takes kraft.version back": (
        replace(KRAFT, finalised={MV: 21, "kraft.version": 1}),
        Update("kraft.version", 0, SAFE),
        "",
        0,
    ),
    "a feature taken back": (NEWER, Update("group.version", 0, SAFE), "", 0),
    "the quorum's version taken back": (
        replace(NEWER, finalised={MV: 30, "kraft.version": 1}),
        Update("kraft.version", 0, SAFE),
        "Invalid update version 0 for feature kraft.version. Can't downgrade the version of this feature.",
        0,
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_kraft_controllers_answer_so(rule: str) -> None:
    asked, update, words, blocking = RULES[rule]
    run = dry_run([update], asked)
    [answer] = run.answers
    prefix = "The update failed for all features since the following feature had an error: "
    assert answer.message == (f"{prefix}{words}" if words and asked.release >= (4, 0) else words)
    assert answer.verdict is (FeatureVerdict.NO if words else FeatureVerdict.YES)
    assert answer.error == ("INVALID_UPDATE_VERSION" if words else "NONE")
    assert len(answer.blocking) == blocking
    assert run.exit_code == (1 if words else 0)


def test_the_tool_says_it_so() -> None:
    accepted = dry_run([Update(MV, 21)], KRAFT)
    assert accepted.lines == ("metadata.version can be upgraded to 21.",)
    refused = dry_run([Update(MV, 16, SAFE), Update("kraft.version", 0, SAFE)], KRAFT)
    assert refused.lines == (
        "kraft.version can be downgraded to 0.",
        "Can not downgrade metadata.version to 16. Invalid metadata.version 16. Refusing to perform the requested"
        " downgrade because it might delete metadata information.",
        "1 out of 2 operation(s) failed.",
    )
    disabled = dry_run([Update("group.version", 0, SAFE)], NEWER)
    assert disabled.lines == ("group.version can be disabled.",)
    assert disabled.answers[0].loses


@pytest.mark.parametrize(
    ("update", "lost"),
    [
        (Update("share.version", 1, SAFE), ["share groups no longer write to dead letter queues"]),
        (
            Update("share.version", 0, SAFE),
            ["share groups can't be served", "share groups no longer write to dead letter queues"],
        ),
        (Update("transaction.version", 1, SAFE), ["transactions are no longer ended with an epoch of their own"]),
        (Update("share.version", 2, SAFE), []),
    ],
)
def test_what_lowering_a_feature_loses_goes_by_its_levels(update: Update, lost: list[str]) -> None:
    """A real 4.4.0 with a share group in use: at share.version 1 it went on to be served, at 0 its member ended."""
    ranges = {MV: (7, 33), "share.version": (0, 2), "transaction.version": (0, 2)}
    finalised = {MV: 33, "share.version": 2, "transaction.version": 2}
    nodes = tuple(replace(node, ranges=ranges) for node in KRAFT.nodes)
    [answer] = dry_run([update], replace(KRAFT, release=(4, 4), finalised=finalised, nodes=nodes)).answers
    assert answer.verdict is FeatureVerdict.YES
    assert list(answer.loses) == lost


def test_lowering_transactions_from_1_loses_nothing() -> None:
    """`TransactionVersion.supportsEpochBump` is level 2; level 1 changes the format of new records alone."""
    lowered = replace(NEWER, finalised={**NEWER.finalised, "transaction.version": 1})
    assert dry_run([Update("transaction.version", 0, SAFE)], lowered).answers[0].loses == ()


def test_from_4_0_on_one_error_is_the_error_of_all() -> None:
    both = [Update("group.version", 0, SAFE), Update(MV, 26, SAFE)]
    run = dry_run(both, NEWER)
    assert [answer.verdict for answer in run.answers] == [FeatureVerdict.NO, FeatureVerdict.NO]
    assert run.lines[-1] == "2 out of 2 operation(s) failed."


def test_an_update_depends_on_what_the_same_request_sets() -> None:
    early = replace(NEWER, finalised={MV: 22})
    assert dry_run([Update(MV, 23), Update(ELR, 1)], early).exit_code == 0


@pytest.mark.parametrize("release", [(3, 7), (3, 9)])
def test_below_the_level_at_which_controllers_register_kafka_does_not_ask_them(release: tuple[int, int]) -> None:
    early = replace(KRAFT, release=release, finalised={MV: 14}, nodes=tuple(n for n in KRAFT.nodes if n.kind == BROKER))
    target = latest_of(release)
    assert target is not None
    run = dry_run(
        [Update(MV, target)], replace(early, nodes=tuple(replace(n, ranges={MV: (1, 30)}) for n in early.nodes))
    )
    assert (run.answers[0].verdict, run.exit_code) == (FeatureVerdict.YES, 0)
    assert "Kafka accepts it without asking them" in run.answers[0].notes[0]
    # A node that is in the way, and a release that has no such level, are known all the same, the controller first.
    assert dry_run([Update(MV, target)], with_node(early, Node(BROKER, 3, OLD))).exit_code == (release != (3, 7))
    [answer] = dry_run([Update(MV, 22)], with_node(early, Node(BROKER, 3, OLD))).answers
    assert "Local controller 3000 only supports versions" in answer.message
    # Its own range is that of its release, of every feature.
    [answer] = dry_run([Update("group.version", 1)], early).answers
    assert answer.message.endswith("Local controller 3000 does not support this feature.")


def test_what_kafka_asks_over_the_network_is_unknown() -> None:
    """Before 3.7 controllers ask each other by ApiVersions; nothing that they answered is in the log."""
    early = replace(KRAFT, release=(3, 6), finalised={MV: 11}, nodes=tuple(n for n in KRAFT.nodes if n.kind == BROKER))
    run = dry_run([Update(MV, 14)], early)
    assert (run.answers[0].verdict, run.exit_code) == (FeatureVerdict.UNKNOWN, None)
    assert dry_run([Update(MV, 14)], replace(early, voters=frozenset({3000}))).exit_code == 0, "nobody else is asked"
    assert dry_run([Update(MV, 21)], early).exit_code == 1
    assert dry_run([Update(MV, 21)], replace(KRAFT, voters=None)).answers[0].verdict is FeatureVerdict.UNKNOWN


@pytest.mark.parametrize("release", [(3, 3), (3, 4), (3, 5), (3, 6)])
def test_words_of_the_releases_before_3_7(release: tuple[int, int]) -> None:
    highest = latest_of(release)
    assert highest is not None
    ranges = {MV: (1, highest)}
    alone = Cluster(release, {MV: 7}, (Node(BROKER, 0, ranges),), frozenset({3000}), 3000)
    [answer] = dry_run([Update(MV, highest)], with_node(alone, Node(BROKER, 3, {MV: (1, 6)}))).answers
    assert answer.message == (
        f"Invalid update version {highest} for feature metadata.version."
        " Broker 3 does not support the given version. It supports 1 to 6."
    )
    [answer] = dry_run([Update(MV, 4, SAFE)], alone).answers
    assert answer.message == (
        "Invalid metadata.version 4. Refusing to perform the requested downgrade because it might delete metadata"
        " information. Retry using UNSAFE_DOWNGRADE if you want to force the downgrade to proceed."
    )


@pytest.mark.parametrize(("release", "refuses"), [((3, 4), False), ((3, 5), True)])
def test_3_4_lets_the_level_be_changed_while_migrating(release: tuple[int, int], refuses: bool) -> None:
    alone = Cluster(release, {MV: 7}, (Node(BROKER, 0, {MV: (1, 8)}),), frozenset({3000}), 3000, "MIGRATION")
    [answer] = dry_run([Update(MV, 8)], alone).answers
    assert ("ZK migration is in progress" in answer.message) is refuses


@pytest.mark.parametrize(("release", "new"), [((4, 0), False), ((4, 1), False), ((4, 2), True), ((4, 4), True)])
def test_a_downgrade_is_called_unsupported_from_4_2_on(release: tuple[int, int], new: bool) -> None:
    nodes = tuple(replace(node, ranges={MV: (7, 33)}) for node in NEWER.nodes)
    [answer] = dry_run([Update(MV, 22, SAFE)], replace(NEWER, release=release, finalised={MV: 25}, nodes=nodes)).answers
    words = "Unsupported metadata.version downgrade from 25 to 22." if new else "Invalid metadata.version 22."
    assert f"error: {words} Refusing to perform" in answer.message


DYNAMIC = replace(NEWER, finalised={MV: 30})


@pytest.mark.parametrize(
    ("known", "missing", "verdict"),
    [
        ({3000, 3001}, None, FeatureVerdict.YES),
        ({3000}, "the directory id of controller 3001 is unknown", FeatureVerdict.UNKNOWN),
        (set(), "the directory id of controller 3000 is unknown", FeatureVerdict.UNKNOWN),
    ],
)
def test_a_dynamic_quorum_needs_every_voters_directory_id(
    known: set[int], missing: str | None, verdict: FeatureVerdict
) -> None:
    [answer] = dry_run([Update("kraft.version", 1)], replace(DYNAMIC, directory_ids=frozenset(known))).answers
    assert answer.verdict is verdict
    assert missing is None or missing in answer.message


def test_from_4_1_on_kraft_version_depends_on_no_level() -> None:
    """`KRaftVersion.dependencies` is empty."""
    low = replace(DYNAMIC, release=(4, 1), finalised={MV: 20}, directory_ids=frozenset({3000, 3001}))
    assert dry_run([Update("kraft.version", 1)], low).answers[0].verdict is FeatureVerdict.YES
    assert dry_run([Update("kraft.version", 1)], replace(low, voters=None)).answers[0].verdict is FeatureVerdict.UNKNOWN
    # A voter that is registered and says nothing of it is refused; one below the level of registrations is not known.
    # A combined node's broker says nothing of its controller.
    combined = Node(BROKER, 3000, {"kraft.version": (0, 1)})
    early = replace(low, finalised={MV: 14}, nodes=(*(n for n in low.nodes if n.kind == BROKER), combined))
    message = dry_run([Update("kraft.version", 1)], early).answers[0].message
    assert all(f"controller {node} is not known to support kraft.version 1" in message for node in (3000, 3001))


def test_two_bad_features_are_named_in_the_order_of_javas_hash_map() -> None:
    bad = [Update("metadata.version", 31), Update("group.version", 2)]
    for updates in (bad, bad[::-1]):
        for answer in dry_run(updates, NEWER).answers:
            assert (
                "following feature had an error: Invalid update version 2 for feature group.version" in answer.message
            )


def test_one_request_upgrades_downgrades_and_deletes() -> None:
    request = [Update("share.version", 1), Update(MV, 30), Update(ELR, 0, SAFE), Update("group.version", 0, SAFE)]
    nodes = tuple(replace(node, ranges={**node.ranges, "share.version": (0, 1)}) for node in NEWER.nodes)
    assert dry_run(request, replace(NEWER, nodes=nodes)).lines == (
        f"{ELR} can be disabled.",
        "group.version can be disabled.",
        "metadata.version can be upgraded to 30.",
        "share.version can be upgraded to 1.",
    )


def test_what_one_feature_leaves_open_is_open_for_all() -> None:
    run = dry_run([Update("kraft.version", 1), Update("group.version", 0, SAFE)], DYNAMIC)
    assert [answer.verdict for answer in run.answers] == [FeatureVerdict.UNKNOWN, FeatureVerdict.UNKNOWN]
    own, other = (answer.message for answer in run.answers)
    assert other == f"all fail with kraft.version, of which this is unknown: {own}"


ZK_NODES = tuple(Node(BROKER, number, {"x": (1, 4)}) for number in (0, 1, 2))
ZK_NEW = Cluster((3, 5), {"x": 2}, ZK_NODES, local=0, zookeeper=True)
ZK_OLD = replace(ZK_NEW, release=(2, 7), min_levels={"x": 2})

ZK_RULES: dict[str, tuple[Update, dict[str, Any], str, str]] = {
    "upgrade": (Update("x", 3), {}, "", ""),
    "downgrade": (Update("x", 2, SAFE), {"finalised": {"x": 3}}, "", ""),
    "deletion, and no broker is asked": (Update("x", 0, SAFE), {"nodes": (Node(BROKER, 9),)}, "", ""),
    "no name": (Update("", 1), {}, "name can not be empty", "name can not be empty"),
    "deletion of nothing": (Update("y", 0, SAFE), {}, "delete non-existing", "delete non-existing"),
    "below 1 without saying so": (Update("x", 0), {}, "versionLevel: 0 less than 1", "maxVersionLevel: 0 less than 1"),
    "the same level": (
        Update("x", 2),
        {},
        "existing versionLevel:2 to the same",
        "existing maxVersionLevel:2 to the same",
    ),
    "a downgrade without saying so": (
        Update("x", 1),
        {},
        "without setting the downgradeType to SAFE",
        "without setting the allowDowngrade flag",
    ),
    "an upgrade as a downgrade": (Update("x", 3, SAFE), {}, "can not be greater than", "can not be greater than"),
    "below the cluster's minimum": (Update("x", 1, SAFE), {}, "", "existing minVersionLevel:2"),
    "not supported": (Update("y", 1), {}, "feature is not supported", "feature is not supported"),
    "below the controller's range": (
        Update("x", 1, SAFE),
        {"nodes": tuple(replace(node, ranges={"x": (2, 4)}) for node in ZK_NODES), "min_levels": {}},
        "lower than the supported minVersion:2",
        "lower than the supported minVersion:2",
    ),
    "a broker in the way": (
        Update("x", 3),
        {"nodes": (*ZK_NODES, Node(BROKER, 3, {"x": (1, 2)}))},
        "incompatible versions",
        "incompatible versions",
    ),
    "a broker that says nothing": (
        Update("x", 3),
        {"nodes": (*ZK_NODES, Node(BROKER, 3))},
        "incompatible versions",
        "incompatible versions",
    ),
    "above the controller's range": (
        Update("x", 5),
        {},
        "lower than the supported minVersion:1",
        "incompatible versions",
    ),
    "disabled": (Update("x", 3), {"versioning": False}, "versioning system is disabled", "system is disabled"),
}


@pytest.mark.parametrize("rule", ZK_RULES)
def test_zookeeper_controllers_answer_so(rule: str) -> None:
    update, known, now, before = ZK_RULES[rule]
    bases = [(replace(ZK_NEW, release=release), now) for release in ((3, 3), (3, 5), (3, 9))]
    bases += [(replace(ZK_OLD, release=release), before) for release in ((2, 7), (3, 2))]
    for base, words in bases:
        run = dry_run([update], replace(base, **known))
        [answer] = run.answers
        assert answer.error == ("INVALID_REQUEST" if words else "NONE"), base.release
        assert words in answer.message
        assert run.exit_code == (1 if words else 0)


def test_every_broker_in_the_way_of_a_zookeeper_controller_is_named() -> None:
    nodes = (*ZK_NODES, Node(BROKER, 3), Node(BROKER, 4, {"x": (1, 2)}))
    [answer] = dry_run([Update("x", 3)], replace(ZK_NEW, nodes=nodes)).answers
    assert answer.blocking == ("broker 3 does not support it", "broker 4 supports 1 to 2")


RELEASE = "4.3.1-kraft"


def said(stage: str, update: Update) -> str:
    return dry_run([update], cluster(RELEASE, stage)).answers[0].message


def test_the_answers_are_those_of_the_real_controllers() -> None:
    """In their own words, of the captures' operations.jsonl."""
    failed = "The update failed for all features since the following feature had an error: "
    assert said("upgrade-2-blocked-by-ghost", Update(MV, 30)) == (
        f"{failed}Invalid update version 30 for feature metadata.version. Controller 3003 only supports versions 1-21"
    )
    assert said("upgrade-2-blocked-by-ghost", Update(ELR, 1)).startswith(
        f"{failed}Invalid update version 1 for feature {ELR}. Controller 3003 does not support this feature."
    )
    assert said("upgrade-1-before", Update(ELR, 1)) == failed + ELR_NEEDS
    assert said("upgrade-4-used-and-downgraded", Update(MV, 26, SAFE)) == (
        f"{failed}Unsupported metadata.version downgrade from 30 to 26."
        " Refusing to perform the requested downgrade because it might delete metadata information."
    )
    assert said("upgrade-4-used-and-downgraded", Update(MV, 25, UNSAFE)) == (
        f"{failed}Unsupported metadata.version downgrade from 30 to 25."
        " Unsafe metadata downgrade is not supported in this version."
    )
    for name in ("transaction.version", "group.version"):
        assert said("upgrade-3-done", Update(name, 1 if name == "group.version" else 2)) == ""
    for name in ("share.version", "streams.version", ELR):
        assert said("upgrade-3-done", Update(name, 0, SAFE)) == ""


def test_the_answers_of_4_4_are_those_of_the_real_controllers() -> None:
    def of(stage: str, update: Update) -> str:
        return dry_run([update], cluster("4.4.0-kraft", stage)).answers[0].message

    failed = "The update failed for all features since the following feature had an error: "
    wanted = {
        ("upgrade-2-blocked-by-ghost", Update(MV, 33)): (
            "Invalid update version 33 for feature metadata.version. Controller 3003 only supports versions 1-21"
        ),
        ("upgrade-4-used-and-downgraded", Update(MV, 26, SAFE)): (
            "Unsupported metadata.version downgrade from 33 to 26. Refusing to perform the requested downgrade because it"
            " might delete metadata information."
        ),
        ("upgrade-4-used-and-downgraded", Update(MV, 25, UNSAFE)): (
            "Unsupported metadata.version downgrade from 33 to 25. Unsafe metadata downgrade is not supported in this"
            " version."
        ),
    }
    for (stage, update), words in wanted.items():
        assert of(stage, update) == failed + words
        told = gzip.decompress((capture("4.4.0-kraft", stage) / "operations.jsonl.gz").read_bytes()).decode()
        assert failed + words in told, "word for word what Kafka answered"
    for update in (Update(MV, 33), Update("share.version", 2), Update("share.version", 0, SAFE)):
        assert of("upgrade-3-done", update) == ""
    assert "Local controller" in of("upgrade-3-done", Update(MV, 34))


def test_the_ghost_is_the_only_node_in_the_way() -> None:
    [answer] = dry_run([Update(MV, 30)], cluster(RELEASE, "upgrade-2-blocked-by-ghost")).answers
    assert answer.blocking == ("Controller 3003 only supports versions 1-21",)
    [done] = dry_run([Update(MV, 30)], cluster(RELEASE, "upgrade-1-before")).answers
    assert done.verdict is FeatureVerdict.YES


@pytest.mark.parametrize("stage", [name for name in stages("3.9.1") if name.split("-")[0] in ("5", "12")])
def test_metadata_version_stays_while_a_real_cluster_migrates(stage: str) -> None:
    known = cluster("3.9.1", stage)
    [answer] = dry_run([Update(MV, 21)], replace(known, voters=frozenset({3000, 3001, 3002}))).answers
    assert ("ZK migration is in progress" in answer.message) is stage.startswith("5")
