"""`kraft-audit dump` prints what Kafka's own tool prints, and no secret unless told twice."""

from __future__ import annotations

import base64
import io
import json
import shutil
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import pytest

from jobs.commands import dump as dump_command
from jobs.commands.dump import CLEAN, FINDINGS, USAGE, add_arguments, run
from jobs.exit import AuditError
from tests.kraft.dumps import DumpedRecord, log_folder, read_dump
from tests.kraft.encoder import batch, data_record

STAGE = ("3.9.1", "8-zookeeper-behind", 3001)
LOG = "00000000000000000000.log"
# What the users of the captures log in with, in clear text in the log (README of the captures).
SECRET_TEXTS = ("alice-secret", "bob-secret", "carol-secret", "dave-secret", "svc-secret", "encoder-secret")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def dump(*arguments: str | Path, out: io.StringIO | None = None) -> tuple[int, list[str], str]:
    parser = ArgumentParser()
    add_arguments(parser)
    out, err = out or io.StringIO(), io.StringIO()
    code = run(parser.parse_args([str(argument) for argument in arguments]), out, err)
    return code, out.getvalue().splitlines(), err.getvalue()


def spelled(record: DumpedRecord) -> dict[str, Any]:
    kind = f"CONTROL_{record.type}" if record.control else record.type
    return {"offset": record.offset, "epoch": record.epoch, "timestamp": record.time, "type": kind}


def test_unmasked_lines_are_kafkas_lines() -> None:
    for name, records in read_dump(*STAGE).items():
        code, lines, _ = dump(log_folder(*STAGE) / name, "--unmask", "--unmask-into-file")
        assert code == CLEAN
        assert len(lines) == len(records)
        for line, record in zip(lines, records, strict=True):
            row = json.loads(line)
            assert {key: row[key] for key in ("offset", "epoch", "timestamp", "type")} == spelled(record)
            if record.text is not None:
                assert line[line.index('"data":') + 7 : -1] == record.text


def test_secrets_are_masked_unless_asked_for_twice() -> None:
    folder = log_folder(*STAGE).parent
    code, lines, _ = dump(folder)
    masked = "\n".join(lines)
    assert code == CLEAN
    secrets = [
        part
        for record in read_dump(*STAGE)[LOG]
        if record.type == "USER_SCRAM_CREDENTIAL_RECORD" and record.data is not None
        for part in (record.data["salt"], record.data["storedKey"], record.data["serverKey"])
    ]
    assert len(secrets) >= 3
    for secret in (*secrets, *SECRET_TEXTS):
        assert secret not in masked
    assert base64.b64decode(secrets[0]).hex() not in masked
    refused, printed, complaint = dump(folder, "--unmask")
    assert (refused, printed) == (USAGE, [])
    assert "--unmask-into-file" in complaint
    _, shown, _ = dump(folder, "--unmask", out=Terminal())
    assert secrets[0] in "\n".join(shown)


def test_offsets_and_types_select() -> None:
    folder = log_folder(*STAGE)
    _, lines, _ = dump(folder, "--from", "100", "--to", "110")
    assert [json.loads(line)["offset"] for line in lines] == list(range(100, 110))
    _, topics, _ = dump(folder, "--type", "topic")
    assert {json.loads(line)["type"] for line in topics} == {"TOPIC_RECORD"}
    _, control, _ = dump(folder, "--type", "CONTROL")
    assert [json.loads(line)["offset"] for line in control] == [0, 475]
    _, leaders, _ = dump(folder, "--type", "LEADER_CHANGE", "--format", "table")
    assert len(leaders) == 2
    assert "CONTROL_LEADER_CHANGE v0" in leaders[0]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--type", "TOPICS"], "--type: there is no record type `TOPICS`; did you mean `TOPIC`?"),
        (["--type", "topic", "--type", "PARTITION_RECORDS"], "there is no record type `PARTITION_RECORDS`"),
        (["--from", "10", "--to", "10"], "--to: 10 is not above --from, 10: no record is between them"),
        (["--from", "-1"], "--from: -1 is below 0"),
        (["--to", "0"], "--to: 0 is not above --from, 0"),
    ],
)
def test_what_would_select_nothing_is_refused(argv: list[str], said: str) -> None:
    code, lines, complaint = dump(log_folder(*STAGE), *argv)
    assert (code, lines) == (USAGE, [])
    assert complaint.startswith("dump: ")
    assert said in complaint
    assert len(complaint.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "argv", "said"),
    [
        ("", ["--from", "504"], "--from: no record is at or above 504; offsets 0 to 503 are there"),
        (
            "",
            ["--from", "9999", "--type", "TOPIC"],
            "--from: no record is at or above 9999; offsets 0 to 503 are there",
        ),
        (LOG, ["--from", "700", "--to", "800"], "--from: no record is at or above 700; offsets 0 to 503 are there"),
    ],
)
def test_offsets_that_the_log_does_not_have_are_told(name: str, argv: list[str], said: str) -> None:
    code, lines, complaint = dump(log_folder(*STAGE) / name, *argv)
    assert (code, lines, complaint) == (CLEAN, [], f"dump: {said}\n")


def test_offsets_below_a_pruned_log_are_told(tmp_path: Path) -> None:
    record = data_record("NO_OP_RECORD", 0, {})
    (tmp_path / "00000000000000000300.log").write_bytes(batch([record, record], base_offset=300))
    _, lines, complaint = dump(tmp_path / "00000000000000000300.log", "--to", "300")
    assert (lines, complaint) == ([], "dump: --to: no record is below 300; offsets 300 to 301 are there\n")
    _, lines, complaint = dump(tmp_path / "00000000000000000300.log", "--to", "301")
    assert (len(lines), complaint) == (1, "")


def test_a_checkpoint_has_no_offsets_of_the_log() -> None:
    """They were left out of account, and all of the state was printed."""
    (name, *_) = (each.name for each in log_folder(*STAGE).glob("*.checkpoint"))
    code, lines, complaint = dump(log_folder(*STAGE) / name, "--from", "3", "--to", "5")
    assert (code, lines) == (USAGE, [])
    assert complaint == "dump: --from, --to: are offsets of a log, and a checkpoint is one state; leave them out\n"


def test_a_log_that_becomes_shorter_meanwhile_is_no_fault_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = (log_folder(*STAGE) / LOG).read_bytes()
    (tmp_path / LOG).write_bytes(whole)
    planned = dump_command.plan_file

    def cut(*named: Any) -> Any:
        tasks = planned(*named)
        (tmp_path / LOG).write_bytes(whole[:2_000])
        return tasks

    monkeypatch.setattr(dump_command, "plan_file", cut)
    with pytest.raises(AuditError, match="became shorter while it was read"):
        dump(tmp_path / LOG)


def test_damage_is_a_line_with_its_place(tmp_path: Path) -> None:
    data = bytearray((log_folder(*STAGE) / LOG).read_bytes())
    data[-5] ^= 1
    (tmp_path / LOG).write_bytes(data)
    code, lines, complaint = dump(tmp_path / LOG)
    bad = json.loads(lines[-1])
    assert code == FINDINGS
    assert bad["problem"].startswith("CRC stored 0x")
    assert bad["position"] + bad["length"] == len(data)
    assert complaint == "dump: 1 finding: lines with `problem`\n"
    _, rows, _ = dump(tmp_path / LOG, "--format", "table")
    assert rows[-1].split("!")[1].strip().startswith("CRC stored 0x")


@pytest.mark.parametrize("given", [LOG, ""])
def test_a_damaged_offset_of_the_first_batch_is_one_line(tmp_path: Path, given: str) -> None:
    data = bytearray((log_folder(*STAGE) / LOG).read_bytes())
    data[3] ^= 1
    (tmp_path / LOG).write_bytes(data)
    code, lines, complaint = dump(tmp_path / given)
    found = [problem for line in lines if (problem := json.loads(line).get("problem"))]
    assert (code, complaint) == (FINDINGS, "dump: 1 finding: lines with `problem`\n")
    assert found == [f"baseOffset {1 << 32} is damaged: the batch stands where offset 0 belongs"]
    assert json.loads(lines[-1])["offset"] == 503


def test_terminal_controls_in_names_are_escaped(tmp_path: Path) -> None:
    from tests.kraft.encoder import batch, data_record  # noqa: PLC0415

    record = data_record("TOPIC_RECORD", 0, {"name": "a\x1b[2J\x9b1m\u202eb", "topicId": "AAAAAAAAAAAAAAAAAAAABA"})
    (tmp_path / LOG).write_bytes(batch([record], base_offset=0))
    _, lines, _ = dump(tmp_path / LOG)
    assert not any(character in lines[0] for character in "\x1b\x9b\u202e")
    assert json.loads(lines[0])["data"]["name"] == "a\x1b[2J\x9b1m\u202eb"


def test_wrong_paths_are_one_clear_line(tmp_path: Path) -> None:
    several = log_folder(*STAGE).parents[1]
    for path, says in ((several, "give one of"), (tmp_path, "no __cluster_metadata-0"), (tmp_path / "x", "not exist")):
        code, lines, complaint = dump(path)
        assert (code, lines) == (USAGE, [])
        assert says in complaint
        assert complaint.count("\n") == 1


@pytest.mark.parametrize("name", ["bootstrap.checkpoint"])
def test_bootstrap_snapshot(name: str, tmp_path: Path) -> None:
    shutil.copy(log_folder(*STAGE).parent / name, tmp_path / name)
    _, lines, _ = dump(tmp_path / name)
    types = [json.loads(line)["type"] for line in lines]
    assert types == ["CONTROL_SNAPSHOT_HEADER", "FEATURE_LEVEL_RECORD", "CONTROL_SNAPSHOT_FOOTER"]


@pytest.mark.parametrize("form", ["jsonl", "table"])
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_characters_that_the_encoding_lacks_are_printed_as_json_has_them(
    form: str, encoding: str, tmp_path: Path
) -> None:
    """As in a locale that is not UTF-8: `dump` ended with an error."""
    names = ["müller", "山田", "x\N{PILE OF POO}"]
    values = {"mechanism": 1, "salt": b"", "storedKey": b"", "serverKey": b"", "iterations": 4096}
    rows = [data_record("USER_SCRAM_CREDENTIAL_RECORD", 0, {"name": name, **values}) for name in names]
    (tmp_path / LOG).write_bytes(batch(rows, 0))
    out = io.TextIOWrapper(io.BytesIO(), encoding)
    parser = ArgumentParser()
    add_arguments(parser)
    assert run(parser.parse_args([str(tmp_path / LOG), "--format", form]), out, io.StringIO()) == CLEAN
    out.seek(0)
    printed = [json.loads(line[line.index("{") :]) for line in out.read().splitlines()]
    assert [(row if form == "table" else row["data"])["name"] for row in printed] == names
