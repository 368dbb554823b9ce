"""Elsewhere than here: a standalone cluster that loses a worker, and a server of Spark Connect."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from reliable_channel.pipeline.check import check

from ..generated import write_group
from ..planted import FAULTS, plant
from .cluster import ENVIRONMENT, connect_server, standalone

END_S = 500


@pytest.fixture
def journals(tmp_path: Path) -> Path:
    directory = tmp_path / "journals"
    paths = write_group(directory, participants=len(FAULTS), messages=200)
    for fault, path in zip(FAULTS, paths, strict=True):
        plant(fault, path, seed=1)
    return directory


@contextmanager
def audit(where: str, journals: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.pipeline.on_spark.far_away", where, str(journals)]
    process = subprocess.Popen(
        command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def output(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdout is not None
    return process.stdout


def test_a_cluster_gives_the_same_though_a_worker_is_killed(journals: Path, tmp_path: Path) -> None:
    with standalone(tmp_path) as (address, workers), audit(address, journals) as process:
        assert output(process).readline() == "reading\n"
        workers[0].kill()
        told, _ = process.communicate(timeout=END_S)
        assert process.returncode == 0
    assert told.strip() == check([journals]).to_json()


def test_spark_connect_gives_the_same(journals: Path, tmp_path: Path) -> None:
    with connect_server(tmp_path) as address, audit(address, journals) as process:
        told, _ = process.communicate(timeout=END_S)
        assert process.returncode == 0
    assert told.strip() == check([journals]).to_json()
