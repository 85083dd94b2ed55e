"""Completion knows every command and option; an error is one line, with its trace only when asked for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jobs import exit as codes
from jobs.cli import COMMANDS, MAINS, main, parser_of
from jobs.commands.completion import SHELLS
from jobs.version import tool_version

ROOT = Path(__file__).parents[2]


def printed(capsys: pytest.CaptureFixture[str], shell: str) -> str:
    assert main(["completion", shell]) == codes.OK
    return capsys.readouterr().out


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_and_option_is_in_the_script(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    script = printed(capsys, shell)
    for command in (*COMMANDS, *MAINS):
        assert command.name in script
    for command in COMMANDS:
        for action in parser_of(command)._actions:
            for option in action.option_strings:
                if option.startswith("--"):
                    assert (f"-l {option[2:]} " if shell == "fish" else option) in script + " ", option


def completed(folder: Path, *words: str) -> list[str]:
    """What bash offers after these words."""
    line = " ".join(f"'{word}'" for word in words)
    program = (
        f"source {folder / 'kraft-audit'}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _shtab_kraft_audit; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True, cwd=folder)
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash is installed")
def test_bash_completes_commands_options_values_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kraft-audit").write_text(printed(capsys, "bash"))
    (tmp_path / "prod.yml").touch()
    assert completed(tmp_path, "kraft-audit", "doc") == ["doctor"]
    assert "--fail-on" in completed(tmp_path, "kraft-audit", "run", "--fa")
    assert completed(tmp_path, "kraft-audit", "run", "--gate", "fin") == ["finalize"]
    assert completed(tmp_path, "kraft-audit", "run", "--conf", "pro") == ["prod.yml"]
    assert "describe" in completed(tmp_path, "kraft-audit", "features", "des")


def crash() -> int:
    raise ZeroDivisionError("orders-secret")


def full() -> int:
    raise OSError(28, "No space left on device", "/var/lib/tables")


def test_a_fault_of_the_program_is_one_line_without_what_it_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(codes.DEBUG_VARIABLE, raising=False)
    assert codes.guarded(crash) == codes.CRASH
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "ZeroDivisionError at jobs/exit.py:" in err
    assert "--debug" in err
    assert "orders-secret" not in err


def test_a_full_disk_says_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(codes.DEBUG_VARIABLE, raising=False)
    assert codes.guarded(full) == codes.CRASH
    assert "No space left on device: /var/lib/tables" in capsys.readouterr().err


def test_debug_shows_the_trace_wherever_it_stands(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Set by the option itself; set here first so that it is taken back at the end.
    monkeypatch.setenv(codes.DEBUG_VARIABLE, "")
    assert main(["run", "--conf", "/nowhere.yml", "--debug"]) == codes.USAGE
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.strip().splitlines()[-1].startswith("kraft-audit: configuration /nowhere.yml can't be read")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        # With an age that none is above, a run of last year would open a gate.
        (["gates", "--warehouse", "w", "--stale-after", "nan"], "--stale-after: give a number of hours above 0"),
        (["gates", "--warehouse", "w", "--stale-after", "inf"], "--stale-after: give a number of hours above 0"),
        (["fleet", "--warehouse", "w", "--stale-after", "nan"], "--stale-after: give a number of hours above 0"),
        (["gates", "--warehouse", "w", "--allow-unknown"], "--allow-unknown: goes with --gate"),
        (["history", "--warehouse", "w", "--last", "0"], "--last: 0 is below 1; give a number of runs"),
        (["history", "--warehouse", "w", "--last", "-5"], "--last: -5 is below 1; give a number of runs"),
        (
            ["compare", "--warehouse", "w", "--limit", "-1"],
            "--limit: -1 is below 0; give a number of rows, or 0 for all",
        ),
    ],
)
def test_a_number_that_would_hide_something_is_refused(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == codes.USAGE
    assert capsys.readouterr().err == f"kraft-audit: {said}\n"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        # As of a variable of a script that is not set: the working directory was audited.
        (["check", "--zookeeper", ""], "--zookeeper is empty"),
        (["check", "--kraft", "w", "--out", " "], "--out is empty"),
        (["verify", "--conf", "a.yml", "--run="], "--run is empty"),
        (["run", "--conf", "a.yml", ""], "an argument is empty"),
        (["dump", ""], "an argument is empty"),
        (["dump", "w", "--from", ""], "--from is empty"),
        (["gates", "--warehouse", "w", "--cluster", ""], "--cluster is empty"),
        (["diff", "--warehouse", "w", "--as-of", ""], "--as-of is empty"),
    ],
)
def test_an_empty_value_is_refused(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == codes.USAGE
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"kraft-audit: {said}: give a value, or leave it out\n")


@pytest.mark.parametrize("isr", [["--isr", ""], ["--isr="]])
def test_an_isr_of_no_replica_can_be_asked_for(isr: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A controller has an answer to it: what is refused here is the warehouse that is not there."""
    asked = ["--topic", "t", "--partition", "0", "--leader-epoch", "1", "--partition-epoch", "1"]
    main(["isr", "validate", *asked, *isr, "--warehouse", "nowhere"])
    assert "is empty" not in capsys.readouterr().err


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == codes.OK
    assert capsys.readouterr().out == f"kraft-audit {tool_version()}\n"


def test_a_command_with_a_mistake_is_met_with_the_one_that_is_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gate"]) == codes.USAGE
    assert capsys.readouterr().err.startswith("kraft-audit: unknown command `gate`; did you mean `gates`?\n")
    assert main(["zzz\x1b"]) == codes.USAGE
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["run", "verify", "maintain", "doctor"])
def test_an_option_that_is_given_twice_is_heard_twice(name: str) -> None:
    """Of two --conf the first was left out, and its cluster was not audited."""
    (command,) = (each for each in COMMANDS if each.name == name)
    parsed = parser_of(command).parse_args(["--conf", "a.yml", "b.yml", "--conf", "c.yml"])
    assert parsed.conf == [Path("a.yml"), Path("b.yml"), Path("c.yml")]


# A command that prints and finds errors, started as the console script starts it.
PRINTING = """
from jobs.commands import maintain
def tell(_):
    for number in range({lines}):
        print("zkü …", number)
    return 20
maintain.execute = tell
from jobs.cli import entry_point
entry_point()
"""


def printing(lines: int, **environment: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", PRINTING.format(lines=lines), "maintain", "--warehouse", "w"]
    environment = {**os.environ, **environment}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, env=environment)


@pytest.mark.parametrize("lines", [3, 50_000])
def test_a_reader_that_has_seen_enough_changes_no_exit_code(lines: int) -> None:
    process = printing(lines)
    assert process.stdout is not None
    assert process.stderr is not None
    if lines > 3:
        assert process.stdout.readline() == "zkü … 0\n".encode()
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=60) == codes.ERRORS


def test_what_the_encoding_lacks_is_printed_as_its_escape() -> None:
    out, err = printing(1, PYTHONIOENCODING="ascii").communicate(timeout=60)
    assert (out, err) == (rb"zk\xfc \u2026 0" + b"\n", b"")


# A command that stands still, started as the console script starts it.
STANDING_STILL = """
import sys, time
from jobs.commands import maintain, verify
def stand_still(_):
    print("standing", flush=True)
    time.sleep(60)
maintain.execute = verify.execute = stand_still
from jobs.cli import entry_point
entry_point()
"""


@pytest.mark.parametrize("argv", [("verify", "--conf", "c.yml"), ("maintain", "--warehouse", "w")])
def test_every_command_heeds_sigterm(argv: tuple[str, ...]) -> None:
    """As the first process of a container it would never see a signal that it has no handler for."""
    command = [sys.executable, "-c", STANDING_STILL, *argv]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    assert process.stdout.readline() == "standing\n"
    process.terminate()
    _, err = process.communicate(timeout=60)
    assert process.returncode == codes.TERMINATED
    assert err == "kraft-audit: stopped by SIGTERM; earlier runs and their reports stand\n"
