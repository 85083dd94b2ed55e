"""The command line: what a person meets before Spark starts. One clear line, exit code 2."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.cli import COMMANDS, MAINS, main
from tests.captures import capture

ROOT = Path(__file__).parents[2]


def said(capsys: pytest.CaptureFixture[str], argv: list[str]) -> tuple[int, str]:
    code = main(argv)
    captured = capsys.readouterr()
    return code, captured.err


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(command.name in out for command in (*COMMANDS, *MAINS))


def test_an_unknown_command_is_usage(capsys: pytest.CaptureFixture[str]) -> None:
    code, err = said(capsys, ["chek"])
    assert code == 2
    assert "unknown command `chek`; did you mean `check`?" in err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["check"], "nothing to audit: give --zookeeper, --kraft or both"),
        (["check", "--zookeeper", "/nowhere/tree.jsonl.gz"], "there is no file /nowhere/tree.jsonl.gz"),
        (["check", "--zookeeper", "/nowhere"], "--zookeeper: /nowhere does not exist"),
        (["check", "--kraft", "/nowhere"], "there is no folder /nowhere"),
        (["run", "--conf", "/nowhere.yml"], "configuration /nowhere.yml can't be read"),
    ],
)
def test_wrong_calls_get_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, argv: list[str], message: str
) -> None:
    out = ["--out", str(tmp_path)] if argv[0] == "check" else []
    code, err = said(capsys, [*argv, *out])
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("yaml", "message"),
    [
        ("cluster: a\nwarehouse: w\nkraft: {folder: [x]}\n", "unknown key `kraft.folder`; did you mean `folders`?"),
        ("cluster: a\nwarehouse: w\nzookeper: {}\nkraft: {folders: [x]}\n", "did you mean `zookeeper`?"),
        ("cluster: a\nwarehouse: w\n", "give zookeeper, kraft or both"),
        ("cluster: a\nwarehouse: w\nzookeeper: {connect: a, dump: b}\n", "exactly one of connect, folder and dump"),
        ("cluster: 'a b'\nwarehouse: w\nkraft: {folders: [x]}\n", "`cluster`"),
        ("cluster: [\n", "is not valid YAML at line 2"),
        ("- a\n", "must be a mapping"),
        ("cluster: a\nreport: {}\nwarehouse: w\nreport: {}\n", "`report` is there twice, again at line 4; keep one"),
        (
            "cluster: a\nwarehouse: w\nkraft: {folders: [x], folders: [y]}\n",
            "`folders` is there twice, again at line 3",
        ),
        (
            "cluster: a\nwarehouse: w\nkraft: {folders: [x]}\nas_of: 2026-01-31 04:00:00\n",
            "`as_of`: give `data`, or a time with its zone, such as 2026-11-24T12:00:00Z",
        ),
        ("cluster: a\nwarehouse: w\nkraft: {folders: [x]}\nreport:\n", "`report`: keys and values are expected"),
    ],
)
def test_a_wrong_configuration_names_the_key(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, yaml: str, message: str
) -> None:
    path = tmp_path / "conf.yml"
    path.write_text(yaml)
    code, err = said(capsys, ["run", "--conf", str(path)])
    assert code == 2
    assert message in err
    assert str(path) in err
    assert len(err.strip().splitlines()) == 1


def test_a_value_in_the_wrong_place_is_never_shown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "conf.yml"
    path.write_text(
        "cluster: a\nwarehouse: w\nkraft: {folders: [x]}\nsecrets: {fingerprint_key_env: 'hunter2 hunter2'}\n"
    )
    code, err = said(capsys, ["run", "--conf", str(path)])
    assert code == 2
    assert "hunter2" not in err


def test_quorum_prints_the_copies_without_spark(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quorum", str(capture("3.9.1", "7") / "kraft")]) == 0
    out = capsys.readouterr().out
    assert "3000 ends at 475" in out
    assert "committed  below 490 (majority)" in out


def test_quorum_without_a_log_is_usage(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, err = said(capsys, ["quorum", str(tmp_path)])
    assert code == 2
    assert "__cluster_metadata-0" in err


def test_the_demonstration_prints_in_a_locale_that_is_not_utf_8() -> None:
    said = "import sys; from jobs.commands.demo import demo; demo.execute = lambda _: print('──') or 0; sys.exit(demo.main([]))"
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    made = subprocess.run([sys.executable, "-c", said], cwd=ROOT, env=environment, capture_output=True, check=False)
    assert (made.returncode, made.stdout, made.stderr) == (0, b"\\u2500\\u2500\n", b"")
