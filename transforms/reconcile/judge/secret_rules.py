"""SEC-05: secrets that should have been replaced where they were read, reported by their place and never by their text."""

from __future__ import annotations

import polars as pl

from schemas.sensitive import PASSWORD_CONFIGS, SCRAM_SECRETS
from transforms.leaks import WITHHELD, leaking, leaks
from transforms.reconcile.judge.rules import VIOLATIONS, RowRule, said
from transforms.secrets import PREFIX

SHOWN = "SEC-05"
_PASSWORDS = "|".join(name.replace(".", r"\.") for name in PASSWORD_CONFIGS)


def leaked(rows: pl.DataFrame, table: str, place: str, *columns: str) -> pl.DataFrame:
    """Rows of a table in which one of `columns` has the form of a secret: columns VIOLATIONS; `place` identifies the row."""
    found = leaking(rows, *columns).select(pl.col(place).cast(pl.String)).to_series()
    texts = [f"{table}: {WITHHELD if where is not None and leaks(where) else _spelled(where)}" for where in found]
    return pl.DataFrame({"code": [SHOWN] * len(texts), "text": texts}, schema=VIOLATIONS)


def _spelled(place: str | None) -> str:
    return "null" if place is None else place


def is_password(column: str) -> pl.Expr:
    """A configuration that brokers encrypt in ZooKeeper (`DynamicBrokerConfig.isPasswordConfig`)."""
    return pl.col(column).str.contains(rf"(?i)(?:{_PASSWORDS})\z")


def in_clear(column: str) -> pl.Expr:
    """A value that exists and is not a fingerprint, marked as ciphertext or not; an empty one hides nothing."""
    return (pl.col(column) != "") & ~pl.col(column).str.contains(rf"^([a-z]+:)*{PREFIX}[0-9a-f]+\n?\z")


def configuration_in_clear() -> RowRule:
    """The value of a configuration that may be a secret."""
    text = said("{} {}: {}", "resource_type", "resource_name", "config")
    return RowRule(SHOWN, (pl.col("sensitive") | is_password("config")) & in_clear("value"), text)


def credentials_in_clear() -> RowRule:
    """A salt or a key of a SCRAM credential."""
    shown = pl.any_horizontal(in_clear(column) for column in SCRAM_SECRETS)
    return RowRule(SHOWN, shown, said("{} of {}", "mechanism", "user"))


def digests_in_clear(znodes: pl.DataFrame) -> pl.DataFrame:
    """Znodes whose ACL has the hash of a password (scheme `digest`, SHA-1 in Base64): columns VIOLATIONS."""
    scheme, user = (pl.element().struct.field(name) for name in ("scheme", "id"))
    some = znodes.filter(pl.col("acl").list.eval(scheme == "digest").list.any())
    shown = (scheme == "digest") & user.str.contains(r":[A-Za-z0-9+/]{27}=\n?\z")
    found = some.filter(pl.col("acl").list.eval(shown).list.any())
    return found.select(pl.lit(SHOWN).alias("code"), said("zk_znodes: the ACL of {}", "path").alias("text"))
