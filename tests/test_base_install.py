"""What a bot imports works with the base dependencies alone; what needs an extra names it."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WITHOUT_EXTRAS = """
import sys
for name in ("rich", "typer", "uvicorn", "msgspec", "matplotlib", "pyspark", "cryptography"):
    sys.modules[name] = None
"""
CHANNEL = """
import anyio
from reliable_channel import ReliableChannel

async def main():
    async with ReliableChannel("memory://base", channel_id="c", sender_id="alice") as channel:
        await channel.send(b"hello")
        print(channel.log()[-1].content.decode())

anyio.run(main)
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    environment = {"RELIABLE_CHANNEL_PLUGINS": "none", "PATH": ""}
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS + program],
        capture_output=True,
        text=True,
        env=environment,
        cwd=ROOT,
    )


def test_a_channel_needs_no_extra() -> None:
    assert run(CHANNEL).stdout == "hello\n"


def test_the_embedded_node_in_the_process_needs_no_extra() -> None:
    done = run("from waku.node import EmbeddedNode; import waku; print(EmbeddedNode.__name__)")
    assert done.stdout == "EmbeddedNode\n"


def test_the_command_line_names_its_extra() -> None:
    done = run("from reliable_channel.cli import run; run()")
    assert done.returncode == 1
    assert "pip install 'reliable-channel[cli]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_serving_names_its_extra() -> None:
    done = run("from waku.node import serve")
    assert "pip install 'reliable-channel[node]'" in done.stderr


def test_there_are_at_most_nine_base_dependencies_each_with_a_reason() -> None:
    page = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    table = page.split("### Base dependencies")[1].split("###")[0]
    needed = [re.split("[^a-z0-9]", each)[0] for each in PROJECT["dependencies"]]
    assert re.findall(r"(?m)^\| `([a-z0-9]+)` \|", table) == sorted(needed)
    assert len(needed) <= 9
