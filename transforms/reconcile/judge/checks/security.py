"""SEC checks: is the metadata as protected as intended (S§7.6)."""

from __future__ import annotations

from schemas.checks.codes import (
    ACL_PRINCIPAL,
    ACL_TWICE,
    CIDR_DENY,
    FEW_ITERATIONS,
    SCRAM_LEFT_OUT,
    TOKEN_EXPIRED,
)
from transforms.outcome import Outcome, found, not_applicable
from transforms.reconcile.judge.checks.outcome import CheckFunction, by_level, by_time, in_tables
from transforms.reconcile.judge.facts import Facts


def _where_secured(code: str) -> CheckFunction:
    """A check of znode ACLs: it does not apply to a tree that was never secured."""
    judge = in_tables(code)

    def check(facts: Facts) -> Outcome:
        if facts.protection is None or facts.protection.znodes == 0:
            return not_applicable("no ZooKeeper tree with ACLs was given")
        if not facts.protection.secured:
            return not_applicable("this ZooKeeper was never secured: anyone can write most of Kafka's znodes")
        return judge(facts)

    return check


def _one_identity(facts: Facts) -> Outcome:
    """SEC-06."""
    identities = facts.identities
    if identities is None or not identities.controllers or not identities.brokers:
        return not_applicable("no znodes show the identities of both controllers and brokers")
    if identities.controllers & identities.brokers:
        return found([])
    controllers, brokers = (", ".join(sorted(names)) for names in (identities.controllers, identities.brokers))
    both = ",".join(f"{_in_a_command(name)}:cdrwa" for name in sorted(identities.controllers | identities.brokers))
    return found(
        [
            f"/migration belongs to {controllers}, the brokers' znodes to {brokers}: setAcl /migration {both},world:anyone:r"
        ]
    )


def _in_a_command(identity: str) -> str:
    """An identity as `setAcl` takes it; the hash of a digest is not kept."""
    scheme, _, name = identity.partition(":")
    return f"{scheme}:{name.partition(':')[0]}:HASH" if scheme == "digest" else identity


CHECKS: dict[str, CheckFunction] = {
    "SEC-01": _where_secured("SEC-01"),
    "SEC-02": _where_secured("SEC-02"),
    "SEC-03": _where_secured("SEC-03"),
    "SEC-04": in_tables("SEC-04"),
    "SEC-05": in_tables("SEC-05"),
    "SEC-06": _one_identity,
    "SEC-07": by_level(in_tables(CIDR_DENY)),
    "SEC-08": in_tables(FEW_ITERATIONS),
    "SEC-09": by_time(in_tables(TOKEN_EXPIRED)),
    "SEC-10": in_tables(ACL_TWICE),
    "SEC-11": in_tables(ACL_PRINCIPAL),
    "SEC-12": in_tables(SCRAM_LEFT_OUT),
}
