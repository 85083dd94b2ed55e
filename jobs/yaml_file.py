"""YAML files that people write: what can't be read is one line with its place, and a key is there once."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, ScalarNode

from jobs.exit import UsageError


class _KeysOnce(yaml.SafeLoader):
    """YAML itself takes the last of several values of a key, and says nothing."""

    def construct_mapping(self, node: MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        # Before a merge (`<<`), whose values the mapping's own may well replace.
        seen = set()
        for key, _ in node.value:
            if isinstance(key, ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    raise _TwiceError(key)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


class _TwiceError(yaml.YAMLError):
    def __init__(self, key: ScalarNode) -> None:
        self.key = key


def read_yaml(path: Path, what: str) -> object:
    """The content of a file. Raises UsageError, in one line that names `what` it is, the file and the place."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), _KeysOnce)  # noqa: S506 - it is a safe loader
    except OSError as error:
        raise UsageError(f"{what} {path} can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{what} {path} is not UTF-8 text (byte {error.start})") from error
    except _TwiceError as error:
        line = error.key.start_mark.line + 1
        raise UsageError(f"{what} {path}: `{error.key.value}` is there twice, again at line {line}; keep one") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise UsageError(f"{what} {path} is not valid YAML{place}") from error
