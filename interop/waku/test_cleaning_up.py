"""Nothing is left of a run, however it ends; where there is no engine, one line says so."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Final

import docker
import pytest

from ..needed import PATIENCE_S
from . import engine
from .bench import Bench
from .reaper import LABEL

PROGRAM: Final = """
import signal
import time
from interop.waku.bench import Bench
from interop.waku.reaper import run_id
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell runs us behind it
with Bench.open() as bench, bench.network("embedded") as network:
    network.ours("alice")
    print(run_id(), flush=True)
    time.sleep(600)
"""


@pytest.fixture
def client(bench: Bench) -> Iterator[docker.DockerClient]:
    client = docker.DockerClient(base_url=bench.address)
    yield client
    client.close()


def left_of(client: docker.DockerClient, run: str) -> int:
    label = {"label": f"{LABEL}={run}"}
    containers = client.containers.list(all=True, filters=label, ignore_removed=True)
    return len(containers) + len(client.networks.list(filters=label))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_ended_leaves_nothing(
    client: docker.DockerClient, how: signal.Signals
) -> None:
    run = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with run:
        assert run.stdout is not None
        name = run.stdout.readline().strip()
        assert left_of(client, name) == 3  # a node, a peer and their network
        run.send_signal(how)
    end = monotonic() + PATIENCE_S
    while left_of(client, name) and monotonic() < end:
        sleep(0.2)
    assert left_of(client, name) == 0


def test_without_an_engine_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "answers", lambda address: False)
    monkeypatch.setattr(engine, "may_start", lambda: False)
    with pytest.raises(engine.EngineUnavailable, match="only root can start one") as refused:
        engine.ensure()
    assert "\n" not in str(refused.value)


def test_the_networks_of_the_bench_lead_nowhere(bench: Bench, client: docker.DockerClient) -> None:
    name, _ = bench.create_network()
    network = client.networks.get(name)
    assert network.attrs["Internal"]
    assert network.attrs["Labels"] == bench.labels
    bench.remove_network(name)
    assert client.networks.list(names=[name]) == []
