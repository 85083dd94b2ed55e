"""Property files of the nodes: read as Java reads them, and nothing kept of them but what is asked."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from jobs.commands import check
from jobs.exit import UsageError
from jobs.settings import PropertySettings, Settings, check_files, validated
from jobs.sources.property_files import read_property_files
from transforms.properties import MetaProperties, NodeProperties, NodeSettings, meta_properties, node_properties, parse

SECRET = "hunter2-of-the-encoder"
CONTROLLER = f"""# made by hand
process.roles=controller
node.id = 3000
zookeeper.metadata.migration.enable: TRUE
password.encoder.secret={SECRET}
ssl.keystore.password {SECRET}
"""


def settings(**properties: object) -> Settings:
    content: dict[str, object] = {"cluster": "c", "warehouse": "w", "zookeeper": {"connect": "zk:2181"}}
    content["properties"] = properties
    return validated(content, "test")


def test_lines_are_javas() -> None:
    text = "a=1\r\n  b : two words \n! c=3\n#d=4\ne\\=f\\:g=h=i\nlong = one,\\\n   two,\\\n three\nempty\n\nodd=x\\\\\na=2\n\\u00fc=\\t\\z"
    assert parse(text) == {
        "a": "2",
        "b": "two words ",
        "e=f:g": "h=i",
        "long": "one,two,three",
        "empty": "",
        "odd": "x\\",
        "\u00fc": "\tz",
    }


def test_a_file_that_java_refuses_is_named_and_none_of_its_values(tmp_path: Path) -> None:
    file = tmp_path / "controller.properties"
    file.write_text(f"node.id=1\npassword.encoder.secret={SECRET}\npath=C:\\users\n")
    with pytest.raises(UsageError, match="is not a property file") as refused:
        read_property_files(settings(controllers=[str(file)]).properties)
    assert str(file) in str(refused.value)
    assert SECRET not in str(refused.value)


def test_of_a_controllers_file_only_what_is_asked_is_kept() -> None:
    kept = node_properties("c.properties", CONTROLLER)
    dropped = ("password.encoder.secret", "zookeeper.metadata.migration.enable")
    roles = NodeSettings(process_roles=frozenset({"controller"}), dropped=dropped)
    assert kept == NodeProperties("c.properties", 3000, has_encoder_secret=True, migration_enabled=True, settings=roles)
    assert SECRET not in repr(kept)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "broker.id=1\npassword.encoder.secret=\n",
            NodeProperties("f", 1, False, False, NodeSettings(dropped=("password.encoder.secret",))),
        ),
        (
            "#password.encoder.secret=x\nzookeeper.metadata.migration.enable=false",
            NodeProperties("f", None, False, False, NodeSettings(dropped=("zookeeper.metadata.migration.enable",))),
        ),
        ("node.id=one", NodeProperties("f", None, False, False)),
        ("log.dir=/a,/b", NodeProperties("f", None, False, False, NodeSettings(log_dirs=2))),
        ("log.dir=/a,/b\nlog.dirs=/c", NodeProperties("f", None, False, False, NodeSettings(log_dirs=1))),
    ],
)
def test_what_is_not_set(text: str, expected: NodeProperties) -> None:
    assert node_properties("f", text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#\n#Sat Nov 21\nbroker.id=0\nversion=0\ncluster.id=F6\n", MetaProperties("m", 0, 0, "F6")),
        ("node.id=3\ndirectory.id=W\nversion=1\ncluster.id=F6\n", MetaProperties("m", 3, 1, "F6")),
        ("cluster.id=F6\n", MetaProperties("m", None, None, "F6")),
    ],
)
def test_meta_properties_of_both_versions(text: str, expected: MetaProperties) -> None:
    assert meta_properties("m", text) == expected


def test_the_files_a_configuration_names_are_read(tmp_path: Path) -> None:
    controller, meta = tmp_path / "controller.properties", tmp_path / "meta.properties"
    controller.write_text(CONTROLLER)
    meta.write_bytes(b"broker.id=0\nversion=0\n# \xfc\n")
    given = settings(
        controllers=[f"file://{controller}"], broker_meta=[str(meta)], clear_text_passwords_accepted=True
    ).properties
    files = read_property_files(given)
    assert [(file.node_id, file.has_encoder_secret) for file in files.controllers] == [(3000, True)]
    assert [(file.broker_id, file.version) for file in files.broker_meta] == [(0, 0)]
    assert (files.brokers, files.clear_text_accepted) == ((), True)


def test_no_file_is_needed() -> None:
    files = read_property_files(settings().properties)
    assert (files.controllers, files.brokers, files.broker_meta, files.clear_text_accepted) == ((), (), (), False)


def test_a_file_that_is_not_there_is_named_before_anything_is_read() -> None:
    with pytest.raises(UsageError, match=r"`properties\.broker_meta`: there is no file /nowhere/meta\.properties"):
        check_files(settings(broker_meta=["/nowhere/meta.properties"]))


def test_a_remote_file_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match=r"`properties\.controllers`: file:///nowhere: can't be read"):
        read_property_files(PropertySettings(controllers=["file:///nowhere"]))


def test_a_misspelled_key_is_told_the_right_one() -> None:
    with pytest.raises(UsageError, match=r"unknown key `properties\.broker_metas`; did you mean `broker_meta`\?"):
        settings(broker_metas=[])


def test_a_one_off_audit_takes_them_as_options(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    check.add_arguments(parser)
    meta = [tmp_path / str(broker) for broker in (0, 1)]
    for file in meta:
        file.write_text("version=0\n")
    given = [option for file in meta for option in ("--broker-meta", str(file))]
    whole = ["--kraft", str(tmp_path), "--clear-text-passwords-accepted", *given]
    expected = PropertySettings(broker_meta=[str(file) for file in meta], clear_text_passwords_accepted=True)
    assert check.settings_for(parser.parse_args(whole), tmp_path).properties == expected
    assert check.settings_for(parser.parse_args(whole[:2]), tmp_path).properties == PropertySettings()
