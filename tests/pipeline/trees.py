"""A dumped ZooKeeper tree that can be changed as a server would change it, stat fields and all."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Node = dict[str, Any]


@dataclass(frozen=True)
class At:
    """The transaction that makes a change: its zxid, and its time in milliseconds."""

    zxid: int
    time: int


class Tree:
    """The znodes of a dump, by path."""

    def __init__(self, dump: Path) -> None:
        with gzip.open(dump, "rt") as lines:
            self.nodes: dict[str, Node] = {node["path"]: node for node in map(json.loads, lines)}

    def save(self, dump: Path) -> Path:
        """Write the tree as a dump."""
        dump.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(dump, "wt") as out:
            out.writelines(json.dumps(node) + "\n" for node in self.nodes.values())
        return dump

    def text(self, path: str) -> str:
        """A znode's data."""
        return base64.b64decode(self.nodes[path]["data_base64"]).decode()

    def json(self, path: str) -> Any:
        """A znode's data, parsed."""
        return json.loads(self.text(path))

    def write(self, path: str, data: str | None, at: At) -> None:
        """SetData: the data, mzxid, mtime and version."""
        node = self.nodes[path]
        self._put(node, data)
        node |= {"mzxid": at.zxid, "mtime": at.time, "version": node["version"] + 1}

    def change(self, path: str, edit: Callable[[Any], Any], at: At) -> None:
        """SetData of edited JSON; `edit` changes the document in place."""
        document = self.json(path)
        edit(document)
        self.write(path, json.dumps(document), at)

    def miss(self, path: str, edit: Callable[[Any], Any]) -> None:
        """Make a write that changed the document as if it never happened: other data, one version less, same times."""
        document = self.json(path)
        edit(document)
        node = self.nodes[path]
        self._put(node, json.dumps(document))
        node["version"] = max(0, node["version"] - 1)

    def create(self, path: str, data: str | None, at: At) -> None:
        """Create a znode, and with it the parent's pzxid, cversion and number of children."""
        above = self.nodes[path.rpartition("/")[0] or "/"]
        stat = dict.fromkeys(("version", "cversion", "aversion", "ephemeral_owner", "num_children"), 0)
        zxids = dict.fromkeys(("czxid", "mzxid", "pzxid"), at.zxid)
        node: Node = {"path": path, **stat, **zxids, "ctime": at.time, "mtime": at.time, "acl": above["acl"]}
        self._put(node, data)
        self.nodes[path] = node
        above |= {"pzxid": at.zxid, "cversion": above["cversion"] + 1, "num_children": above["num_children"] + 1}

    def delete(self, path: str, at: At) -> None:
        """Delete a znode with everything below it, one transaction a znode; the last one has `at`'s zxid."""
        below = sorted((name for name in self.nodes if name.startswith(f"{path}/")), key=len, reverse=True)
        for name in (*below, path):
            del self.nodes[name]
        above = self.nodes[path.rpartition("/")[0] or "/"]
        above |= {"pzxid": at.zxid, "cversion": above["cversion"] + 1, "num_children": above["num_children"] - 1}

    def never_made(self, path: str) -> None:
        """Take a znode away, with everything below it, as if it had never been made."""
        root = path.rpartition("/")[0] or "/"
        made, above = self.nodes[path]["czxid"], self.nodes[root]
        self.delete(path, At(above["pzxid"], 0))
        # One removal is counted that never was, and one creation.
        above["cversion"] -= 2
        if above["pzxid"] == made:
            beside = [node["czxid"] for name, node in self.nodes.items() if (name.rpartition("/")[0] or "/") == root]
            above["pzxid"] = max(beside, default=above["czxid"])

    @staticmethod
    def _put(node: Node, data: str | None) -> None:
        raw = None if data is None else data.encode()
        node["data_base64"] = None if raw is None else base64.b64encode(raw).decode()
        node["data_length"] = len(raw or b"")


def topic(topic_id: str, partitions: dict[str, list[int]]) -> str:
    """Data of a topic's znode."""
    return json.dumps(
        {"version": 3, "topic_id": topic_id, "partitions": partitions, "adding_replicas": {}, "removing_replicas": {}}
    )


def state(leader: int, isr: list[int], leader_epoch: int = 0) -> str:
    """Data of a partition's state znode."""
    return json.dumps({"version": 1, "leader": leader, "isr": isr, "leader_epoch": leader_epoch, "controller_epoch": 1})


def create_topic(tree: Tree, name: str, topic_id: str, partitions: dict[str, list[int]], at: At) -> None:
    """Create a topic's znodes, each partition led by its first replica; each znode one transaction later."""
    root = f"/brokers/topics/{name}"
    steps: list[tuple[str, str | None]] = [(root, topic(topic_id, partitions)), (f"{root}/partitions", None)]
    for partition, replicas in partitions.items():
        steps.append((f"{root}/partitions/{partition}", None))
        steps.append((f"{root}/partitions/{partition}/state", state(replicas[0], replicas)))
    for number, (path, data) in enumerate(steps):
        tree.create(path, data, At(at.zxid + number, at.time))
