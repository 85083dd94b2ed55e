"""How fast segment bytes become Arrow on one core, beside Kafka's own decoder and kafka-dump-log on the same file.

    python -m tests.benchmarks.kraft_decode [--log FILE] [--kafka-libs DIR] [--json FILE]

Without `--log` a log is made of a real capture's batches, over and over. Kafka's jars (3.9) are looked for in
`--kafka-libs` or `KAFKA_LIBS`; without them the ratios are left out. Rates are of the best of the rounds, by the clock
and by the processor's time; on a busy machine trust the ratios, all measured in the same minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import numpy as np

from tests.captures import capture
from transforms.kraft.decode.decode_pass import Continuation, DecodePass
from transforms.kraft.decode.framing import BatchHeader, frames
from transforms.kraft.decode.rows import Origin
from transforms.kraft.decode.segments import decode_by_declarations, decode_segment
from transforms.kraft.kernel import fast
from transforms.kraft.kernel.columnar import to_batch
from transforms.kraft.kernel.wire import crc32c
from transforms.secrets import Fingerprinter

ORIGIN = Origin(1, "00000000000000000000.log")
MASKING = Fingerprinter(b"benchmark")
REPEATED_BYTES = 64 * 1024 * 1024
DECLARATION_BYTES = 2 * 1024 * 1024
BAR_RECORDS = 3_000_000
BAR_DUMP = 20


def repeated_capture() -> bytes:
    """A log of a capture's data batches, over and over, with offsets and epoch made to fit (the CRC covers neither)."""
    log = capture("3.9.1", "9-caught-up") / "kraft/3001/__cluster_metadata-0/00000000000000000000.log"
    source = log.read_bytes()
    batches = [frame for frame in frames(source) if isinstance(frame, BatchHeader) and not frame.control]
    out, offset = bytearray(), 0
    while len(out) < REPEATED_BYTES:
        for batch in batches:
            out += offset.to_bytes(8, "big") + source[batch.position + 8 : batch.position + 12] + b"\0\0\0\1"
            out += source[batch.position + 16 : batch.position + batch.size]
            offset += batch.count
    return bytes(out)


def decode(data: bytes) -> int:
    """Decode everything; returns the number of rows."""
    return sum(batch.num_rows for batch in decode_segment(data, ORIGIN, MASKING))


def best(run: Callable[[], Any], rounds: int) -> tuple[float, float]:
    """Least (wall seconds, processor seconds) of some rounds."""
    taken = []
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        taken.append((time.perf_counter() - wall, time.process_time() - cpu))
    return min(wall for wall, _ in taken), min(cpu for _, cpu in taken)


def shares(data: bytes) -> dict[str, float]:
    """Processor seconds by what they go to."""
    spent: dict[str, float] = {}

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            before = time.process_time()
            try:
                return function(*arguments)
            finally:
                spent[name] = spent.get(name, 0.0) + time.process_time() - before

        return call

    view = np.frombuffer(data, np.uint8)
    _, crc = best(lambda: crc32c(view, 0, view.size), 3)
    _, scan = best(lambda: list(fast.scan_fast(data)), 3)
    with (
        mock.patch.object(fast, "_run", timed("kernel", fast._run)),
        mock.patch.object(fast, "to_batch", timed("Arrow arrays", to_batch)),
        mock.patch.object(
            fast._FastPass, "_pending_texts", timed("bodies left to Python", fast._FastPass._pending_texts)
        ),
    ):
        _, total = best(lambda: decode(data), 1)
    kernel = spent.pop("kernel")
    parts = {"CRC-32C": crc, "framing": max(scan - crc, 0.0), "decoding": kernel - scan, **spent}
    return parts | {"the rest": total - sum(parts.values())}


def kafka_decoder(log: Path, libs: Path, rounds: int) -> tuple[float, float]:
    """Records a second of the thread's processor time in Kafka's own classes, CRC checked: first pass, best later one.

    The first pass is what one run over a file costs; later ones have the machine code of the JVM's compiler. Its
    garbage collector runs in other threads and is not counted.
    """
    source = Path(__file__).with_name("KafkaDecode.java")
    command = ["java", "-Xmx1g", "-cp", f"{libs}/*", str(source), str(log), str(rounds)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rates = [int(count) / int(cpu) * 1e9 for count, _, cpu in (line.split() for line in out.splitlines())]
    return rates[0], max(rates)


def kafka_dump(log: Path, libs: Path) -> tuple[int, float]:
    """(records, seconds) of kafka-dump-log with the cluster metadata decoder, its output thrown away."""
    arguments = ["--cluster-metadata-decoder", "--files", str(log)]
    command = ["java", "-Xmx1g", "-cp", f"{libs}/*", "kafka.tools.DumpLogSegments", *arguments]
    before = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        records = sum(line.startswith(b"| offset:") for line in process.stdout)
    return records, time.perf_counter() - before


def measure(data: bytes, log: Path, libs: Path | None, rounds: int) -> dict[str, Any]:
    """All figures of one file."""
    fast.warm_up()
    records = decode(data)
    wall, cpu = best(lambda: decode(data), rounds)
    small = data[:DECLARATION_BYTES]
    walk_rows = sum(
        batch.num_rows for batch in decode_by_declarations(DecodePass(small, ORIGIN, MASKING, Continuation()))
    )
    _, slow = best(lambda: list(decode_by_declarations(DecodePass(small, ORIGIN, MASKING, Continuation()))), 1)
    figures: dict[str, Any] = {
        "records": records,
        "bytes": len(data),
        "records_per_second": round(records / wall),
        "records_per_cpu_second": round(records / cpu),
        "by_declarations_per_cpu_second": round(walk_rows / slow),
        "shares": {name: round(seconds, 4) for name, seconds in shares(data).items()},
    }
    if libs is not None:
        first, warm = kafka_decoder(log, libs, rounds)
        figures["kafka_decoder_first_pass_per_cpu_second"] = round(first)
        figures["kafka_decoder_warm_per_cpu_second"] = round(warm)
        dumped, seconds = kafka_dump(log, libs)
        figures["kafka_dump_records"] = dumped
        figures["kafka_dump_per_second"] = round(dumped / seconds)
        figures["times_kafka_decoder_first_pass"] = round(records / cpu / first, 2)
        figures["times_kafka_decoder_warm"] = round(records / cpu / warm, 2)
        figures["times_kafka_dump"] = round(records / wall / figures["kafka_dump_per_second"], 1)
    return figures


def report(figures: dict[str, Any]) -> str:
    """The figures as a table."""
    total = sum(figures["shares"].values())
    lines = [
        f"{figures['records']:,} records, {figures['bytes']:,} bytes to Arrow on one core, CRC checked",
        f"  {figures['records_per_second']:>12,} records/s by the clock (bar {BAR_RECORDS:,})",
        f"  {figures['records_per_cpu_second']:>12,} records/s of processor time",
        f"  {figures['by_declarations_per_cpu_second']:>12,} records/s by the declarations alone (small inputs)",
        "shares of processor time:",
        *(f"  {seconds / total:>12.1%} {name}" for name, seconds in figures["shares"].items()),
    ]
    if "times_kafka_dump" in figures:
        lines += [
            f"  {figures['kafka_decoder_first_pass_per_cpu_second']:>12,} records/s by Kafka's own decoder, first pass: "
            f"{figures['times_kafka_decoder_first_pass']} times as fast",
            f"  {figures['kafka_decoder_warm_per_cpu_second']:>12,} records/s by Kafka's own decoder, warm, objects only: "
            f"{figures['times_kafka_decoder_warm']} times as fast",
            f"  {figures['kafka_dump_per_second']:>12,} records/s by kafka-dump-log: "
            f"{figures['times_kafka_dump']} times as fast (bar {BAR_DUMP})",
        ]
    else:
        lines.append("Kafka's jars were not given (--kafka-libs or KAFKA_LIBS): no ratios against Kafka")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and write the figures where asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--log", type=Path, help="a .log segment, such as one of the scale generator's")
    parser.add_argument(
        "--kafka-libs", type=Path, default=os.environ.get("KAFKA_LIBS"), help="folder with Kafka's jars"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="where to write the figures")
    arguments = parser.parse_args(argv)
    with TemporaryDirectory() as folder:
        log = arguments.log
        if log is None:
            log = Path(folder) / "00000000000000000000.log"
            log.write_bytes(repeated_capture())
        libs = Path(arguments.kafka_libs) if arguments.kafka_libs else None
        figures = measure(log.read_bytes(), log, libs, arguments.rounds)
    print(report(figures))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
