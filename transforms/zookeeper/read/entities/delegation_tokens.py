"""`/delegation_token/tokens/<tokenId>`: delegation tokens (`DelegationTokenInfoZNode`, S§1.6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transforms.zookeeper.read.reading import (
    MalformedError,
    StateRow,
    ZnodeView,
    desanitize,
    duplicate_keys,
    finding,
    long,
    parse_object,
    text,
)

_VERSIONS = (1, 2, 3)


def read_token(znode: ZnodeView, parts: list[str]) -> Iterator[StateRow]:
    """Yield one token. Principals are decoded; before version 3 the requester is the owner."""
    if znode.data_is_null or znode.data == "":
        yield finding("TOKEN-EMPTY", znode.path, "a token without data")
        return
    try:
        document = parse_object(znode)
        if document.get("version") not in _VERSIONS:
            raise MalformedError("its version is not 1, 2 or 3")
        row = _token(document)
    except MalformedError as problem:
        yield finding("TOKEN-DATA", znode.path, str(problem))
        return
    yield StateRow("delegation_tokens", row)
    yield from duplicate_keys(znode, document)
    if row["token_id"] != parts[2]:
        yield finding("TOKEN-DATA", znode.path, "its tokenId is not the znode's name")


def _token(document: dict[str, Any]) -> dict[str, Any]:
    owner = desanitize(text(document, "owner"))
    renewers = document.get("renewers")
    if not isinstance(renewers, list) or not all(isinstance(renewer, str) for renewer in renewers):
        raise MalformedError("'renewers' is not an array of strings")
    return {
        "token_id": text(document, "tokenId"),
        "owner": owner,
        "requester": desanitize(text(document, "tokenRequester")) if document["version"] == 3 else owner,
        "renewers": sorted(desanitize(renewer) for renewer in renewers),
        "issue_timestamp": long(document, "issueTimestamp"),
        "max_timestamp": long(document, "maxTimestamp"),
        "expiry_timestamp": long(document, "expiryTimestamp"),
    }
