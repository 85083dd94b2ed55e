"""Each refusal is one clear line, soon, and shows no credential; what may pass is tried again, but not for ever."""

from __future__ import annotations

import io
import logging
import shutil
import socket
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.cli import main
from jobs.commands.quorum import live_lines
from jobs.exit import CRASH, USAGE
from jobs.sources.kraft.live.connection import Endpoint, Security, parse_endpoint
from jobs.sources.kraft.live.copy import copy_quorum
from jobs.sources.kraft.live.errors import NoLeaderError, QuorumError, RefusedError
from jobs.sources.kraft.live.quorum import QuorumClient, QuorumSettings
from tests.certificates import self_signed
from tests.live.fake import CLUSTER_ID, FakeQuorum, Hangup, fake_controllers
from tests.live.test_copy import CHECKPOINTS, LOG, stored, trimmed

PASSWORD = "open-sesame-4711"


def fails(quorum: FakeQuorum, folder: Path, text: str, kind: type[Exception] = RefusedError, **values: Any) -> None:
    with pytest.raises(kind, match=text):
        copy_quorum(quorum.settings(**values), folder)
    assert not list(folder.glob("__*"))


def test_a_principal_without_the_right_is_told_which(tmp_path: Path) -> None:
    with fake_controllers(FakeQuorum.of_log(LOG)) as quorum:
        quorum.denied = frozenset({1})
        fails(quorum, tmp_path, "does not let this client fetch the metadata log: it needs CLUSTER_ACTION")


def test_controllers_of_another_cluster_are_not_read(tmp_path: Path) -> None:
    with fake_controllers(FakeQuorum.of_log(LOG)) as quorum:
        fails(quorum, tmp_path, "is a controller of another cluster than other", cluster_id="other")


def test_a_brokers_listener_is_told_from_a_controllers(tmp_path: Path) -> None:
    def broker(key: int, request: Any, answer: Any) -> Any:
        if key == 1:
            answer.error_code = 100
        return answer

    with fake_controllers(FakeQuorum.of_log(LOG), 1) as quorum:
        quorum.controllers[0].behaviour = broker
        fails(quorum, tmp_path, "is a broker's listener; name the controllers' own")


def test_a_listener_without_snapshots_is_no_controllers(tmp_path: Path) -> None:
    def old(key: int, request: Any, answer: Any) -> Any:
        if key == 18:
            answer.api_keys = [each for each in answer.api_keys if each.api_key != 59]
        return answer

    with fake_controllers(FakeQuorum.of_log(LOG), 1) as quorum:
        quorum.controllers[0].behaviour = old
        fails(quorum, tmp_path, r"does not offer what reading the quorum needs \(API key 59")


def plain(password: str = PASSWORD, **values: Any) -> Security:
    return Security("SASL_PLAINTEXT", "PLAIN", "ann", password, **values)


def test_a_right_password_is_taken_and_a_wrong_one_is_called_so(tmp_path: Path) -> None:
    with fake_controllers(FakeQuorum.of_log(LOG), password=PASSWORD) as quorum:
        fails(quorum, tmp_path, r"refused user 'ann' or the password \(PLAIN\)", security=plain("wrong"))
        copy_quorum(quorum.settings(security=plain()), tmp_path)
    assert stored(tmp_path) == LOG


def test_a_mechanism_that_is_not_offered_is_named(tmp_path: Path) -> None:
    def refuse(key: int, request: Any, answer: Any) -> Any:
        if key == 17:
            answer.error_code = 33
        return answer

    with fake_controllers(FakeQuorum.of_log(LOG), 1, password=PASSWORD) as quorum:
        quorum.controllers[0].behaviour = refuse
        security = Security("SASL_PLAINTEXT", "SCRAM-SHA-256", "ann", PASSWORD)
        fails(quorum, tmp_path, "does not take SASL mechanism SCRAM-SHA-256; it offers PLAIN", security=security)


def test_a_listener_that_wants_sasl_is_guessed(tmp_path: Path) -> None:
    with fake_controllers(FakeQuorum.of_log(LOG), 1, password=PASSWORD) as quorum:
        fails(quorum, tmp_path, "at the first request; does its listener want SASL", QuorumError, patience_seconds=0.3)


def test_no_log_line_and_no_error_shows_the_password(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    said = io.StringIO()
    handler = logging.StreamHandler(said)
    logging.getLogger().addHandler(handler)
    with caplog.at_level(logging.DEBUG), fake_controllers(FakeQuorum.of_log(LOG), password=PASSWORD) as quorum:
        settings = quorum.settings(security=plain())
        copy_quorum(settings, tmp_path)
        quorum.controllers[0].password = "changed"
        with pytest.raises(QuorumError) as error:
            copy_quorum(quorum.settings(security=plain(), patience_seconds=0.2), tmp_path)
    logging.getLogger().removeHandler(handler)
    assert PASSWORD not in said.getvalue() + caplog.text + str(error.value) + repr(settings)
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert PASSWORD.encode() not in written


def test_tls_with_a_known_authority_is_taken(tmp_path: Path) -> None:
    certificate = self_signed(tmp_path)
    with fake_controllers(FakeQuorum.of_log(LOG), tls=certificate.server()) as quorum:
        copy_quorum(quorum.settings(security=Security("SSL", ca_file=certificate.file)), tmp_path / "copy")
    assert stored(tmp_path / "copy") == LOG


def test_an_unknown_authority_is_refused(tmp_path: Path) -> None:
    certificate = self_signed(tmp_path)
    with fake_controllers(FakeQuorum.of_log(LOG), tls=certificate.server()) as quorum:
        fails(quorum, tmp_path / "copy", "its certificate is not accepted: self", security=Security("SSL"))


def test_another_host_name_is_refused(tmp_path: Path) -> None:
    certificate = self_signed(tmp_path)
    with fake_controllers(FakeQuorum.of_log(LOG), 1, tls=certificate.server()) as quorum:
        controller = quorum.controllers[0]
        # Another address of this machine, which the certificate does not name.
        listener = socket.create_server(("127.0.0.2", 0))
        controller.listener.close()
        controller.listener, controller.endpoint = listener, Endpoint("127.0.0.2", listener.getsockname()[1])
        threading.Thread(target=controller.serve, daemon=True).start()
        security = Security("SSL", ca_file=certificate.file)
        fails(quorum, tmp_path / "copy", "its certificate is not accepted: IP address mismatch", security=security)
        controller.requests.clear()
        copy_quorum(
            quorum.settings(security=Security("SSL", ca_file=certificate.file, verify_hostname=False)),
            tmp_path / "copy",
        )


def test_a_listener_without_tls_is_called_so(tmp_path: Path) -> None:
    with fake_controllers(FakeQuorum.of_log(LOG), 1) as quorum, pytest.raises(QuorumError, match="TLS"):
        copy_quorum(quorum.settings(security=Security("SSL"), patience_seconds=0.2), tmp_path)


def test_a_listener_with_tls_is_guessed(tmp_path: Path) -> None:
    certificate = self_signed(tmp_path)
    with fake_controllers(FakeQuorum.of_log(LOG), 1, tls=certificate.server()) as quorum:
        text = "does its listener speak another security protocol|is it TLS that it speaks"
        fails(quorum, tmp_path / "copy", text, QuorumError, patience_seconds=0.2)


def test_a_file_that_is_no_certificate_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("not a certificate")
    with fake_controllers(FakeQuorum.of_log(LOG), 1) as quorum:
        fails(quorum, tmp_path / "copy", r"ca\.pem: can't be used for TLS", security=Security("SSL", ca_file=file))


def test_when_nobody_leads_each_controllers_word_is_told(tmp_path: Path) -> None:
    with fake_controllers(FakeQuorum.of_log(LOG)) as quorum:
        quorum.leader = -1
        quorum.controllers[1].frozen = True
        quorum.controllers[2].kill()
        text = r"within 0.5 s: \S+ has no leader; \S+ did not answer within 0.2 s; \S+(: connection refused| closed)"
        fails(quorum, tmp_path, text, NoLeaderError, patience_seconds=0.5, request_seconds=0.2)


def test_a_quorum_without_a_leader_is_no_wrong_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2 is for a call or a configuration that is wrong; here the cluster is."""
    with fake_controllers(FakeQuorum.of_log(LOG)) as quorum:
        quorum.leader = -1
        address = ",".join(str(each.endpoint) for each in quorum.controllers)
        options = ["--cluster-id", CLUSTER_ID, "--controllers", address, "--patience", "0.5"]
        assert main(["fetch", *options, "--out", str(tmp_path)]) == CRASH
        assert main(["quorum", "--controllers", address, "--patience", "0.5"]) == CRASH
        for each in quorum.controllers:
            each.kill()
        assert main(["fetch", *options, "--out", str(tmp_path)]) == USAGE
    assert capsys.readouterr().err.count("no leader was found among the controllers") == 3


def test_a_refusal_by_one_that_does_not_lead_is_no_refusal(tmp_path: Path) -> None:
    def hang_up(key: int, request: Any, answer: Any) -> Any:
        if key == 17:
            answer.error_code = 33
        return answer

    with fake_controllers(FakeQuorum.of_log(LOG), password=PASSWORD) as quorum:
        quorum.controllers[0].behaviour = hang_up
        quorum.leader = 3001
        copy_quorum(quorum.settings(security=plain()), tmp_path)
    assert stored(tmp_path) == LOG


def test_the_leader_is_found_through_another_controller(tmp_path: Path) -> None:
    """Whoever names one controller gets the quorum."""
    with fake_controllers(FakeQuorum.of_log(LOG)) as quorum:
        leader = quorum.controllers[0]

        def name(key: int, request: Any, answer: Any) -> Any:
            if key == 1:
                node = type(answer).NodeEndpoint(
                    node_id=3000, host=leader.endpoint.host, port=leader.endpoint.port, rack=None
                )
                answer.node_endpoints = [node]
            return answer

        quorum.controllers[1].behaviour = name
        settings = quorum.settings()
        alone = type(settings)((quorum.controllers[1].endpoint,), CLUSTER_ID, request_seconds=1, patience_seconds=1)
        copy_quorum(alone, tmp_path)
    assert stored(tmp_path) == LOG


@pytest.mark.parametrize("text", ["controller", "controller:", ":9093", "controller:0", "controller:99999", "a:b"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not host:port"):
        parse_endpoint(text)


@pytest.mark.parametrize("host", ["controller..example.com", f"{'a' * 70}.example.com"])
def test_a_name_that_can_be_no_hosts_is_one_line(tmp_path: Path, host: str) -> None:
    settings = QuorumSettings((Endpoint(host, 9093),), CLUSTER_ID, request_seconds=1, patience_seconds=1)
    with pytest.raises(QuorumError, match=f"{host}:9093: no such host"):
        copy_quorum(settings, tmp_path)


def test_another_controller_answers_for_one_whose_name_can_be_no_hosts(tmp_path: Path) -> None:
    with fake_controllers(FakeQuorum.of_log(LOG)) as quorum:
        settings = quorum.settings()
        named = (Endpoint("controller..example.com", 9093), *settings.controllers)
        copy_quorum(replace(settings, controllers=named), tmp_path)
    assert stored(tmp_path) == LOG


def test_an_address_of_version_6_is_read() -> None:
    assert parse_endpoint("[::1]:9093") == Endpoint("::1", 9093)
    assert str(Endpoint("::1", 9093)) == "[::1]:9093"


def test_the_quorum_is_shown_by_whoever_may_describe_it(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_controllers(FakeQuorum.of_log(LOG)) as quorum:
        quorum.denied = frozenset({1})
        quorum.leader = 3001
        address = ",".join(str(each.endpoint) for each in quorum.controllers)
        assert main(["quorum", "--controllers", address, "--patience", "2"]) == 0
        out = capsys.readouterr().out
        assert f"leader 3001   epoch {quorum.epoch}   high watermark {quorum.high_watermark}" in out
        assert out.count(" voter ") == 2
        with QuorumClient(quorum.settings()) as client:
            assert live_lines(client.describe())[0] == out.splitlines()[0]
        quorum.denied = frozenset({55})
        assert main(["quorum", "--controllers", address, "--patience", "2"]) == 2
    assert "needs DESCRIBE on the cluster" in capsys.readouterr().err


def test_fetch_says_what_it_copied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with fake_controllers(FakeQuorum.of_log(LOG)) as quorum:
        address = str(quorum.controllers[0].endpoint)
        options = ["--cluster-id", CLUSTER_ID, "--out", str(tmp_path), "--controllers", address]
        assert main(["fetch", *options]) == 0
        assert main(["fetch", *options]) == 0
    out = capsys.readouterr().out
    assert f"committed below offset {quorum.end}: the high watermark of controller 3000" in out
    assert f"new since offset {quorum.end}" in out
    assert stored(tmp_path) == LOG


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--username", "ann"], "mechanism, username and password_env are for SASL"),
        (["--security-protocol", "SASL_SSL"], "SASL_SSL needs mechanism, username, password_env"),
        (["--security-protocol", "TLS"], "`security.protocol`"),
        (["--key-file", "key.pem", "--security-protocol", "SSL"], "key_file needs certificate_file"),
    ],
)
def test_options_that_do_not_fit_are_told(
    options: list[str], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fetch", "--cluster-id", "x", "--out", str(tmp_path), "--controllers", "a:1", *options]) == 2
    assert text in capsys.readouterr().err


def test_a_connection_that_is_lost_each_time_is_given_up(tmp_path: Path) -> None:
    def hang_up(key: int, request: Any, answer: Any) -> Any:
        raise Hangup

    with fake_controllers(FakeQuorum.of_log(LOG), 1) as quorum:
        quorum.controllers[0].behaviour = hang_up
        fails(quorum, tmp_path, "no leader was found among the controllers", QuorumError, patience_seconds=0.3)


def test_an_answer_that_comes_slowly_is_waited_for(tmp_path: Path) -> None:
    """Eight megabytes over a slow line take longer than a controller may be silent."""
    with fake_controllers(FakeQuorum.of_log(LOG), 1) as quorum:
        quorum.controllers[0].slow, quorum.answer_bytes = True, len(LOG)
        copy_quorum(quorum.settings(request_seconds=0.3), tmp_path)
    assert stored(tmp_path) == LOG


def test_an_answer_that_comes_byte_by_byte_is_not_waited_for(tmp_path: Path) -> None:
    """Each byte comes in time; all of them would take for ever."""
    with fake_controllers(FakeQuorum.of_log(LOG), 1) as quorum:
        quorum.controllers[0].drips = True
        started = time.monotonic()
        fails(quorum, tmp_path, "did not answer within 0.3 s", QuorumError, request_seconds=0.3, patience_seconds=1.0)
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("size", "line"),
    [
        (
            2**62,
            r"the checkpoint at offset \d+ of controller 3000 .* has 4611686018427387904 bytes, and no more than \d+ can be used",
        ),
        (-5, r"the checkpoint at offset \d+ of controller 3000 .* is said to have -5 bytes"),
    ],
)
def test_a_snapshot_that_can_not_be_of_its_size_is_refused_at_once(tmp_path: Path, size: int, line: str) -> None:
    def claim(key: int, request: Any, answer: Any) -> Any:
        if key == 59:
            answer.topics[0].partitions[0].size = size
        return answer

    with fake_controllers(trimmed(max(CHECKPOINTS)), 1) as quorum:
        quorum.controllers[0].behaviour = claim
        with pytest.raises(QuorumError, match=line) as refused:
            copy_quorum(quorum.settings(), tmp_path, history=False)
        assert "\n" not in str(refused.value)
        assert len([key for key, _ in quorum.controllers[0].requests if key == 59]) == 1
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.name != ".lock"] == []


def test_a_snapshot_that_comes_in_single_bytes_is_not_waited_for(tmp_path: Path) -> None:
    with fake_controllers(trimmed(max(CHECKPOINTS)), 1) as quorum:
        quorum.answer_bytes = 1
        started = time.monotonic()
        with pytest.raises(QuorumError, match=r"sends a checkpoint too slowly: \d+ bytes so far"):
            copy_quorum(quorum.settings(patience_seconds=0.5), tmp_path, history=False)
    assert time.monotonic() - started < 30


def test_a_log_that_would_fill_the_disk_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=10**12, free=10**9))
    with fake_controllers(FakeQuorum.of_log(LOG), 1) as quorum:
        fails(
            quorum,
            tmp_path,
            "the next segment of the log has 67108864 bytes, and no more than 0 can be used",
            QuorumError,
        )


def test_an_answer_takes_no_longer_than_it_may(tmp_path: Path) -> None:
    """It comes fast enough for its length, and its length is what would take an hour."""
    with fake_controllers(FakeQuorum.of_log(LOG), 1) as quorum:
        quorum.controllers[0].slow, quorum.answer_bytes = True, len(LOG)
        started = time.monotonic()
        fails(
            quorum,
            tmp_path,
            "did not answer within 0.2 s: its answer comes too slowly",
            QuorumError,
            answer_seconds=0.2,
            patience_seconds=1.0,
        )
    assert time.monotonic() - started < 10
