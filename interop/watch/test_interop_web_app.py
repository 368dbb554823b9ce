"""The chat of docs/how-to/web-app.md, its files as the page has them, in two real browsers."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.docs.sessions import blocks

from ..browser.test_interop_browser import browser
from ..debian import ProgramUnavailable
from ..go_build import ROOT
from ..needed import needed
from ..node_install import NodeUnavailable
from .headless import visited

NODE = [sys.executable, "-m", "reliable_channel", "node", "--port", "0"]
SERVE = """
import socket, uvicorn
listener = socket.create_server(("127.0.0.1", 0))
print(f"on http://127.0.0.1:{listener.getsockname()[1]}/", flush=True)
config = uvicorn.Config("app:app", log_level="warning", timeout_graceful_shutdown=5)
uvicorn.Server(config).run(sockets=[listener])
"""


@contextmanager
def serving(command: list[str], folder: Path) -> Iterator[str]:
    """Start a program; yield the URL at the end of the first line that it prints."""
    environment = os.environ | {"RELIABLE_CHANNEL_PLUGINS": "none"}
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


def test_two_browsers_see_each_other(tmp_path: Path) -> None:
    with needed("the browser", ProgramUnavailable):
        chromium = browser()
    files = {b.title: b.text for b in blocks((ROOT / "docs/how-to/web-app.md").read_text())}
    with serving(NODE, tmp_path) as node:
        (tmp_path / "page.html").write_text(files["page.html"])
        (tmp_path / "app.py").write_text(files["app.py"].replace("http://127.0.0.1:8645", node))
        with (
            serving([sys.executable, "-c", SERVE], tmp_path) as url,
            needed("npm", NodeUnavailable),
        ):
            ann, ben = visited("chat.mjs", chromium, url)
    assert ann == ben == ["web: ann: <b>anybody there?</b>", "web: ben: I am"]
