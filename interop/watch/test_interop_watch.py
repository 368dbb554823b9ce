"""The page of `reliable-channel watch` in a headless Chromium, with journals of real channels."""

import os
import subprocess
import sys
from pathlib import Path

from ..browser.test_interop_browser import browser
from ..debian import ProgramUnavailable
from ..needed import needed
from ..node_install import NodeUnavailable
from .headless import visited

EVIL = "<b class=evil>mallory</b><img src=x onerror=alert(1)>"
PROGRAM = f"""
import anyio
from reliable_channel import ReliableChannel

def member(name, **options):
    options["journal"] = f"{{len(name)}}.jsonl"
    return ReliableChannel(channel_id="demo", sender_id=name, **options)

async def main():
    async with member("alice") as alice, member({EVIL!r}, drop_incoming=0.0) as mallory:
        mallory.cut_off(True)
        for number in range(5):
            await alice.send(b"missed")
            await anyio.sleep(0.2)
        mallory.cut_off(False)
        for number in range(20):
            await alice.send(b"hello")
            await mallory.send(b"hello")
            await anyio.sleep(0.3)
        await anyio.sleep(8)

anyio.run(main)
"""


def test_a_person_goes_back_in_time_and_asks_why_a_message_is_late(tmp_path: Path) -> None:
    with needed("the browser", ProgramUnavailable):
        chromium = browser()
    plain = os.environ | {"RELIABLE_CHANNEL_PLUGINS": "none"}
    subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, env=plain, check=True)
    command = [sys.executable, "-m", "reliable_channel", "watch", str(tmp_path)]
    environment = os.environ | {"RELIABLE_CHANNEL_PLUGINS": "watch"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as served:
        try:
            assert served.stdout is not None
            url = served.stdout.readline().removeprefix("open ").strip()
            with needed("npm", NodeUnavailable):
                seen = visited("use.mjs", chromium, url)
        finally:
            served.terminate()
    assert seen["problems"] == [] and seen["markup"] == 0
    assert all(each.startswith(url) for each in seen["asked"]), "nothing is loaded from elsewhere"
    assert seen["end"]["channel"] == "demo"
    assert seen["end"]["counts"] == "2 participants, 45 messages"
    assert "of it overhead" in seen["past"]["rate"]
    assert EVIL in seen["end"]["lamps"], "a name is text"
    assert "asked are: Store" in seen["missing"]
    assert "alice" in seen["past"]["detail"] and "hint" in seen["past"]["detail"]
