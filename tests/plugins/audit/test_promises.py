"""The promises that take more than one participant, over plain values."""

from __future__ import annotations

import pytest

from reliable_channel_audit import promises
from reliable_channel_audit.facts import Delivery
from reliable_channel_audit.promises import undelivered, unequal_logs
from reliable_channel_audit.replay import Life

MESSAGES, STAY = 2_000, 20


def visits(count: int) -> tuple[list[Life], list[Delivery]]:
    """One participant writes a message a second; each visitor stays for 20 of them."""
    end_ms = MESSAGES * 1_000 + 60_000
    lives = [Life("general", "alice", 0, "a", 0, end_ms, 0, MESSAGES, "whole", True)]
    logs = [delivery("alice", at, at) for at in range(MESSAGES)]
    for number in range(count):
        at = number * (MESSAGES - STAY) // count
        name, begin_ms = f"visitor {number}", at * 1_000
        until_ms = begin_ms + STAY * 1_000
        times = begin_ms, until_ms, begin_ms
        lives.append(Life("general", name, 0, "v", *times, STAY, name, True))
        logs += [delivery(name, at + n, n) for n in range(STAY + 1)]
    return lives, logs


def delivery(name: str, number: int, position: int) -> Delivery:
    at_ms, message_id = number * 1_000, f"m{number}"
    row = "general", name, 0, message_id, "alice", at_ms, b"", at_ms
    first, came = (message_id, None) if name == "alice" else (None, b"hash")
    return Delivery(*row, first, came, None, None, position)


def test_a_visitor_is_owed_what_was_sent_while_it_was_there() -> None:
    lives, logs = visits(50)
    assert undelivered(lives, logs, [], {}, {}, 10_000) == ([], 0)
    assert not list(unequal_logs(lives, logs))
    (gone,) = [each for each in logs if each[1:4] == ("visitor 0", 0, "m3")]
    logs.remove(gone)
    found = undelivered(lives, logs, [], {}, {}, 10_000).findings
    assert [(each.participant_id, each.message_id) for each in found] == [("visitor 0", "m3")]


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
    undelivered(lives, absent, [], {}, {}, 10_000)
    assert 0 < looks <= 200 * (STAY + 1)
