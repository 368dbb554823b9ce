"""`reliable-channel watch` as a person types it."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE
from typing import Any

import anyio
import httpx
import pytest

from pytest_reliable_channel.channels import Channels
from reliable_channel import BlockingReliableChannel
from reliable_channel_watch.command import MINUTE_S, _feed, _report
from reliable_channel_watch.model import View
from tests.cli.forked import Process
from tests.cli.in_process import run
from watch_tests.world import talk


@contextmanager
def running(*arguments: str) -> Iterator[Process]:
    environment = os.environ | {"RELIABLE_CHANNEL_PLUGINS": "watch"}
    with Process("watch", *arguments, stdout=PIPE, stderr=PIPE, env=environment) as process:
        try:
            yield process
        finally:
            process.terminate()


def test_the_page_of_journals_is_served_until_sigterm(
    virtual_time: tuple[str, dict[str, Any]], tmp_path: Path
) -> None:
    async def record() -> None:
        async with Channels() as channels:
            await talk(channels, tmp_path)

    backend, options = virtual_time
    anyio.run(record, backend=backend, backend_options=options)
    with running(str(tmp_path)) as process:
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix("open ").strip()
        assert httpx.get(url).is_success
        with httpx.stream("GET", f"{url}events") as response:
            lines = response.iter_lines()
            assert "alice" in next(line for line in lines if line.startswith("data: "))
    assert process.returncode == 0


def test_a_node_and_the_page_of_what_passes_it_are_one_process() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        node = f"http://127.0.0.1:{taken.getsockname()[1]}"
    arguments = ("--sniff", "--channel-id", "ops", "--node", node, "--with-node")
    with running(*arguments) as process:
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix("open ").strip()
        assert httpx.get(f"{node}/health").is_success
        with BlockingReliableChannel(node, channel_id="ops", sender_id="alice") as alice:
            alice.send(b"hello")
            with httpx.stream("GET", f"{url}events", timeout=None) as response:
                assert any("alice" in line for line in response.iter_lines())
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "give exactly one of"),
        (["--sniff"], "--sniff needs"),
        (["nowhere", "--sniff"], "give exactly one of"),
        (["nowhere"], "nowhere does not exist"),
        (["nowhere", "--with-node"], "needs --sniff"),
        (["--sniff", "--with-node", "--node", "http://10.0.0.1:1"], "of this machine"),
        (["--sniff", "--channel-id", "x", "-o", "oops"], "NAME=VALUE"),
        (["--sniff", "--channel-id", "x", "-o", "clustre_id=1"], "cluster_id"),
        (["--sniff", "--channel-id", "x", "--node", "gopher://x"], "gopher"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], problem: str) -> None:
    done = run("watch", *arguments, RELIABLE_CHANNEL_PLUGINS="watch")
    assert done.returncode not in (0, 70) and problem in done.stderr
    assert "Traceback" not in done.stderr


def test_a_journal_of_another_format_is_named(tmp_path: Path) -> None:
    path = tmp_path / "alice.jsonl"
    path.write_text('{"event":"journal_opened","at_ms":1,"format":"sds-journal/3"}\n')
    with pytest.raises(ValueError, match=r"alice.jsonl .* 'sds-journal/3'; this reads reliable-c"):
        _feed([path], False, 0, {}, None, ())


def test_a_channel_is_joined_with_what_the_environment_gives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RELIABLE_CHANNEL_CLUSTER_ID", "16")
    feed: Any = _feed((), False, 0, {"sender_id": "dora", "channel_id": "ops"}, None, ())
    channel = feed.keywords["open_channel"](Path("folder"))
    assert (channel.sender_id, channel.channel_id) == ("dora", "ops")
    assert channel.options.cluster_id == 16


def test_a_line_is_printed_every_minute(capsys: pytest.CaptureFixture[str]) -> None:
    view, pauses = View(), list[float]()

    async def sleep(seconds: float) -> None:
        if len(pauses) == 2:
            raise InterruptedError
        pauses.append(seconds)
        view.opened(f"participant {len(pauses)}", 0)

    with pytest.raises(InterruptedError):
        anyio.run(_report, view, sleep)
    assert pauses == [MINUTE_S, MINUTE_S]
    assert capsys.readouterr().out.splitlines() == [
        "participants: 1; messages: 0; behind: none; lost: 0",
        "participants: 2; messages: 0; behind: none; lost: 0",
    ]
