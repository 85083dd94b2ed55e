"""`kraft-audit dump`: what kafka-dump-log with its cluster-metadata decoder prints, faster and with secrets masked.

One JSON object a line: offset, epoch, timestamp (milliseconds), type, version, data. Types and fields are spelled as
Kafka spells them; control records are `CONTROL_LEADER_CHANGE` and so on. What can't be read is a line with `problem`,
file, position and length. Exit code 0, or 10 when there was such a line, or 2 for a wrong command line.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

import pyarrow as pa
import pyarrow.compute as pc

from jobs.exit import AuditError
from jobs.sources.kraft.folder import KraftSourceError, read_copies
from jobs.sources.kraft.log import EVERYTHING, ReadTask, Selection, plan_file, plan_log, read_records
from schemas.kraft.control import CONTROL_TYPES
from schemas.kraft.records import RECORD_TYPES
from transforms.kraft.decode.lines import CONTROL_PREFIX, json_lines
from transforms.kraft.decode.masking import UNMASKED, Masking
from transforms.nearest import suggestion
from transforms.report.printable import counted, visible
from transforms.secrets import Fingerprinter

CLEAN, FINDINGS, USAGE = 0, 10, 2
_KEY_BYTES = 32
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_RECORD_SUFFIX = "_RECORD"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `dump`."""
    parser.add_argument("path", help="a .log segment, a .checkpoint, or one controller's log folder")
    parser.add_argument(
        "--format", choices=("jsonl", "table"), default="jsonl", help="one JSON object per line, or columns"
    )
    parser.add_argument(
        "--type",
        action="append",
        default=[],
        metavar="T",
        help="only this record type (may be repeated); CONTROL for all",
    )
    parser.add_argument("--from", dest="from_offset", type=int, metavar="N", help="first offset")
    parser.add_argument("--to", dest="to_offset", type=int, metavar="M", help="offset to stop before")
    parser.add_argument("--unmask", action="store_true", help="show secrets in clear text; on a terminal only")
    parser.add_argument(
        "--unmask-into-file", action="store_true", help="with --unmask: also if the output is not a terminal"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="kraft-audit dump", description=(__doc__ or "").split("\n", maxsplit=1)[0])
    add_arguments(parser)
    return run(parser.parse_args(argv), sys.stdout, sys.stderr)


def run(arguments: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    """Dump to `out` according to the parsed arguments; each error is one line on `err`."""
    if arguments.unmask and not (out.isatty() or arguments.unmask_into_file):
        print(
            "dump: --unmask shows secrets, and the output is not a terminal; add --unmask-into-file to allow it",
            file=err,
        )
        return USAGE
    wrong = _selects_nothing(arguments)
    if wrong:
        print(f"dump: {wrong}", file=err)
        return USAGE
    selection = Selection(arguments.from_offset, arguments.to_offset)
    try:
        tasks = _tasks(arguments.path, selection)
    except KraftSourceError as error:
        print(f"dump: {error}", file=err)
        return USAGE
    masking: Masking = UNMASKED if arguments.unmask else Fingerprinter(os.urandom(_KEY_BYTES))
    write = _write_table if arguments.format == "table" else _write_lines
    findings = read = 0
    try:
        for batch in read_records(tasks, masking, selection):
            read += batch.num_rows
            findings += batch.num_rows - batch.column("problem").null_count
            write(_of_types(batch, arguments.type), out)
        out.flush()
    except BrokenPipeError:
        # The reader (head, less) has seen enough. Python would complain again when it closes standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLEAN
    except KraftSourceError as error:
        raise AuditError(str(error)) from None
    if findings:
        print(f"dump: {counted(findings, 'finding')}: lines with `problem`", file=err)
    elif not read:
        print(f"dump: {_why_nothing(arguments.path, selection, masking)}", file=err)
    return FINDINGS if findings else CLEAN


def _selects_nothing(arguments: argparse.Namespace) -> str:
    """Why no record can be selected, in one line; no output would mean that the log has none."""
    first, end = arguments.from_offset or 0, arguments.to_offset
    if first < 0:
        return f"--from: {first} is below 0"
    if end is not None and end <= first:
        return f"--to: {end} is not above --from, {first}: no record is between them"
    known = [each.name for each in (*RECORD_TYPES.values(), *CONTROL_TYPES.values())]
    known = ["CONTROL", *(name.removesuffix(_RECORD_SUFFIX) for name in known)]
    names = [(name, name.upper().removeprefix(CONTROL_PREFIX).removesuffix(_RECORD_SUFFIX)) for name in arguments.type]
    unknown = next((pair for pair in names if pair[1] not in known), None)
    return "" if unknown is None else _no_type(*unknown, known)


def _why_nothing(path: str, selection: Selection, masking: Masking) -> str:
    """Why no record was read: the offsets that are there. Only the first and the last range of bytes are read for this."""
    tasks = _tasks(path, EVERYTHING)
    ends = tasks if len(tasks) < 2 else [tasks[0], tasks[-1]]
    offsets = [
        offset
        for batch in read_records(ends, masking)
        for offset in batch.column("offset").to_pylist()
        if offset is not None
    ]
    if not offsets:
        return f"{path}: no record in it"
    there = f"offsets {min(offsets)} to {max(offsets)} are there"
    first, end = selection.from_offset, selection.to_offset
    if first is not None and first > max(offsets):
        return f"--from: no record is at or above {first}; {there}"
    if end is not None and end <= min(offsets):
        return f"--to: no record is below {end}; {there}"
    return f"--from, --to: no record is between them; {there}"


def _no_type(name: str, searched: str, known: Sequence[str]) -> str:
    return f"--type: there is no record type `{visible(name, 80)}`; {suggestion(searched, known)}"


def _tasks(path: str, selection: Selection) -> list[ReadTask]:
    if Path(path).is_file():
        if Path(path).suffix == ".checkpoint" and selection != EVERYTHING:
            raise KraftSourceError("--from, --to: are offsets of a log, and a checkpoint is one state; leave them out")
        return plan_file(Path(path), selection)
    copies = read_copies(path)
    if len(copies) > 1:
        names = ", ".join(copy.location for copy in copies)
        raise KraftSourceError(f"{path}: {len(copies)} controllers' logs in it; give one of {names}")
    tasks = plan_log(copies[0], selection)
    if not tasks and not copies[0].segments:
        raise KraftSourceError(f"{path}: no .log segment in it")
    return tasks


def _of_types(batch: pa.RecordBatch, types: Sequence[str]) -> pa.RecordBatch:
    if not types:
        return batch
    wanted = {name.upper().removeprefix(CONTROL_PREFIX) for name in types}
    names = pa.array(sorted(wanted | {name + _RECORD_SUFFIX for name in wanted}), pa.string())
    mask = pc.is_in(batch.column("type"), value_set=names)
    if "CONTROL" in wanted:
        mask = pc.or_(mask, pc.fill_null(batch.column("control"), False))
    return batch.filter(pc.fill_null(mask, False))


def _write_lines(batch: pa.RecordBatch, out: TextIO) -> None:
    lines = json_lines(batch)
    if lines:
        _put("\n".join(lines) + "\n", out)


def _write_table(batch: pa.RecordBatch, out: TextIO) -> None:
    for line in _columns(json_lines(batch)):
        _put(line, out)


def _put(text: str, out: TextIO) -> None:
    """Write a text; characters that the encoding lacks as JSON escapes them, so that an object stays one."""
    try:
        out.write(text)
    except UnicodeEncodeError:
        out.write(_NOT_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text))


def _columns(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        row = json.loads(line)
        body = row.get("problem")
        text = (
            f"! {body} (byte {row['position']}, {row['length']} bytes)"
            if body
            else line[line.index('"data":') + 7 : -1]
        )
        time = _time(row.get("timestamp"))
        kind = f"{row.get('type', '-')} v{row.get('version', '-')}"
        yield f"{row.get('offset', '-'):>10} {row.get('epoch', '-'):>5}  {time:<24} {kind:<38} {text}\n"


def _time(milliseconds: int | None) -> str:
    if milliseconds is None:
        return "-"
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{milliseconds % 1000:03d}Z"


if __name__ == "__main__":
    sys.exit(main())
