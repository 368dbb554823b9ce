"""A bot in a container of the image: state, health, metrics, and an encryption by a plugin."""

from collections.abc import Iterator
from time import sleep
from typing import Any, Final

import docker
import pytest
import yaml

from ..go_build import ROOT
from ..waku.bench import Bench
from .image import build

DEPLOY: Final = ROOT / "deploy"
DATA: Final = "/var/lib/reliable-channel"
PROGRAM: Final = "/bot/bot.py"
KEYS: Final = f"{DATA}/keys.txt"
MAKE_KEYS: Final = f"import os; os.umask(0o77); open({KEYS!r}, 'w').write('11' * 32)"
METRICS: Final = (
    "import urllib.request as r; print(r.urlopen('http://127.0.0.1:8080/metrics').read().decode())"
)


class Deployed:
    """Containers of the image in a network of their own, with the services of compose.yaml."""

    def __init__(self, bench: Bench) -> None:
        self._client = docker.DockerClient(base_url=bench.address, timeout=600)
        self._image = build(self._client)
        self._network, _ = bench.create_network()
        self._common = {"network": self._network, "labels": bench.labels}
        self._started: list[Any] = []
        self._volumes: list[Any] = []
        self.services = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))

    def volume(self) -> Any:
        made = self._client.volumes.create(labels=self._common["labels"])
        self._volumes.append(made)
        return made

    def start(self, command: list[str], **settings: Any) -> Any:
        started = self._client.containers.run(
            self._image, command, detach=True, **self._common, **settings
        )
        self._started.append(started)
        return started

    def run(self, command: list[str], **settings: Any) -> str:
        printed = self._client.containers.run(
            self._image, command, remove=True, **self._common, **settings
        )
        return str(printed.decode())

    def close(self) -> None:
        for container in self._started:
            container.remove(force=True)
        self._client.networks.get(self._network).remove()
        for volume in self._volumes:
            volume.remove(force=True)
        self._client.close()


def wait_for(container: Any, printed: bytes) -> None:
    """Return when a container has printed it, or fail when the container ended."""
    while printed not in container.logs():
        container.reload()
        assert container.status == "running", container.logs()
        sleep(0.2)
    container.reload()


@pytest.fixture
def deployed(bench: Bench) -> Iterator[Deployed]:
    made = Deployed(bench)
    try:
        yield made
    finally:
        made.close()


def test_a_bot_answers_once_across_a_restart_and_is_watched(deployed: Deployed) -> None:
    node, bot = (deployed.services["services"][name] for name in ("node", "bot"))
    data = {"bind": DATA, "mode": "rw"}
    serving = deployed.start(node["command"], volumes={deployed.volume().name: data})
    wait_for(serving, b"listening on")
    [network] = serving.attrs["NetworkSettings"]["Networks"].values()
    url = f"http://{network['IPAddress']}:8645"

    volume = deployed.volume().name
    deployed.run([], entrypoint=["python3", "-c", MAKE_KEYS], volumes={volume: data})
    settings = {name: str(value) for name, value in bot["environment"].items()} | {
        "RELIABLE_CHANNEL_NODE": url,
        "RELIABLE_CHANNEL_ENCRYPTION": f"aes-256-gcm:///{KEYS}",
    }
    program = {str(DEPLOY / "bot.py"): {"bind": PROGRAM, "mode": "ro"}}
    answering = deployed.start(
        [], entrypoint=bot["entrypoint"], environment=settings, volumes={volume: data, **program}
    )
    others = settings | {"RELIABLE_CHANNEL_STATE": "memory:"}
    read_only = {volume: {"bind": DATA, "mode": "ro"}}
    reader = deployed.start(
        ["listen", "--sender-id", "reader"], environment=others, volumes=read_only
    )

    for said, again in (("hello", False), ("once more", True)):
        if again:
            answering.stop(timeout=30)
            assert answering.wait()["StatusCode"] == 0
            answering.start()
        send = ["send", "--sender-id", "you", "--wait", "300", f"!shout {said}"]
        deployed.run(send, environment=others, volumes=read_only)
        wait_for(reader, f"bot: {said.upper()}\n".encode())
    assert reader.logs().count(b"bot: ") == 2

    assert answering.exec_run(bot["healthcheck"]["test"][1:]).exit_code == 0
    shown = answering.exec_run(["python3", "-c", METRICS]).output.decode()
    assert 'messaging_client_sent_messages_total{messaging_destination_name="general"' in shown
