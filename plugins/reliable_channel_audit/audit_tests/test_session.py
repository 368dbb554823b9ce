"""What is missing for Spark is said before anything starts, and how to get it."""

from __future__ import annotations

import zipfile
from pathlib import Path
from socket import socket

import pytest

from reliable_channel_audit import session as sessions
from reliable_channel_audit.session import SparkUnavailable, java_version, package_zip, session


def java(directory: Path, told: str) -> str:
    path = directory / "java"
    path.write_text(f"#!/bin/sh\necho '{told}' >&2\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("told", "version"),
    [('openjdk version "17.0.15" 2025-04-15', 17), ('java version "21" 2023-09-19 LTS', 21)],
)
def test_javas_that_will_do(tmp_path: Path, told: str, version: int) -> None:
    assert java_version(java(tmp_path, told)) == version


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ('openjdk version "11.0.2" 2019-01-15', "is Java 11, which Spark 4 cannot use"),
        ('java version "1.8.0_392"', "is Java 8, which Spark 4 cannot use"),
        ("coffee", "does not say which version it is"),
    ],
)
def test_javas_that_will_not_do(tmp_path: Path, told: str, why: str) -> None:
    with pytest.raises(SparkUnavailable, match=f"{why}.*install Java 17 or 21"):
        java_version(java(tmp_path, told))


def test_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(
        SparkUnavailable, match=r"no Java was found: install Java 17 or 21 \(Debian"
    ):
        java_version()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkUnavailable, match="cannot be run"):
        java_version()


def test_no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "find_spec", lambda name: None)
    with pytest.raises(SparkUnavailable, match=r"pip install 'reliable-channel-audit\[spark\]'"):
        session()


@pytest.mark.parametrize("master", ["http://127.0.0.1:7077", "spark://", "yarn", "sc://here:1"])
def test_no_master(master: str) -> None:
    with pytest.raises(SparkUnavailable, match=r"`master` must be local\[\*\] or spark://host"):
        session(master)


@pytest.mark.parametrize("kind", ["spark", "sc"])
def test_where_nothing_answers(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    (tmp_path / "bin").mkdir()
    java(tmp_path / "bin", 'openjdk version "17.0.15" 2025-04-15')
    monkeypatch.setattr(sessions, "find_spec", lambda name: object())
    monkeypatch.setattr(sessions, "getproxies", dict)
    with socket() as closed:  # bound, and nobody listens
        closed.bind(("127.0.0.1", 0))
        address = f"{kind}://127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(
            SparkUnavailable, match=rf"no Spark server answers at {address} \(.*refused"
        ):
            session(address) if kind == "spark" else session(remote=address)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("no such host\nat once", "no such host"),
        ("An error occurred while calling None.\n: a.B: no\n\tat a.b", "a.B: no"),
        ("An error.\n: a.B: no\n\tat a.b\nCaused by: c.D: refused\n\t... 9 more", "c.D: refused"),
    ],
)
def test_of_an_error_of_javas_the_innermost_cause_is_told(text: str, told: str) -> None:
    assert sessions.first_line(RuntimeError(text)) == told


def test_the_package_goes_along_as_one_file(tmp_path: Path) -> None:
    with zipfile.ZipFile(package_zip(tmp_path)) as packed:
        names = packed.namelist()
    assert "reliable_channel_audit/facts.py" in names
    assert "waku/client.py" in names
    assert all(name.endswith(".py") for name in names)
