"""The programs of docs/operations.md run."""

import json
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from socket import socket
from typing import Any
from urllib.request import urlopen

import pytest

from reliable_channel import ChannelOptions, ReliableChannel
from reliable_channel.cli.node import configured
from reliable_channel.options import Limits
from reliable_channel.transport import MemoryNetwork
from tests.channel.world import make_channel
from tests.cli.processes import Node

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"


def program_with(text: str) -> str:
    found = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (program,) = [program for program in found if text in program]
    return str(program)


@pytest.mark.anyio
async def test_sending_more_than_fits_the_buffer() -> None:
    network = MemoryNetwork()
    options = ChannelOptions.of_preset(
        "documented",
        limits=Limits(outgoing_messages=3),
        sync_min_interval_ms=40,
        retry_interval_ms=60,
    )
    alice = make_channel(network.transport(), "alice", options=options)
    payloads = [b"%d" % number for number in range(10)]
    async with make_channel(network.transport(), "bob", options=options), alice:
        names: dict[str, Any] = {}
        exec(program_with("OutgoingBufferFull"), names)
        await names["send_all"](alice, payloads)
        assert [entry.content for entry in alice.log()] == payloads


def test_a_program_with_a_probe_is_ready_and_ends_at_sigterm() -> None:
    with Node() as node, socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        taken.close()
        program = program_with("serve_health").replace("http://127.0.0.1:8645", node.address)
        program = program.replace("port=8080", f"port={port}")
        process = subprocess.Popen([sys.executable, "-c", program])
        try:
            while True:
                with suppress(OSError):
                    answer = urlopen(f"http://127.0.0.1:{port}/readyz")
                    break
            (channel,) = json.load(answer)["channels"]
            assert channel["ready"] and channel["sender_id"] == "shop"
            process.terminate()
            assert process.wait() == 0
        finally:
            process.kill()
            process.wait()


@pytest.mark.anyio
async def test_the_file_of_the_page_makes_a_channel(tmp_path: Path) -> None:
    (file,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    path = tmp_path / "channel.toml"
    path.write_text(file.replace("/var/lib", str(tmp_path)))
    channel = ReliableChannel.from_config(path, channel_id="orders")
    assert (channel.sender_id, channel.has_node) == ("shop", True)
    assert configured({"port": False, "store": False}, path)["port"] == 8645
