"""Names are made up for nothing: what is kept by name is bounded."""

from __future__ import annotations

import json

from reliable_channel.sds.message import Message
from reliable_channel_audit.journals import Noted
from reliable_channel_audit.lines import Line
from reliable_channel_audit.misbehaviour import MAX_SENDERS, OTHERS, Misbehaviour
from reliable_channel_audit.replay import Replay

WHOSE = ("general", "alice", 0)


def refused(sender_id: str) -> Line:
    record = json.dumps({"reason": "forged_id"})
    return Line("message_rejected", message_id="m", sender_id=sender_id, record=record)


def test_deeds_are_counted_by_name() -> None:
    deeds = Misbehaviour(WHOSE)
    for at_ms, name in enumerate(("mallory", "", "mallory")):
        deeds.add(refused(name), None, at_ms)
    assert [(deed.sender, deed.at_ms, deed.times) for deed in deeds] == [
        ("'mallory'", 0, 2),
        ("a participant without a name", 1, 1),
    ]


def test_after_many_names_the_others_are_counted_as_one() -> None:
    deeds = Misbehaviour(WHOSE)
    for at_ms in range(MAX_SENDERS + 500):
        deeds.add(refused(f"mallory-{at_ms}"), None, at_ms)
    deeds.add(refused("mallory-0"), None, 9_999)
    told = {deed.sender: (deed.at_ms, deed.times) for deed in deeds}
    assert len(told) == MAX_SENDERS + 1
    assert told["'mallory-0'"] == (0, 2)
    assert told[OTHERS] == (MAX_SENDERS, 500)


def test_so_it_is_with_those_that_were_heard() -> None:
    replay = Replay(*WHOSE)
    for number in range(MAX_SENDERS + 500):
        line = Line("wire_in", at_ms=0, outcome="delivered")
        message = Message(f"mallory-{number}", f"m{number}", "general", 1)
        replay.add(Noted("path", number, 0, line), message)
    assert len(list(replay.heard())) == MAX_SENDERS
