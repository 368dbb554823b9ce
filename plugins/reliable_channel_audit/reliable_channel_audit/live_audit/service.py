"""Live audit as a program, which reads new lines, serves metrics and calls a webhook."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
import httpx
from anyio import to_thread

from reliable_channel.health_server import serve_health

from ..findings import Audit
from .alarms import MISSING, SILENT, UNACKNOWLEDGED
from .judge import LiveJudge
from .reports import Reports

RETRY_S: Final = 5.0
"""First pause after the webhook refused a report. The pause doubles after each refused report."""
MAX_RETRY_S: Final = 300.0
TIMEOUT_S: Final = 10.0
_PREFIX: Final = "reliable_channel_audit_"
Samples = dict[str, float]
"""Values of a metric by their labels."""
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Webhook:
    """Webhook that gets the reports in order, each at least once and with an `id`.

    Raises:
        ValueError: the environment's proxies cannot be used.
    """

    def __init__(self, url: str, reports: Reports) -> None:
        self._url, self._reports = url, reports
        self.failures = 0
        """Attempts that failed, in all."""
        try:
            context = ssl.create_default_context()
            self.client = httpx.AsyncClient(verify=context, timeout=TIMEOUT_S)
        except (ImportError, httpx.InvalidURL, ValueError) as error:
            raise ValueError(
                f"the webhook's proxy cannot be used: {error}; correct or unset HTTPS_PROXY, "
                "HTTP_PROXY, ALL_PROXY or NO_PROXY"
            ) from error

    async def send(self) -> bool:
        """Send the waiting reports to the webhook. If the webhook refused a report, `send` returns
        False."""
        for end, report in self._reports.unsent():
            try:
                answer = await self.client.post(self._url, json={"id": str(end), **report})
                answer.raise_for_status()
            except httpx.HTTPError:
                self.failures += 1
                return False
            self._reports.sent(end)
        return True

    async def run(self, every_s: float) -> None:
        """Send reports until cancelled."""
        wait_s = RETRY_S
        async with self.client:
            while True:
                took_all = await self.send()
                await anyio.sleep(every_s if took_all else wait_s)
                wait_s = RETRY_S if took_all else min(2 * wait_s, MAX_RETRY_S)


async def run(
    judge: LiveJudge,
    *,
    now_ms: Callable[[], int],
    show: Callable[[dict[str, Any]], None],
    every_s: float,
    listen: tuple[str, int] | None = None,
    webhook_url: str | None = None,
    task_status: anyio.abc.TaskStatus[int] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Judge growing journals until cancelled. `show` is called with every report. Metrics are
    served at `/metrics` of `listen`, and `task_status` gets the port.

    Raises:
        OSError: the port or a directory cannot be used.
        ValueError: there is a webhook, and the environment's proxies cannot be used.
    """
    webhook = None if webhook_url is None else Webhook(webhook_url, judge.reports)
    async with anyio.create_task_group() as tasks:
        if webhook is not None:
            tasks.start_soon(webhook.run, every_s)
        port = 0
        if listen is not None:
            pages = {"/metrics": partial(metrics, judge, webhook, now_ms)}
            serve = partial(serve_health, host=listen[0], port=listen[1], pages=pages)
            port = await tasks.start(serve)
        task_status.started(port)
        while True:
            for report in await to_thread.run_sync(judge.step, now_ms()):
                show(report)
            await anyio.sleep(every_s)


def metrics(judge: LiveJudge, webhook: Webhook | None, now_ms: Callable[[], int]) -> str:
    """Return the figures of an audit in the text format of Prometheus."""
    reports, verdict, now = judge.reports, judge.verdict, now_ms()
    everyone, counts, raised = dict(judge.watched), dict(reports.counts), list(reports.raised)
    delivered, owed = verdict.delivered
    since_ms = {each[:2]: each.since_ms for each in verdict.behind}
    behind: Samples = {}
    for whose, each in everyone.items():
        if not each.is_closed:
            channel, name = (part.translate(_ESCAPES) for part in whose)
            behind_s = max(0, now - since_ms.get(whose, now)) / 1000
            behind[f'channel="{channel}",participant="{name}"'] = behind_s
    alarms: Samples = {
        f'alarm="{kind}"': sum(key[2] == kind for key in raised)
        for kind in (UNACKNOWLEDGED, MISSING, SILENT)
    }
    findings: Samples = {f'audit="{each.value}"': counts.get(each.value, 0) for each in Audit}
    unacknowledged = sum(each.count(UNACKNOWLEDGED) for each in everyone.values())
    missing = sum(each.count(MISSING) for each in everyone.values())
    lag_s = max(0, now - judge.newest_ms) / 1000 if judge.newest_ms else 0
    failures = webhook.failures if webhook else 0
    families: list[tuple[str, str, Samples | float]] = [
        ("findings_total", "Broken promises that were reported, by audit.", findings),
        ("alarms", "Alarms that last, by kind.", alarms),
        ("behind_seconds", "Age of the oldest message that a participant lacks, or 0.", behind),
        ("delivered_messages", "Deliveries to others of messages that are judged now.", delivered),
        ("lost_messages", "Failed deliveries of messages that are judged now.", owed - delivered),
        ("participants", "Participants that have a journal.", len(everyone)),
        ("unacknowledged_messages", "Own messages without an acknowledgement.", unacknowledged),
        ("missing_messages", "Messages that are known by reference alone.", missing),
        ("without_journal", "Heard participants without a journal.", len(verdict.without_journal)),
        ("withdrawn_findings_total", "Findings withdrawn by late messages.", reports.taken_back),
        ("lines_total", "Lines of journals that were read.", judge.lines),
        ("unreadable_lines_total", "Lines that were set aside.", judge.set_aside),
        ("judgement_seconds", "Duration of the last judgement.", judge.judged_s),
        ("lag_seconds", "Age of the newest line that was read.", lag_s),
        ("webhook_failures_total", "Reports that the webhook did not take.", failures),
    ]
    return "".join(_family(*each) for each in families)


def _family(name: str, text: str, samples: Samples | float) -> str:
    kind = "counter" if name.endswith("_total") else "gauge"
    lines = [f"# HELP {_PREFIX}{name} {text}", f"# TYPE {_PREFIX}{name} {kind}"]
    if isinstance(samples, dict):
        lines += [f"{_PREFIX}{name}{{{labels}}} {value}" for labels, value in samples.items()]
    else:
        lines.append(f"{_PREFIX}{name} {samples}")
    return "\n".join(lines) + "\n"


def address(text: str) -> tuple[str, int]:
    """Return the host and the port in a text `HOST:PORT`.

    Raises:
        ValueError: it is not one.
    """
    parts = urlsplit(f"//{text}")
    if parts.hostname is None or parts.port is None:
        raise ValueError(f"{text!r} must be HOST:PORT, as 127.0.0.1:9464")
    return parts.hostname, parts.port


def as_text(report: dict[str, Any]) -> str:
    """Return a report as a line for people."""
    kind, whose = report["kind"], f"{report['participant_id']} in {report['channel_id']}"
    about = f" {report['message_id'][:10]}" if report.get("message_id") else ""
    if kind == "finding":
        return f"BROKEN  {report['audit']} at {whose}:{about} {report['detail']}"
    if kind == "withdrawn":
        return f"taken back: {report['audit']} at {whose}:{about} was late, not lost"
    if kind == "resolved":
        return f"ended   {report['alarm']} at {whose}"
    number = f" {report['messages']} messages, the oldest" if report["messages"] else ""
    return f"ALARM   {report['alarm']} at {whose}:{number}{about} since {report['since_ms']}"
