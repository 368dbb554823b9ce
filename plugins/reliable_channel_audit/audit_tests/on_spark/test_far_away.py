"""Elsewhere than here: a standalone cluster that loses a worker, and a server of Spark Connect."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reliable_channel_audit.check import check
from reliable_channel_lab.sweep import digest, execute, local_processes, read_results

from ..generated import write_group
from ..planted import FAULTS, plant
from .cluster import ENVIRONMENT, Cluster, connect_server, standalone
from .far_away import RUNS


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with standalone(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server(tmp_path_factory.mktemp("connect")) as address:
        yield address


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("journals")
    paths = write_group(directory, participants=len(FAULTS), messages=200)
    for fault, path in zip(FAULTS, paths, strict=True):
        plant(fault, path, seed=1)
    return directory


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digest of the sweep, run in this process."""
    return digest(execute(RUNS, tmp_path_factory.mktemp("here"), local_processes(1), batch_size=3))


@contextmanager
def begun(where: str, what: str, directory: Path) -> Iterator[subprocess.Popen[str]]:
    module = "audit_tests.on_spark.far_away"
    with subprocess.Popen(
        [sys.executable, "-m", module, where, what, str(directory)],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def some_are_done(process: subprocess.Popen[str]) -> bool:
    assert process.stdout is not None
    return process.stdout.readline() == "some are done\n"


def told(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate()
    assert process.returncode == 0
    return output.strip()


def test_an_audit_is_the_same_though_a_worker_is_killed(cluster: Cluster, journals: Path) -> None:
    with begun(cluster.address, "audit", journals) as process:
        assert some_are_done(process)
        cluster.kill_a_worker()
        assert told(process) == check([journals]).to_json()


def test_a_sweep_is_the_same_though_a_worker_is_killed(
    cluster: Cluster, tmp_path: Path, here: str
) -> None:
    with begun(cluster.address, "sweep", tmp_path) as process:
        assert some_are_done(process)
        cluster.kill_a_worker()
        assert len(read_results(tmp_path)) < len(RUNS)
        assert told(process) == here


def test_an_audit_through_spark_connect_is_the_same(server: str, journals: Path) -> None:
    with begun(server, "audit", journals) as process:
        assert told(process) == check([journals]).to_json()


def test_a_sweep_through_spark_connect_is_the_same(server: str, tmp_path: Path, here: str) -> None:
    with begun(server, "sweep", tmp_path) as process:
        assert told(process) == here
