"""The file of reports is the report and its own memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from reliable_channel_audit.findings import Finding
from reliable_channel_audit.live_audit.alarms import Alarm
from reliable_channel_audit.live_audit.reports import Reports, identity


def finding(message_id: str = "m", **values: object) -> Finding:
    of = Finding("delivery", "general", "alice", 0, message_id, 5, "never delivered; sent by bob")
    return of._replace(**values)  # type: ignore[arg-type]


def report(reports: Reports, one: Finding, now_ms: int = 1) -> bool:
    return reports.finding(identity(one), one, now_ms) is not None


def test_a_finding_is_reported_once_also_after_a_restart(tmp_path: Path) -> None:
    for again in (False, True):
        reports = Reports(tmp_path)
        assert report(reports, finding()) is not again
        assert not report(reports, finding(at_ms=9, detail="declared lost; sent by bob"))
        assert reports.counts == {"delivery": 1}
        reports.close()
    assert len((tmp_path / "reports.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_process_killed_while_it_wrote_reports_again(tmp_path: Path, cut: int) -> None:
    reports = Reports(tmp_path)
    report(reports, finding("first"))
    report(reports, finding("second"))
    reports.close()
    path = tmp_path / "reports.jsonl"
    path.write_bytes(path.read_bytes()[:-cut])
    reports = Reports(tmp_path)
    assert not report(reports, finding("first"))
    assert report(reports, finding("second"))
    reports.close()
    assert len(path.read_text().splitlines()) == 2


def test_what_makes_a_finding_the_same() -> None:
    assert identity(finding("a")) != identity(finding("b"))
    assert identity(finding()) != identity(finding(participant_id="bob"))
    order = finding(audit="equal_logs")
    assert identity(order) == identity(order._replace(message_id="later"))
    back = finding(audit="clock", message_id="", detail="the clock went back by 5000 ms")
    assert identity(back) != identity(back._replace(at_ms=77))


def test_an_alarm_is_raised_once_and_ends_once(tmp_path: Path) -> None:
    alarm = Alarm("silent", "general", "alice", 0, "", 5)
    kinds = []
    for now_ms, lasting in enumerate(([alarm], [alarm], [], [], [alarm])):
        reports = Reports(tmp_path)  # restarted each time
        kinds.append([each["kind"] for each in reports.alarms(lasting, now_ms)])
        reports.close()
    assert kinds == [["raised"], [], ["resolved"], [], ["raised"]]


def test_a_webhook_is_given_what_it_has_not_taken(tmp_path: Path) -> None:
    reports = Reports(tmp_path)
    for message_id in "abc":
        report(reports, finding(message_id))
    (end, first), *_ = reports.unsent()
    assert first["message_id"] == "a"
    reports.sent(end)
    reports.close()
    reports = Reports(tmp_path)
    assert [each["message_id"] for _, each in reports.unsent()] == ["b", "c"]
    reports.close()
