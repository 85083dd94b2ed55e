"""Every option that takes a Kafka release refuses a text that is none, in one line, before it looks at any table."""

from __future__ import annotations

import pytest

from jobs.cli import main
from jobs.exit import USAGE

OPTIONS = [
    (["downgrade"], "--to"),
    (["downgrade", "--to", "3.9"], "--kafka-version"),
    (["features", "matrix"], "--kafka-version"),
    (["features", "version-mapping"], "--kafka-version"),
    (["isr"], "--kafka-version"),
]
NO_RELEASES = ["4", "3.9.1.2", "3.9.x", "v3.9", " 4.0.0-SNAPSHOT", "3.9.", "3.٩", "latest"]


@pytest.mark.parametrize(("command", "option"), OPTIONS)
@pytest.mark.parametrize("text", NO_RELEASES)
def test_a_text_that_is_no_release_is_refused(
    command: list[str], option: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = _refused([*command, option, text], capsys)
    assert option in line
    assert line.endswith("is not a release such as 3.9 or 3.9.1; known are 2.0 to 4.4")


@pytest.mark.parametrize(("command", "option"), OPTIONS)
@pytest.mark.parametrize("text", ["99.9", "4.99.0", "1.1"])
def test_a_release_that_is_not_known_is_refused(
    command: list[str], option: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = _refused([*command, option, text], capsys)
    assert line.endswith(f"Kafka {'.'.join(text.split('.')[:2])} is not known; known are 2.0 to 4.4")


def _refused(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(argv) == USAGE
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    return line
