"""Reports of a live audit, in a file of JSON lines that also tells what was reported.

A finding counts as reported when its line is in the file. A process that is killed therefore never
reports a finding twice.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
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
_OF_FINDING: Final = ("audit", "channel_id", "participant_id", "message_id")
_OF_ALARM: Final = ("channel_id", "participant_id", "alarm")
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
        self.counts = Counter[str]()
        """Findings by audit."""
        self._file = self.path.open("a+b")
        self._recover()

    def finding(self, known: str, finding: Finding, now_ms: int) -> dict[str, Any] | None:
        """Report a finding under its `identity`. If the finding was reported before, the result is
        None."""
        if known in self._known:
            return None
        values = {"id": known, "kind": FINDING, "severity": severity(finding)}
        return self._append(values | finding._asdict(), now_ms)

    def withdrawn(self, known: str, now_ms: int) -> dict[str, Any]:
        """Withdraw a finding that was reported before."""
        return self._append({"id": known, "kind": WITHDRAWN, **self._known[known]}, now_ms)

    def alarms(self, alarms: Iterable[Alarm], now_ms: int) -> list[dict[str, Any]]:
        """Report alarms that begin, and alarms that have ended."""
        now = {(each.channel_id, each.participant_id, each.kind): each for each in alarms}
        begun: list[dict[str, Any]] = [
            alarm._asdict() | {"kind": RAISED, "alarm": alarm.kind}
            for key, alarm in now.items()
            if key not in self.raised
        ]
        ended = [
            {"kind": RESOLVED, **dict(zip(_OF_ALARM, key, strict=True))}
            for key in sorted(self.raised - now.keys())
        ]
        return [self._append(each, now_ms) for each in begun + ended]

    def unsent(self) -> list[tuple[int, dict[str, Any]]]:
        """Return the reports that the webhook has not accepted yet, each with its end in the
        file."""
        end, found = 0, []
        with suppress(OSError, ValueError):
            end = int(self._sent_path.read_text())
        with self.path.open("rb") as file:
            file.seek(end)
            for text in file:
                end += len(text)
                found.append((end, json.loads(text)))
        return found

    def sent(self, end: int) -> None:
        """Note that the webhook has accepted all reports up to an end in the file."""
        beside = self._sent_path.with_suffix(".new")
        beside.write_text(str(end))
        beside.replace(self._sent_path)

    def close(self) -> None:
        self._file.close()

    def _append(self, values: dict[str, Any], now_ms: int) -> dict[str, Any]:
        values["reported_ms"] = now_ms
        self._file.write(json.dumps(values).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._note(values)
        return values

    def _note(self, values: dict[str, Any]) -> None:
        kind = values["kind"]
        if kind == FINDING:
            self._known[values["id"]] = {name: values[name] for name in _OF_FINDING}
            self.counts[values["audit"]] += 1
        elif kind == WITHDRAWN:
            del self._known[values["id"]]
            self.taken_back += 1
        else:
            channel_id, participant_id, alarm = (values[name] for name in _OF_ALARM)
            change = self.raised.add if kind == RAISED else self.raised.discard
            change((channel_id, participant_id, alarm))

    def _recover(self) -> None:
        """Read the file; a torn last line was not reported, and is cut off."""
        self._file.seek(0)
        end = 0
        with suppress(ValueError, KeyError, TypeError):
            for text in self._file:
                if not text.endswith(b"\n"):
                    break
                self._note(json.loads(text))
                end += len(text)
        self._file.truncate(end)


def identity(finding: Finding) -> str:
    """Return the text that identifies a finding, from its stable fields."""
    which = "" if finding.audit in _ONE_A_LOG else finding.message_id
    if finding.detail.startswith("the clock went back"):
        which = str(finding.at_ms)
    parts = finding.audit, finding.channel_id, finding.participant_id, str(finding.life), which
    return sha256("\0".join(parts).encode()).hexdigest()[:32]
