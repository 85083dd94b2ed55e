"""The fleet as one HTML page: every cluster of a warehouse, worst first, each row leading to the cluster's report.

Made like the cluster's report: one self-contained file, no network, no script, hostile names as text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup

from transforms.report.banner import TONES, VERDICT_LABELS, duration
from transforms.report.compared import NOT_COMPARED, UNKNOWN_LAG, without_lag
from transforms.report.fleet_marks import MOST_RUNS, gate_strip, sparkline
from transforms.report.fleet_model import GROUPS, NOT_READY, Fleet, FleetCluster, FleetRun, gates_in_order
from transforms.report.html import environment
from transforms.report.printable import counted, listed, visible
from transforms.report.since import since_when
from transforms.report.view import Bounded, bounded
from transforms.report.words import GATE_TITLES, VERDICT_WORDS
from transforms.runs import ERRORS, FAILED

MOST_ROWS = 500
_MOST_ACTIONS = 4
# Fewer clean clusters than this are listed unfolded.
_FOLDED_FROM = 25
GROUP_TITLES = {
    "failed": "Could not be audited",
    "errors": "Errors",
    "stale": "No recent audit",
    "warnings": "Warnings",
    "clean": "Clean",
}
GROUP_TONES = {"failed": "bad", "errors": "bad", "stale": "warn", "warnings": "warn", "clean": "good"}
_AUDIT_AGAIN = "Find out why the audits have stopped, and audit it again: this result is out of date."
_MAKE_READABLE = "Make the sources readable: each row shows the error."
_PHASE_NAMES = {
    "zookeeper": "ZooKeeper",
    "waiting": "waiting to start",
    "dual_write": "dual write",
    "finalized": "finalised",
    "rolled_back": "rolled back",
    "kraft": "KRaft",
}


@dataclass(frozen=True)
class GateChip:
    """A gate's verdict in a row: its name, its title, the answer and the colour."""

    name: str
    title: str
    answer: str
    tone: str


@dataclass(frozen=True)
class FleetRow:
    """A cluster as text. The results are of the newest finished run: `known_since` is its time, if the newest run did not finish."""

    name: str
    href: str
    label: str
    tone: str
    phase: str
    kafka: str
    headline: str
    since_when: str
    to_do: str
    gates: list[GateChip]
    defects: str
    since: str
    lag: str
    spark: Markup
    strip: Markup
    last_run: str
    age: str
    stale: bool
    failure: str
    known_since: str
    unverified: str


@dataclass(frozen=True)
class FleetGroup:
    """The clusters of one group; `folded` if they are clean and many."""

    name: str
    title: str
    tone: str
    rows: Bounded[FleetRow]
    folded: bool


@dataclass(frozen=True)
class FleetAction:
    """What to do first, and on which clusters."""

    what: str
    clusters: str


def render_fleet(fleet: Fleet, places: Mapping[str, str]) -> str:
    """Render the page. `places` are relative addresses of the clusters' reports, by name; a row without one has no link.

    At most MOST_ROWS clusters are listed, the worst; counts are of all.
    """
    groups = fleet_groups(fleet, places)
    return (
        environment()
        .get_template("fleet.html.j2")
        .render(
            fleet=fleet,
            as_of=moment(fleet.as_of),
            banner=banner(fleet),
            groups=groups,
            shown=sum(len(group.rows.shown) for group in groups),
            facts=fleet_facts(fleet),
            actions=first_actions(fleet),
            stale_after=f"{fleet.stale_after_hours:g} h",
            gate_titles={name: GATE_TITLES.get(name, name) for name in _asked_gates(fleet)},
        )
    )


@dataclass(frozen=True)
class Banner:
    """The first line of a fleet: colour, word, title and a sentence."""

    tone: str
    word: str
    title: str
    sentence: str


def banner(fleet: Fleet) -> Banner:
    """The state of the fleet in one line."""
    counts = {group: len(fleet.of_group(group)) for group in GROUPS}
    total = len(fleet.clusters)
    worst = next((group for group in GROUPS if counts[group]), "clean")
    # Errors do not go away because nobody looks.
    old = sum(1 for cluster in fleet.of_group("stale") if cluster.newest.verdict in (ERRORS, FAILED))
    urgent = counts["failed"] + counts["errors"] + old
    open_ = total - counts["clean"]
    if total == 0:
        said = "No run is in this warehouse yet" if not fleet.retired else "Every cluster of this warehouse is retired"
        return Banner("warn", "Nothing", said, "")
    if not open_:
        title = "The cluster is clean" if total == 1 else f"All {total:,} clusters are clean"
        return Banner("good", "Clean", title, "")
    named = urgent or open_
    verb = "needs" if named == 1 else "need"
    title = f"{named:,} of {counted(total, 'cluster')} {verb} {'repair' if urgent else 'a look'}"
    word = "Errors and failed audits" if counts["failed"] and counts["errors"] else GROUP_TITLES[worst]
    tone = "bad" if urgent else GROUP_TONES[worst]
    return Banner(tone, word, title, _tally(counts, fleet.stale_after_hours, old))


def _tally(counts: Mapping[str, int], stale_after_hours: float, old_errors: int) -> str:
    words = {
        "failed": "could not be audited",
        "errors": "with errors",
        "stale": f"with no audit in the last {stale_after_hours:g} h"
        + (f" ({old_errors:,} of them with errors or failed in the last one)" if old_errors else ""),
        "warnings": "with warnings or not ready to start",
        "clean": "clean",
    }
    return ", ".join(f"{counts[group]:,} {words[group]}" for group in GROUPS if counts[group]) + "."


def fleet_facts(fleet: Fleet) -> list[tuple[str, str]]:
    """Figures of the whole fleet: name and text."""
    known = [cluster.judged for cluster in fleet.clusters if cluster.judged is not None]
    phases = Counter(phase_name(run.phase) for run in known)
    defects = sum(run.defects or 0 for run in known)
    uncompared = sum(1 for run in known if defects_text(run) == NOT_COMPARED)
    new = sum(run.statuses.get("new", 0) for run in known)
    behind = [run.lag_records for run in known if run.lag_records]
    unmeasured = sum(1 for run in known if lag_text(run) == UNKNOWN_LAG)
    unverified = [cluster.name for cluster in fleet.clusters if cluster.unverified]
    return [
        ("Clusters", f"{len(fleet.clusters):,}"),
        *([("Retired, left out", listed(fleet.retired, 4))] if fleet.retired else []),
        *([("Differ from their evidence", listed(unverified, 4))] if unverified else []),
        ("Phases", ", ".join(f"{count:,} {name}" for name, count in phases.most_common()) or "unknown"),
        (
            "Defects",
            f"{defects:,} in {counted(sum(1 for run in known if run.defects), 'cluster')}"
            + (f"; {counted(uncompared, 'cluster')} {NOT_COMPARED}" if uncompared else ""),
        ),
        ("New since the previous run", counted(new, "defect")),
        (
            "Behind",
            (f"{counted(len(behind), 'cluster')}, at most {counted(max(behind), 'record')}" if behind else "none")
            + (f"; {UNKNOWN_LAG} of {counted(unmeasured, 'cluster')}" if unmeasured else ""),
        ),
    ]


def first_actions(fleet: Fleet) -> list[FleetAction]:
    """What to do first in the fleet, worst clusters first, each thing once with the clusters it is for."""
    wanted: dict[str, list[str]] = {}
    for cluster in fleet.clusters:
        what = {"failed": _MAKE_READABLE, "stale": _AUDIT_AGAIN, "clean": ""}.get(cluster.group, cluster.newest.to_do)
        if what:
            wanted.setdefault(what, []).append(cluster.name)
    return [FleetAction(what, listed(clusters, 4)) for what, clusters in wanted.items()][:_MOST_ACTIONS]


def fleet_groups(fleet: Fleet, places: Mapping[str, str], most: int = MOST_ROWS) -> list[FleetGroup]:
    """The groups that have clusters, worst first; `most` rows in all, the rest counted."""
    groups = []
    for name in GROUPS:
        members = fleet.of_group(name)
        if not members:
            continue
        rows = [fleet_row(cluster, places.get(cluster.name, "")) for cluster in members[: max(most, 0)]]
        most -= len(rows)
        folded = name == "clean" and len(members) >= _FOLDED_FROM
        groups.append(
            FleetGroup(name, GROUP_TITLES[name], GROUP_TONES[name], bounded(rows, len(rows), len(members)), folded)
        )
    return groups


def fleet_row(cluster: FleetCluster, href: str) -> FleetRow:
    """Put one cluster into text."""
    newest, known = cluster.newest, cluster.judged
    judged = known or newest
    finished = [run for run in last_runs(cluster) if not run.failed]
    return FleetRow(
        name=visible(cluster.name, 120),
        href=href,
        label=label_of(newest),
        tone=tone_of(newest),
        phase=phase_name(judged.phase),
        kafka=visible(judged.kafka_version or "unknown", 20),
        headline=visible(newest.headline, 200),
        since_when=_since_when(cluster),
        to_do=_AUDIT_AGAIN if cluster.group == "stale" else visible(newest.to_do, 600),
        gates=gate_chips(judged),
        defects=defects_text(judged),
        since=since_words(judged.statuses),
        lag=lag_text(judged),
        spark=sparkline(finished),
        strip=gate_strip(cluster.runs),
        last_run=moment(newest.finished_at),
        age=f"{duration(cluster.age_seconds)} ago",
        stale=cluster.stale,
        failure=visible(newest.failure, 600),
        known_since=moment(known.finished_at) if newest.failed and known is not None else "",
        unverified=visible(cluster.unverified, 600),
    )


def lag_text(run: FleetRun) -> str:
    """The records behind; `unknown` in dual write, and `n/a` where there is no lag."""
    if run.lag_records is not None:
        return f"{run.lag_records:,}"
    return without_lag(run.phase)


def last_runs(cluster: FleetCluster) -> Sequence[FleetRun]:
    """The runs that a picture shows: between older ones that were read as well, some may be left out."""
    return cluster.runs[-MOST_RUNS:]


def _since_when(cluster: FleetCluster) -> str:
    """Since when the cluster has its verdict; empty for a failed run, or if no earlier run shows it."""
    newest, known = cluster.newest, last_runs(cluster)
    earlier = [(run.started_at.isoformat(), run.verdict) for run in known if not run.failed and run is not newest]
    if not earlier or newest.failed:
        return ""
    return since_when(newest.verdict, earlier, whole=len(known) < MOST_RUNS)


def gate_chips(run: FleetRun) -> list[GateChip]:
    """The gates that were judged, in the order of a report."""
    closed = "bad" if run.verdict == ERRORS else "warn"
    tones = {"go": "good", "no_go": closed, "unknown": "warn"}
    return [
        GateChip(name, GATE_TITLES.get(name, name), VERDICT_WORDS.get(verdict, verdict), tones.get(verdict, "quiet"))
        for name in gates_in_order(run.gates)
        if (verdict := run.gates[name]) != "not_applicable"
    ]


def label_of(run: FleetRun) -> str:
    """The word for a run's verdict, as the banner of its report has it."""
    if run.failed:
        return "Failed"
    return visible(run.label, 20) or VERDICT_LABELS.get(run.verdict, visible(run.verdict, 20))


def tone_of(run: FleetRun) -> str:
    """Colour of a run's verdict."""
    if run.label == NOT_READY:
        return "warn"
    return "bad" if run.verdict == FAILED else TONES.get(run.verdict, "bad")


def phase_name(phase: str) -> str:
    """A phase in words."""
    return _PHASE_NAMES.get(phase) or visible(phase, 24) or "unknown"


def since_words(statuses: Mapping[str, int]) -> str:
    """`2 new, 1 resolved`; nothing when no defect came, stays or went."""
    return ", ".join(f"{statuses[name]:,} {name}" for name in ("new", "persisting", "resolved") if statuses.get(name))


def defects_text(run: FleetRun) -> str:
    """The number of defects; `not compared` in dual write, and `n/a` where there is nothing to compare."""
    if run.defects is not None:
        return f"{run.defects:,}"
    return NOT_COMPARED if run.phase == "dual_write" else "n/a"


def moment(when: datetime) -> str:
    """`YYYY-MM-DD HH:MM UTC`."""
    return when.strftime("%Y-%m-%d %H:%M UTC")


def _asked_gates(fleet: Fleet) -> Sequence[str]:
    asked = {
        name
        for cluster in fleet.clusters
        for run in cluster.runs
        for name, verdict in run.gates.items()
        if verdict != "not_applicable"
    }
    return gates_in_order(sorted(asked))
