"""A node's sockets listen before the program is loaded."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from reliable_channel import config
from reliable_channel.cli import early_sockets
from reliable_channel.cli.early_sockets import BOUND, bind_early

MULTISTREAM = b"\x13/multistream/1.0.0\n"

SLOW_TO_LOAD = """
import sys

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":  # the first package that takes long
            sys.meta_path.remove(self)
            print("loading", flush=True)
            sys.stdin.readline()

sys.meta_path.insert(0, Slow())
sys.argv = ["reliable-channel", "node", *sys.argv[1:]]
from reliable_channel.cli import run
run()
"""


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    while BOUND:
        BOUND.pop().close()


def free_ports(count: int) -> list[int]:
    taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in taken]
    for one in taken:
        one.close()
    return ports


def bound() -> list[tuple[str, int]]:
    return [one.getsockname()[:2] for one in BOUND]


def test_clients_that_come_while_the_program_loads_are_served() -> None:
    rest, libp2p = free_ports(2)
    flags = ["--port", str(rest), "--listen", f"/ip4/127.0.0.1/tcp/{libp2p}"]
    command = [sys.executable, "-c", SLOW_TO_LOAD, *flags]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as node:
        try:
            assert node.stdout is not None
            assert node.stdin is not None
            assert node.stdout.readline() == b"loading\n"
            with (
                socket.create_connection(("127.0.0.1", libp2p)) as peer,
                socket.create_connection(("127.0.0.1", rest)) as client,
            ):
                peer.sendall(MULTISTREAM)
                client.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
                node.stdin.write(b"\n")
                node.stdin.flush()
                assert peer.recv(len(MULTISTREAM)) == MULTISTREAM
                assert client.recv(15) == b"HTTP/1.1 200 OK"
            assert httpx.get(f"http://127.0.0.1:{rest}/health").status_code == 200
        finally:
            node.terminate()


def test_what_flags_name_and_the_environment_and_a_file(tmp_path: Path) -> None:
    one, two, three, four = free_ports(4)
    file = tmp_path / "node.toml"
    file.write_text(f'[node]\nport = {one}\nlisten = ["/ip4/127.0.0.1/tcp/{two}/ws"]\n')
    bind_early(["--config", str(file)], {})
    assert bound() == [("127.0.0.1", two), ("127.0.0.1", one)]
    environment = {
        "RELIABLE_CHANNEL_CONFIG": str(file),
        "RELIABLE_CHANNEL_NODE_PORT": str(three),
        "RELIABLE_CHANNEL_NODE_LISTEN": f"/ip4/127.0.0.1/tcp/{four} /dns4/name/tcp/1/ws",
    }
    bind_early([], environment)
    assert bound()[2:] == [("127.0.0.1", four), ("127.0.0.1", three)]


def test_what_cannot_be_bound_is_left_to_the_command() -> None:
    (taken,) = free_ports(1)
    with socket.create_server(("127.0.0.1", taken)):
        bind_early([f"--port={taken}"], {})
    for flags in (
        ["--port", "0"],
        ["--port", "99999"],
        ["--port", "tcp://10.0.0.1:8645"],
        ["--port"],
        ["--host", "no such host", "--port", "1234"],
        ["--help"],
    ):
        bind_early(flags, {"RELIABLE_CHANNEL_NODE_PORT": "0", "RELIABLE_CHANNEL_CONFIG": "none"})
    assert bound() == []


def test_the_names_are_those_of_the_configuration() -> None:
    assert early_sockets.PREFIX == config.PREFIX
    assert early_sockets.FILE_VARIABLE == config.FILE_VARIABLE
