"""Streams that are closed, or whose encoding lacks a character."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.slow import slow

from .forked import run
from .processes import PROGRAM, Node

LOCALES: Final = {
    "zh_CN.GBK": ("zh_CN", "GBK"),
    "en_US.ISO-8859-1": ("en_US", "ISO-8859-1"),
}
FORKED: Final = """
import os, runpy, sys
from itertools import groupby
import reliable_channel.channel, reliable_channel.cli.send, reliable_channel.cli.doctor.nodes
words, codes = sys.argv[1:], []
for is_next, command in groupby(words, lambda word: word == "+"):
    if is_next:
        continue
    if not (child := os.fork()):
        sys.argv[1:] = command
        runpy.run_module("reliable_channel", run_name="__main__", alter_sys=True)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(*codes)
"""
"""Runs the commands between plus signs, and prints their exit statuses."""
CHANNEL: Final = ("--node", "memory://x", "--sender-id", "alice", "--state", "memory:")


def shell(script: str, environment: Mapping[str, str] = {}) -> "subprocess.CompletedProcess[bytes]":
    """Run a script in which `$RC` is the command line."""
    inherited = {**os.environ, "RC": " ".join(PROGRAM), "PYTHONWARNINGS": "error"}
    return subprocess.run(
        ["bash", "-c", script], env=inherited | dict(environment), capture_output=True, check=False
    )


@pytest.mark.parametrize("locale", ["en_US.ISO-8859-1", *slow("zh_CN.GBK", "C")])
def test_commands_work_in_every_locale(locale: str, tmp_path: Path) -> None:
    """A process for each locale, forked for each command, as starting one costs more than both."""
    if locale in LOCALES:
        language, charset = LOCALES[locale]
        command = ("localedef", "-i", language, "-f", charset, str(tmp_path / locale))
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip(f"localedef cannot make {locale}")
    environment = {**os.environ, "LOCPATH": str(tmp_path), "LC_ALL": locale}
    send: list[str | bytes] = ["send", "h\u00e9llo \U0001f389".encode(), *CHANNEL]
    words: list[str | bytes] = [*send, "+", "doctor", *CHANNEL, "+", "send", "--help-all"]
    done = subprocess.run(
        [sys.executable, "-c", FORKED, *words],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    errors = done.stderr.decode("latin-1")
    assert "Traceback" not in errors
    sent, *others = done.stdout.splitlines()[-1].split()
    refused = "error: an argument must be text in" in errors
    assert sent == (b"2" if refused else b"0"), errors
    assert others == [b"0", b"0"], errors


def test_an_emoji_of_a_stranger_does_not_end_a_listener() -> None:
    with Node() as node:
        channel = ("--node", node.address, "--state", "memory:")
        run("send", "h\u00e9 \U0001f389", "--sender-id", "bob", *channel, check=True)
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
        run("send", "one", "--sender-id", "bob", *channel.split(), check=True)
        for flag in ("", "--json"):
            done = shell(
                f"$RC listen {flag} --sender-id carol {channel} | head -0; echo ${{PIPESTATUS[0]}}"
            )
            assert (done.stdout, done.stderr) == (b"141\n", b"")


def test_a_node_says_that_its_output_is_closed() -> None:
    done = shell("$RC node --port 0 | true; echo ${PIPESTATUS[0]}")
    assert done.stdout == b"4\n"
    assert re.fullmatch(rb"error: standard output is closed.*\n", done.stderr)
