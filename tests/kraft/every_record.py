"""Make the files of `tests/kraft/data`: every record type with odd values, written and dumped by Kafka itself.

    python -m tests.kraft.every_record KAFKA_LIBS VERSION

KAFKA_LIBS is a folder with the jars of that Kafka release (kafka_2.13 and what it needs). Values are drawn from a fixed
seed. Every type of `schemas.kraft.records` is offered; Kafka takes those that its release knows.
"""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
from base64 import b64encode, urlsafe_b64encode
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from schemas.kraft.fields import Field, WireType
from schemas.kraft.records import RECORD_TYPES

DATA = Path(__file__).parent / "data"
EACH = 12
_BITS = {WireType.INT8: 7, WireType.INT16: 15, WireType.INT32: 31, WireType.INT64: 63}
_TEXTS = (
    "",
    "orders",
    "\u00fcml\u00e4ut-\u65e5\u672c-\U0001f600",
    'a"b\\c\n\t\u0001\u001f\u007f',
    "<default>",
    "x" * 200,
)
_DOUBLES = (0.0, 1.0, 12.5, 0.001, 5e-4, 1e7, 123456789.0, 1.5e300, -2.25, 9007199254740993.0)


def value(field: Field, version: int, rng: random.Random) -> Any:
    """One value of a field as Kafka's JSON has it."""
    if field.nullable and rng.random() < 0.3:
        return None
    if field.array:
        return [scalar(field, version, rng) for _ in range(rng.choice((0, 1, 2, 3, 130)))]
    return scalar(field, version, rng)


def scalar(field: Field, version: int, rng: random.Random) -> Any:
    """One value, or one element of an array."""
    if field.kind is WireType.STRUCT:
        return values(field.fields, version, rng)
    if field.enum is not None:
        return rng.choice(sorted(field.enum))
    if field.kind in _BITS:
        bits = _BITS[field.kind]
        return rng.choice((0, 1, -1, -2, (1 << bits) - 1, -(1 << bits), rng.getrandbits(bits)))
    # A name may come once only among the listeners or features of a broker.
    text = rng.choice(_TEXTS) if field.name != "name" else f"{rng.choice(_TEXTS)}{rng.getrandbits(60)}"
    drawn: dict[WireType, Any] = {
        WireType.UINT16: rng.choice((0, 9092, 65535)),
        WireType.BOOL: rng.random() < 0.5,
        WireType.FLOAT64: rng.choice(_DOUBLES),
        WireType.STRING: text,
    }
    if field.kind in drawn:
        return drawn[field.kind]
    raw = rng.randbytes(16)
    return (
        urlsafe_b64encode(raw)[:22].decode()
        if field.kind is WireType.UUID
        else b64encode(raw[: rng.randrange(17)]).decode()
    )


def values(fields: tuple[Field, ...], version: int, rng: random.Random) -> dict[str, Any]:
    """Values of all fields of a version; tagged ones are sometimes left out."""
    return {
        field.name: value(field, version, rng)
        for field in fields
        if version >= field.since and (field.tag is None or rng.random() < 0.7)
    }


def lines() -> list[str]:
    """Every type and version, several times each."""
    rng = random.Random(20)  # noqa: S311 - reproducible, not secret
    return [
        json.dumps({"type": record.name, "version": version, "data": values(record.body.fields, version, rng)})
        for record in RECORD_TYPES.values()
        for version in range(record.body.highest + 1)
        for _ in range(EACH)
    ]


def _source(release: str) -> str:
    text = (DATA / "EveryRecord.java").read_text("utf-8")
    # Kafka 4.3 moved the classes of batches.
    moved = tuple(int(part) for part in release.split(".")[:2]) >= (4, 3)
    return text.replace("kafka.common.record.", "kafka.common.record.internal.") if moved else text


def main() -> int:
    """Write and dump the log with the jars given."""
    libs, release = Path(sys.argv[1]), sys.argv[2]
    tool = "kafka.tools" if release.startswith("3.") else "org.apache.kafka.tools"
    with TemporaryDirectory() as folder:
        log = Path(folder) / f"{0:020d}.log"
        java = ["java", "-cp", f"{libs}/*"]
        source = Path(folder) / "EveryRecord.java"
        source.write_text(_source(release), "utf-8")
        subprocess.run(
            [*java, str(source), str(log)], input="\n".join(lines()), text=True, encoding="utf-8", check=True
        )
        dump = [*java, "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", f"{tool}.DumpLogSegments"]
        arguments = ["--cluster-metadata-decoder", "--files", str(log)]
        printed = subprocess.run([*dump, *arguments], capture_output=True, check=True).stdout
        (DATA / f"every-record-{release}.log.gz").write_bytes(gzip.compress(log.read_bytes(), mtime=0))
        (DATA / f"every-record-{release}.txt.gz").write_bytes(gzip.compress(printed, mtime=0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
