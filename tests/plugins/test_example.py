"""The package of docs/plugins.md, installed as anybody would and used in processes of its own."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "reliable_channel_tally"
PAGE = (ROOT / "docs" / "plugins.md").read_text()
OBSERVED = """
import anyio
from reliable_channel import ReliableChannel
import reliable_channel_tally


async def main():
    async with ReliableChannel(
        "memory://tally", channel_id="general", sender_id="alice", journal="alice.jsonl"
    ) as channel:
        for number in range(3):
            await channel.send(b"%d" % number)


anyio.run(main)
print(reliable_channel_tally.counts["sending_message"])
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the example is installed, without a network."""
    target = tmp_path_factory.mktemp("site")
    flags = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--target", str(target)]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install"]
    subprocess.run([*pip, *flags, str(EXAMPLE)], check=True)
    return target


def run(site: Path, cwd: Path, *arguments: str, **environment: str) -> tuple[str, str]:
    """Standard output and error of a process that finds the example installed."""
    own = {"PYTHONPATH": str(site), "RELIABLE_CHANNEL_PLUGINS": "tally"}
    done = subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | own | environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, done.stderr


def test_it_is_listed_with_where_it_came_from(site: Path, tmp_path: Path) -> None:
    output, _ = run(site, tmp_path, "-m", "reliable_channel", "plugins", "--json")
    (tally,) = (p for line in output.splitlines() if (p := json.loads(line))["name"] == "tally")
    assert tally["distribution"] == "reliable-channel-tally"
    assert tally["version"] == "0.1.0"
    assert sorted(tally["hooks"]) == ["register_commands", "register_observers"]
    assert tally["registered"] == {"observers": ["tally"], "commands": ["tally"]}
    assert tally["problem"] == ""


def test_it_observes_and_its_command_counts(site: Path, tmp_path: Path) -> None:
    """And what a trace shows of its calls."""
    output, traced = run(site, tmp_path, "-c", OBSERVED, RELIABLE_CHANNEL_TRACE_PLUGINS="1")
    assert output == "3\n"
    assert traced.count("plugin 'tally': observer 'tally'(event=SendingMessage(") == 3
    assert "plugin 'built in': transport 'memory'(url='memory://tally'" in traced
    output, _ = run(site, tmp_path, "-m", "reliable_channel", "tally", "alice.jsonl")
    assert "3 sending_message" in output.splitlines()


def test_left_out_it_does_nothing(site: Path, tmp_path: Path) -> None:
    output, _ = run(site, tmp_path, "-c", OBSERVED, RELIABLE_CHANNEL_PLUGINS="none")
    assert output == "0\n"


def test_the_page_has_it_line_by_line_in_forty() -> None:
    lines = 0
    for kind, name in (("toml", "pyproject.toml"), ("python", "reliable_channel_tally.py")):
        (shown,) = re.findall(rf"`{name}`:\n\n```{kind}\n(.*?)```", PAGE, re.DOTALL)
        assert shown == (EXAMPLE / name).read_text()
        lines += len(shown.splitlines())
    assert lines <= 40
