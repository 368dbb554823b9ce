"""The program around the judge, as Prometheus, a webhook and an operator meet it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import anyio
import anyio.lowlevel
import httpx
import pytest

from reliable_channel_audit.findings import SETTLE_MS
from reliable_channel_audit.live_audit.service import Webhook, address, as_text, metrics, run
from reliable_channel_metrics import METRICS

from ..generated import EPOCH_MS, write_group
from ..planted import plant
from .growing import live


class Receiver(BaseHTTPRequestHandler):
    """Takes reports; refuses the first."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        refused = self.server.refusals.pop() if self.server.refusals else False  # type: ignore[attr-defined]
        self.send_response(503 if refused else 200)
        self.end_headers()
        if not refused:
            self.server.taken.put(body)  # type: ignore[attr-defined]

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def receiver() -> Any:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    server.taken, server.refusals = Queue(), [True]
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_reports_reach_a_webhook_that_was_away_and_metrics_count_them(
    tmp_path: Path, receiver: Any
) -> None:
    paths = write_group(tmp_path / "journals", seed=1)
    ((_, _, message_id),) = plant("missing", paths[1], 1)
    clock = iter(range(EPOCH_MS + 200_000, EPOCH_MS + 10_000_000, SETTLE_MS))
    shown: list[dict[str, Any]] = []
    url = f"http://127.0.0.1:{receiver.server_port}/reports"

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            port = await tasks.start(
                partial(
                    run,
                    judge,
                    now_ms=lambda: next(clock),
                    show=shown.append,
                    every_s=0.01,
                    listen=("127.0.0.1", 0),
                )
            )
            async with httpx.AsyncClient() as client:
                while not shown:
                    await anyio.lowlevel.checkpoint()
                page = (await client.get(f"http://127.0.0.1:{port}/metrics")).text
                assert 'reliable_channel_audit_findings_total{audit="delivery"} 1' in page
            webhook = Webhook(url, judge.reports)
            async with webhook.client:
                assert not await webhook.send()
                assert await webhook.send()
                assert await webhook.send()
            tasks.cancel_scope.cancel()

    with live(tmp_path, tmp_path / "journals") as judge:
        anyio.run(main)
        assert "webhook_failures_total 0" in metrics(judge, None, lambda: 0)
    assert [each["message_id"] for each in shown] == [message_id]
    assert receiver.taken.get_nowait()["message_id"] == message_id
    assert receiver.taken.empty()


@pytest.mark.parametrize(
    ("variable", "value"), [("NO_PROXY", "localhost,fd00::/8"), ("ALL_PROXY", "socks5://[::1]:1")]
)
def test_proxies_that_cannot_be_used_concern_a_webhook_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    write_group(tmp_path / "journals", seed=1)
    monkeypatch.setenv(variable, value)

    judging = partial(run, now_ms=lambda: EPOCH_MS, show=print, every_s=60)

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            await tasks.start(partial(judging, judge))
            tasks.cancel_scope.cancel()

    with live(tmp_path, tmp_path / "journals") as judge:
        anyio.run(main)
        with pytest.raises(ValueError, match="correct or unset HTTPS_PROXY") as refused:
            anyio.run(partial(judging, judge, webhook_url="http://127.0.0.1:1/reports"))
        assert variable in str(refused.value)


def test_addresses() -> None:
    assert address("127.0.0.1:9464") == ("127.0.0.1", 9464)
    assert address("[::1]:9464") == ("::1", 9464)
    with pytest.raises(ValueError, match="HOST:PORT"):
        address("9464")


def test_a_report_as_a_line() -> None:
    whose = {"channel_id": "general", "participant_id": "alice"}
    finding = {"kind": "finding", "audit": "delivery", "message_id": "ab" * 32, "detail": "never"}
    assert as_text(finding | whose) == "BROKEN  delivery at alice in general: ababababab never"
    alarm = {"kind": "raised", "alarm": "silent", "messages": 0, "message_id": "", "since_ms": 5}
    assert as_text(alarm | whose) == "ALARM   silent at alice in general: since 5"
    ended = {"kind": "resolved", "alarm": "silent"}
    assert as_text(ended | whose) == "ended   silent at alice in general"


AT_ONCE = """
from reliable_channel.cli import run
from reliable_channel_audit.live_audit import judge

judge.SETTLE_MS = 0  # the journals do not grow: no line is on its way
run()
"""


def test_a_finding_is_reported_once_by_processes_that_are_killed(tmp_path: Path) -> None:
    paths = write_group(tmp_path / "journals", seed=1)
    out = tmp_path / "out"
    command = [sys.executable, "-c", AT_ONCE, "check", str(tmp_path / "journals"), "--live"]
    command += ["--out", str(out), "--json", "--every-s", "0.1", "--settle-ms", "0"]
    environment = os.environ | {"RELIABLE_CHANNEL_PLUGINS": "audit"}
    planted: list[str] = []
    for path, ends_by in zip(
        paths[1:], (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM), strict=False
    ):
        ((_, _, message_id),) = plant("missing", path, 1)
        planted.append(message_id)
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as live:
            assert live.stdout is not None
            assert json.loads(live.stdout.readline())["message_id"] == message_id
            live.send_signal(ends_by)
            assert live.stdout.read() == ""
    lines = (out / "reports.jsonl").read_text().splitlines()
    assert [json.loads(line)["message_id"] for line in lines] == planted


SAMPLE = re.compile(r"(?m)^(\w+)(?:\{(.*)\})? [\d.e+-]+$")
NAME = re.compile(r"\b((?:reliable_channel|messaging_client)_[a-z_]+)\b(?:\{(.*?)\})?")


def served(text: str) -> dict[str, set[str]]:
    """The labels of each metric of a page."""
    found: dict[str, set[str]] = {}
    for name, labels in SAMPLE.findall(text):
        found.setdefault(name, set()).update(re.findall(r"(\w+)=", labels))
    return found


def test_the_board_and_the_alerts_ask_for_metrics_that_are_served(tmp_path: Path) -> None:
    paths = write_group(tmp_path / "journals")
    lines = paths[1].read_bytes().splitlines(keepends=True)
    paths[1].write_bytes(b"".join(lines[: len(lines) // 2]))
    with live(tmp_path, tmp_path / "journals") as judge:
        judge.step(EPOCH_MS + 200_000)
        there = served(metrics(judge, None, lambda: EPOCH_MS + 200_000))
    there |= {metric.prometheus_name: {"messaging_destination_name"} for metric in METRICS}
    package = files("reliable_channel_audit")
    board = json.loads(package.joinpath("grafana.json").read_text())
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    queries += re.findall("(?m)expr: (.*)$", package.joinpath("alerts.yaml").read_text())
    asked = [pair for query in queries for pair in NAME.findall(query)]
    for name, labels in asked:
        assert {*re.findall(r"(\w+)=", labels)} <= there[name.removesuffix("_bucket")]
    own = {name for name in there if name.startswith("reliable_channel_audit_")}
    assert own - {name for name, _ in asked} == {"reliable_channel_audit_lines_total"}


def test_who_is_behind_and_since_when_is_a_metric(tmp_path: Path) -> None:
    paths = write_group(tmp_path / "journals")
    ((_, _, message_id),) = plant("missing", paths[1], 1)
    with live(tmp_path, tmp_path / "journals") as judge:
        now_ms = EPOCH_MS + 200_000
        judge.step(now_ms)
        for journal in judge.watched.values():
            journal.is_closed = False
        text = metrics(judge, None, lambda: now_ms)
    ages = re.findall(r'behind_seconds\{channel="general",participant="(\w+)"\} ([\d.]+)', text)
    accepted_ms = min(
        line["at_ms"]
        for path in paths
        for line in map(json.loads, path.read_bytes().splitlines())
        if line.get("message_id") == message_id and line["event"] == "message_logged"
    )
    behind_s = (now_ms - accepted_ms) / 1000
    assert {name: float(age) for name, age in ages} == {
        path.stem: behind_s if path == paths[1] else 0.0 for path in paths
    }
    assert "lost_messages 1\n" in text
