"""What containers run: the commands of the compose files end in order at SIGTERM, and what the
image copies is there."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
DATA = "/var/lib/reliable-channel"
COMPOSE = ("compose.yaml", "compose.nwaku.yaml")


def services(file: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / file).read_text())["services"]
    return found


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


@contextmanager
def running(command: list[str], **environment: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that is ended by SIGTERM, as a container is."""
    inherited = {name: value for name, value in os.environ.items() if "RELIABLE_" not in name}
    with subprocess.Popen(
        command, env=inherited | environment, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            status = process.wait()
        assert status == 0


def answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=60) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def test_the_node_and_the_bot_of_the_compose_file_work_together(tmp_path: Path) -> None:
    port, probes = free_port(), free_port()
    found = services("compose.yaml")
    arguments = [
        one.replace(DATA, str(tmp_path)).replace("8645", str(port)).replace("/tcp/8000", "/tcp/0")
        for one in found["node"]["command"]
    ]
    bot = tmp_path / "bot.py"
    bot.write_text((DEPLOY / "bot.py").read_text().replace("8080", str(probes)))
    settings = {
        name: str(value).replace("node:8645", f"127.0.0.1:{port}").replace(DATA, str(tmp_path))
        for name, value in found["bot"]["environment"].items()
    }
    program = Path(sys.executable).with_name("reliable-channel")
    with running([str(program), *arguments]) as node:
        assert node.stdout is not None
        while not node.stdout.readline().startswith("listening on "):
            assert node.poll() is None
        with running([sys.executable, str(bot)], **settings) as process:
            while not answers(f"http://127.0.0.1:{probes}/readyz"):
                assert process.poll() is None
    assert (tmp_path / "store.db").exists() and (tmp_path / "bot.db").exists()
    assert (tmp_path / "node.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("file", COMPOSE)
def test_probes_ask_for_what_the_services_serve(file: str) -> None:
    for name, service in services(file).items():
        if check := service.get("healthcheck"):
            [port] = re.findall(r"127\.0\.0\.1:(\d+)", check["test"][-1])
            source = (DEPLOY / "bot.py").read_text() if name == "bot" else str(service["command"])
            assert f"port={port}" in source


def test_the_image_copies_what_there_is_and_what_its_context_lets_in() -> None:
    copied = [
        source
        for line in (DEPLOY / "Dockerfile").read_text().splitlines()
        if line.startswith("COPY ") and "--from" not in line
        for source in line.split()[1:-1]
    ]
    permitted = (ROOT / ".dockerignore").read_text().splitlines()
    assert copied
    for source in copied:
        assert (ROOT / source).exists()
        assert f"!{source}" in permitted


@pytest.mark.parametrize("file", [*COMPOSE, "bot.py", "Dockerfile"])
def test_the_page_names_the_files(file: str) -> None:
    page = (ROOT / "docs" / "how-to" / "deploy.md").read_text()
    assert f"deploy/{file}" in page
