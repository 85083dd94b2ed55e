"""Run uv with the settings that pip has on this machine: `python tools/run_uv.py pip sync …`.

uv does not read pip's configuration. Whoever needs an index, a certificate or a proxy set it for pip (pip.conf or
PIP_*), so it is read from there; a UV_* variable that is set already wins. Only the standard library is used: this
runs before anything is installed.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

# pip's option and uv's variable. uv wants lists separated by spaces (find-links by commas).
PLAIN = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "proxy": "ALL_PROXY",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "no-index": "UV_NO_INDEX",
}
# Later sections win, as in pip itself.
SECTIONS = ("global", "install", ":env:")


def pip_settings(python: str) -> dict[str, str]:
    """What `pip config list` knows, with pip's own precedence: option to value."""
    command = [python, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603
    found: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in listed.splitlines():
        key, _, value = line.partition("=")
        section, _, option = key.partition(".")
        if section in found and value:
            found[section][option] = str(ast.literal_eval(value))
    return {option: value for section in SECTIONS for option, value in found[section].items()}


def uv_environment(settings: dict[str, str]) -> dict[str, str]:
    """The variables that give uv pip's settings."""
    chosen = {variable: " ".join(settings[option].split()) for option, variable in PLAIN.items() if option in settings}
    folders = [link for link in settings.get("find-links", "").split() if "://" in link or Path(link).is_dir()]
    if folders:
        chosen["UV_FIND_LINKS"] = ",".join(folders)
    if "UV_INDEX" in chosen:
        # pip looks at all indexes alike; the hashes in the lock files make that safe.
        chosen["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return chosen


def main(arguments: list[str]) -> int:
    """Run uv from the environment of this Python and return its exit code."""
    environment = uv_environment(pip_settings(sys.executable)) | os.environ
    command = [str(Path(sys.executable).with_name("uv")), *arguments]
    return subprocess.run(command, env=environment, check=False).returncode  # noqa: S603


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
