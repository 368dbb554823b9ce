"""Streams that are closed, or whose encoding lacks a character."""

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from .processes import PROGRAM, Node

LOCALES: Final = {
    "zh_CN.GBK": ("zh_CN", "GBK"),
    "en_US.ISO-8859-1": ("en_US", "ISO-8859-1"),
}
CHANNEL: Final = ("--node", "memory://x", "--sender-id", "alice", "--state", "memory:")


@pytest.fixture(scope="session")
def locales(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of locales that are not UTF-8."""
    folder = tmp_path_factory.mktemp("locales")
    for name, (language, charset) in LOCALES.items():
        command = ("localedef", "-i", language, "-f", charset, str(folder / name))
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip(f"localedef cannot make {name}")
    return folder


def shell(script: str, environment: Mapping[str, str] = {}) -> "subprocess.CompletedProcess[bytes]":
    """Run a script in which `$RC` is the command line."""
    inherited = {**os.environ, "RC": " ".join(PROGRAM), "PYTHONWARNINGS": "error"}
    return subprocess.run(
        ["bash", "-c", script], env=inherited | dict(environment), capture_output=True, check=False
    )


@pytest.mark.parametrize("locale", [*LOCALES, "C"])
@pytest.mark.parametrize(
    "command",
    [
        ("send", "h\u00e9llo \U0001f389".encode(), *CHANNEL),
        ("doctor", *CHANNEL),
        ("send", "--help-all"),
    ],
)
def test_a_command_works_in_every_locale(
    command: tuple[str | bytes, ...], locale: str, locales: Path, tmp_path: Path
) -> None:
    environment = {**os.environ, "LOCPATH": str(locales), "LC_ALL": locale}
    done = subprocess.run(
        [*PROGRAM, *command], env=environment, cwd=tmp_path, capture_output=True, check=False
    )
    errors = done.stderr.decode("latin-1")
    assert "Traceback" not in errors
    refused = "error: an argument must be text in" in errors
    assert done.returncode == (2 if refused else 0), errors
    assert not refused or b"send" in [os.fsencode(word) for word in command]


def test_an_emoji_of_a_stranger_does_not_end_a_listener() -> None:
    with Node() as node:
        channel = ("--node", node.address, "--state", "memory:")
        sent = shell(f"$RC send 'h\u00e9 \U0001f389' --sender-id bob {' '.join(channel)}")
        assert sent.returncode == 0, sent.stderr
        heard = shell(
            f"$RC listen --count 1 --sender-id carol {' '.join(channel)}",
            {"PYTHONIOENCODING": "latin-1"},
        )
    assert heard.returncode == 0, heard.stderr
    assert heard.stdout == "bob: h\u00e9 \\U0001f389\n".encode("latin-1")


def test_an_argument_that_is_no_text_is_refused_in_words() -> None:
    done = shell("$RC send $'caf\\xe9' " + " ".join(CHANNEL), {"LC_ALL": "C.UTF-8"})
    assert done.returncode == 2
    assert re.fullmatch(rb"error: an argument must be text in utf-8 .*\n", done.stderr)


@pytest.mark.parametrize("command", ["send -", "chat", "peer"])
def test_a_closed_input_is_named(command: str) -> None:
    done = shell(f"$RC {command} {' '.join(CHANNEL)} <&-")
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert b"standard input is closed" in done.stderr


@pytest.mark.parametrize("command", ["send hello", "chat", "doctor"])
def test_a_closed_output_is_none(command: str) -> None:
    done = shell(f"$RC {command} {' '.join(CHANNEL)} </dev/null >&-")
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_reader_that_leaves_ends_a_listener_quietly() -> None:
    with Node() as node:
        channel = f"--node {node.address} --state memory:"
        sent = shell(f"$RC send one --sender-id bob {channel}")
        assert sent.returncode == 0, sent.stderr
        for flag in ("", "--json"):
            done = shell(
                f"$RC listen {flag} --sender-id carol {channel} | head -0; echo ${{PIPESTATUS[0]}}"
            )
            assert (done.stdout, done.stderr) == (b"141\n", b"")


def test_a_node_says_that_its_output_is_closed() -> None:
    done = shell("$RC node --port 0 | true; echo ${PIPESTATUS[0]}")
    assert done.stdout == b"4\n"
    assert re.fullmatch(rb"error: standard output is closed.*\n", done.stderr)
