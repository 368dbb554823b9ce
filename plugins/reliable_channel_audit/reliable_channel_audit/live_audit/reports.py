"""Reports of a live audit, in a file of JSON lines that also tells what was reported.

A finding counts as reported when its line is in the file. A process that is killed therefore never
reports a finding twice.
"""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from ..findings import Audit, Finding, severity
from .alarms import Alarm, Key

FINDING: Final = "finding"
WITHDRAWN: Final = "withdrawn"
RAISED: Final = "raised"
RESOLVED: Final = "resolved"
NAME: Final = "reports.jsonl"
SENT: Final = "reports.sent"
"""File that contains the number of bytes of reports that the webhook has accepted."""
_ONE_A_LOG: Final = frozenset({Audit.LOG_ORDER.value, Audit.EQUAL_LOGS.value})
"""Audits that name the first place of a log: another place later is the same finding."""


class Reports:
    """Writer of reports to a file in a folder, which knows the earlier reports in the file."""

    def __init__(self, directory: Path) -> None:
        """Read what was reported before.

        Raises:
            OSError: the directory cannot be used.
        """
        directory.mkdir(parents=True, exist_ok=True)
        self.path = directory / NAME
        self._sent_path = directory / SENT
        self._known: dict[str, dict[str, Any]] = {}
        """By id the findings that stand: audit, channel, participant and message."""
        self.taken_back = 0
        """Findings that were withdrawn."""
        self.raised: set[Key] = set()
        """Alarms that last."""
        self.counts: dict[str, int] = {}
        """Findings by audit."""
        self._file = self.path.open("a+b")
        self._recover()

    def finding(self, known: str, finding: Finding, now_ms: int) -> dict[str, Any] | None:
        """Report a finding under its `identity`. If the finding was reported before, the result is
        None."""
        if known in self._known:
            return None
        values = {"id": known, "kind": FINDING, "severity": severity(finding)}
        return self._append(values | finding._asdict() | {"reported_ms": now_ms})

    def withdrawn(self, known: str, now_ms: int) -> dict[str, Any]:
        """Withdraw a finding that was reported before."""
        values = {"id": known, "kind": WITHDRAWN, **self._known[known]}
        return self._append(values | {"reported_ms": now_ms})

    def alarms(self, alarms: list[Alarm], now_ms: int) -> list[dict[str, Any]]:
        """Report alarms that begin, and alarms that have ended."""
        now = {(each.channel_id, each.participant_id, each.kind): each for each in alarms}
        reports = []
        for key, alarm in now.items():
            if key not in self.raised:
                values = alarm._asdict() | {"kind": RAISED, "alarm": alarm.kind}
                reports.append(self._append(values | {"reported_ms": now_ms}))
        for key in sorted(self.raised - now.keys()):
            names = zip(("channel_id", "participant_id", "alarm"), key, strict=True)
            reports.append(self._append({"kind": RESOLVED, **dict(names), "reported_ms": now_ms}))
        return reports

    def unsent(self) -> list[tuple[int, dict[str, Any]]]:
        """Return the reports that the webhook has not accepted yet, each with its end in the
        file."""
        try:
            begin = int(self._sent_path.read_text())
        except (OSError, ValueError):
            begin = 0
        with self.path.open("rb") as file:
            file.seek(begin)
            found = []
            for text in file:
                begin += len(text)
                found.append((begin, json.loads(text)))
            return found

    def sent(self, end: int) -> None:
        """Note that the webhook has accepted all reports up to an end in the file."""
        beside = self._sent_path.with_suffix(".new")
        beside.write_text(str(end))
        beside.replace(self._sent_path)

    def close(self) -> None:
        self._file.close()

    def _append(self, values: dict[str, Any]) -> dict[str, Any]:
        self._file.write(json.dumps(values).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._note(values)
        return values

    def _note(self, values: dict[str, Any]) -> None:
        if values["kind"] == FINDING:
            names = ("audit", "channel_id", "participant_id", "message_id")
            self._known[values["id"]] = {name: values[name] for name in names}
            self.counts[values["audit"]] = self.counts.get(values["audit"], 0) + 1
            return
        if values["kind"] == WITHDRAWN:
            del self._known[values["id"]]
            self.taken_back += 1
            return
        key = values["channel_id"], values["participant_id"], values["alarm"]
        if values["kind"] == RAISED:
            self.raised.add(key)
        else:
            self.raised.discard(key)

    def _recover(self) -> None:
        """Read the file; a torn last line was not reported, and is cut off."""
        self._file.seek(0)
        end = 0
        for text in self._file:
            if not text.endswith(b"\n"):
                break
            try:
                self._note(json.loads(text))
            except (ValueError, KeyError, TypeError):
                break
            end += len(text)
        self._file.truncate(end)
        self._file.seek(end)


def identity(finding: Finding) -> str:
    """Return the text that identifies a finding, from its stable fields."""
    which = finding.message_id
    if finding.audit in _ONE_A_LOG:
        which = ""
    elif finding.detail.startswith("the clock went back"):
        which = str(finding.at_ms)
    parts = finding.audit, finding.channel_id, finding.participant_id, str(finding.life), which
    return sha256("\0".join(parts).encode()).hexdigest()[:32]
