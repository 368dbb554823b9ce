"""The promises that take more than one participant, over plain values."""

from __future__ import annotations

import pytest

from reliable_channel_audit import promises
from reliable_channel_audit.facts import Delivery
from reliable_channel_audit.findings import Audit, Gap
from reliable_channel_audit.promises import Compared, Context, compare_messages, unequal_logs
from reliable_channel_audit.replay import Life

MESSAGES, STAY = 2_000, 20


def visits(count: int) -> tuple[list[Life], list[Delivery]]:
    """One participant writes a message a second; each visitor stays for 20 of them."""
    end_ms = MESSAGES * 1_000 + 60_000
    lives = [life("alice", (0, end_ms), MESSAGES)]
    logs = [delivery("alice", at, at) for at in range(MESSAGES)]
    for number in range(count):
        at = number * (MESSAGES - STAY) // count
        name, begin_ms = f"visitor {number}", at * 1_000
        until_ms = begin_ms + STAY * 1_000
        lives.append(life(name, (begin_ms, until_ms), STAY))
        logs += [delivery(name, at + n, n) for n in range(STAY + 1)]
    return lives, logs


def life(name: str, span_ms: tuple[int, int], entries: int) -> Life:
    begin_ms, until_ms = span_ms
    times = {"opened_ms": begin_ms, "until_ms": until_ms, "owed_from_ms": begin_ms}
    known = {"settle_ms": 10_000, "entries": entries, "log_digest": name, "last_lamport": 0}
    flags = {"is_whole": True, "is_in_order": True, "impostors": 0, "time_unit": ""}
    return Life("general", name, 0, "path", **times, **known, **flags)  # type: ignore[arg-type]


def compared(lives: list[Life], logs: list[Delivery], *gaps: Gap) -> Compared:
    context = Context(lives, {}, gaps, [])
    return compare_messages(context, logs, [], [], [])[0]


def delivery(name: str, number: int, position: int) -> Delivery:
    at_ms, message_id = number * 1_000, f"m{number}"
    row = "general", name, 0, message_id, "alice", at_ms, b"", at_ms
    first, came = (message_id, None) if name == "alice" else (None, b"hash")
    return Delivery(*row, first, came, None, None, position)


def test_a_visitor_is_owed_what_was_sent_while_it_was_there() -> None:
    lives, logs = visits(50)
    assert compared(lives, logs) == Compared()
    assert not list(unequal_logs(lives, logs))
    (gone,) = [each for each in logs if each[1:4] == ("visitor 0", 0, "m3")]
    logs.remove(gone)
    found = compared(lives, logs).findings
    assert [(each.participant_id, each.message_id) for each in found] == [("visitor 0", "m3")]


def test_nothing_is_owed_while_the_journal_lacks_lines() -> None:
    lives, logs = visits(1)
    logs = [each for each in logs if each[1:4] != ("visitor 0", 0, "m3")]
    for from_ms, to_ms, is_found in ((0, 3_000, 0), (12_900, 13_000, 0), (14_000, 15_000, 1)):
        gap = Gap("general", "visitor 0", 0, from_ms, to_ms, "torn")
        found = compared(lives, logs, gap)
        assert len(found.findings) == is_found
        assert found.unjudged == ({} if is_found else {Audit.DELIVERY: "at visitor 0: torn"})


def test_many_short_visits_cost_what_they_saw(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at every message for every visitor would be 100 times as many."""
    looks = 0
    sent_ms = promises._sent_ms  # noqa: SLF001

    def counting(message: Delivery, accepted_ms: int) -> int:
        nonlocal looks
        looks += 1
        return sent_ms(message, accepted_ms)

    lives, logs = visits(200)
    absent = [each for each in logs if not each.participant_id.startswith("visitor")]
    monkeypatch.setattr(promises, "_sent_ms", counting)
    compared(lives, absent)
    assert 0 < looks <= 200 * (STAY + 1)
