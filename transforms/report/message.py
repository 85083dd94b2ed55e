"""A message about a run for a chat, a pager or a program: one for all clusters with news.

Names and texts of clusters are plain text, never markup, links or mentions. `transforms.report.mail_policy` decides which clusters
are in the message.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from transforms.report.fleet_mail import MailEntry, subject
from transforms.report.fleet_model import fleet
from transforms.report.fleet_page import banner, label_of
from transforms.report.printable import counted, first_changes, listed, visible

# Rises when a field of the form `json` changes its meaning.
FORMAT = 1
# Teams refuses messages of 28 KB.
SIZE_LIMIT = 20_000
# (clusters, sentences of each): the first that fits is sent; the last one always fits.
_FITS = ((20, 4), (5, 3), (1, 2), (0, 0))
_LINE = 300
# A run has just ended, so no cluster of it is old.
_NEVER_STALE = float("inf")


def title_of(entries: Sequence[MailEntry], as_of: datetime) -> str:
    """The message in a line: the worst verdict, how many clusters, and the names of the first ones."""
    standing = fleet([entry.run for entry in entries], as_of, _NEVER_STALE)
    return subject(banner(standing), standing, entries)


def payload_of(form: str, entries: Sequence[MailEntry], as_of: datetime, page: str = "") -> bytes:
    """The message as the body of a POST: `form` is json, slack or teams; `page` is the address of the fleet's page.

    `entries` are the clusters of the message, at least one, in any order; the worst come first.
    """
    if form == "json":
        return _bytes(_for_a_program(entries, as_of, page))
    made: Callable[[str, list[str]], dict[str, Any]] = {"slack": _for_slack, "teams": _for_teams}[form]
    title = title_of(entries, as_of)
    for sizes in _FITS[:-1]:
        body = _bytes(made(title, lines_of(entries, as_of, page, sizes)))
        if len(body) <= SIZE_LIMIT:
            return body
    return _bytes(made(title, lines_of(entries, as_of, page, _FITS[-1])))


def lines_of(
    entries: Sequence[MailEntry], as_of: datetime, page: str = "", sizes: tuple[int, int] = _FITS[0]
) -> list[str]:
    """The message's lines under its title, an empty one between clusters."""
    most, sentences = sizes
    ordered = _worst_first(entries, as_of)
    lines: list[str] = []
    for entry in ordered[:most]:
        run = entry.run
        how = run.failure if run.failed else run.headline
        said = [f"{run.cluster}: {label_of(run)}, {how}", *first_changes(entry.decision.changes, sentences)]
        said += [f"Do first: {run.to_do}"] if run.to_do and sentences else []
        said += [entry.location] if entry.location else []
        lines += [*(visible(line, _LINE) for line in said), ""]
    rest = [entry.run.cluster for entry in ordered[most:]]
    if rest:
        more = f"{counted(len(rest), 'more cluster')}" if most else counted(len(rest), "cluster")
        lines += [f"{more}: {visible(listed(rest, 20), 600)}", ""]
    return [*lines, visible(page, _LINE)] if page else lines[:-1]


def _worst_first(entries: Sequence[MailEntry], as_of: datetime) -> list[MailEntry]:
    by_name = {entry.run.cluster: entry for entry in entries}
    standing = fleet([entry.run for entry in entries], as_of, _NEVER_STALE)
    return [by_name[cluster.name] for cluster in standing.clusters]


def _for_a_program(entries: Sequence[MailEntry], as_of: datetime, page: str) -> dict[str, Any]:
    return {
        "source": "kraft-audit",
        "format": FORMAT,
        "title": title_of(entries, as_of),
        "page": page or None,
        "clusters": [_object(entry) for entry in _worst_first(entries, as_of)],
    }


def _object(entry: MailEntry) -> dict[str, Any]:
    run = entry.run
    return {
        "cluster": run.cluster,
        "run_id": run.run_id,
        "finished_at": run.finished_at.isoformat(),
        "verdict": run.verdict,
        "label": run.label or None,
        "headline": run.headline or None,
        "failure": run.failure or None,
        "reason": entry.decision.reason,
        "changes": [visible(each, _LINE) for each in entry.decision.changes],
        "to_do": run.to_do or None,
        "gates": dict(run.gates),
        "open_checks": [*run.open_checks],
        "defects": run.defects,
        "divergences": run.divergences,
        "lag_records": run.lag_records,
        "report": entry.location or None,
    }


def _for_slack(title: str, lines: list[str]) -> dict[str, Any]:
    text = "\n".join([title, "", *lines])
    # Between < and > Slack takes a text for a link or a mention.
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {"text": escaped, "mrkdwn": False}


def _for_teams(title: str, lines: list[str]) -> dict[str, Any]:
    runs = [{"type": "TextRun", "text": title, "weight": "Bolder"}]
    # Unlike a TextBlock, a TextRun is never Markdown.
    blocks = [_rich(runs), *(_rich([{"type": "TextRun", "text": line}]) for line in lines if line)]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": blocks,
    }
    content = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [content]}


def _rich(inlines: list[dict[str, str]]) -> dict[str, Any]:
    return {"type": "RichTextBlock", "inlines": inlines}


def _bytes(payload: dict[str, Any]) -> bytes:
    # A lone surrogate, which a name may hold, has no form in UTF-8.
    return json.dumps(payload, ensure_ascii=False).encode("utf-8", "backslashreplace")
