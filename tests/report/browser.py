"""Pages in a real browser, headless: what its engine makes of them, and what they ask of the network.

Where none is installed these tests are skipped, with that word; nothing is downloaded.
"""

from __future__ import annotations

import functools
import html
import http.server
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-first-run",
    "--disable-dev-shm-usage",
)
TIMEOUT_SECONDS = 120


@functools.cache
def browser() -> str | None:
    """The browser's program; None when there is none that starts."""
    for name in NAMES:
        found = shutil.which(name)
        if found is not None:
            tried = subprocess.run([found, "--version"], capture_output=True, check=False, timeout=TIMEOUT_SECONDS)
            if tried.returncode == 0:
                return found
    return None


needs_browser = pytest.mark.skipif(
    browser() is None, reason=f"no browser is installed ({', '.join(NAMES)}): pages are not looked at in one"
)


def dumped(page: str, folder: Path, *options: str) -> str:
    """The page's document after it was loaded and its scripts ran."""
    file = folder / "page.html"
    file.write_text(page, encoding="utf-8")
    program = browser()
    assert program is not None
    command = [program, *QUIET, f"--user-data-dir={folder / 'profile'}", *options, "--dump-dom", file.as_uri()]
    done = subprocess.run(command, capture_output=True, check=False, timeout=TIMEOUT_SECONDS)
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")[-2000:]
    return done.stdout.decode("utf-8", "replace")


def evaluated(page: str, script: str, folder: Path, *options: str) -> str:
    """What a script that is put into the page leaves in `window.told`, which may be a promise's value.

    The page's own policy forbids every script, so it is taken off for this.
    """
    ending = f"""<script>{script}</script><script>
    Promise.resolve(window.told).then(value => {{
      const place = document.createElement("pre"); place.id = "told"; place.textContent = value;
      document.body.replaceChildren(place); }});
    </script></body>"""
    opened = POLICY.sub("", page).replace("</body>", ending)
    document = dumped(opened, folder, "--virtual-time-budget=30000", *options)
    found = re.search(r'<pre id="told">(.*?)</pre>', document, re.DOTALL)
    assert found is not None, document[-500:]
    return html.unescape(found[1])


class _Proxy(http.server.BaseHTTPRequestHandler):
    """Keeps what was asked of the network, and gives nothing."""

    asked: list[str]

    def _note(self) -> None:
        self.asked.append(self.path)
        self.send_error(502)

    do_GET = do_POST = do_HEAD = do_CONNECT = _note  # noqa: N815 - the handler's own names

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def network() -> Iterator[tuple[str, list[str]]]:
    """A proxy on loopback for everything a browser asks: the browser's option, and what was asked."""
    asked: list[str] = []
    handler = type("Proxy", (_Proxy,), {"asked": asked})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"--proxy-server=http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
