import logging
import sys
from collections import Counter
from types import FrameType
from typing import get_args

import anyio
import pytest

from reliable_channel.diagnostics import (
    NodeHealthChanged,
    ReaderFellBehind,
    TransportDegraded,
    TransportRecovered,
)
from reliable_channel.events import AnyEvent, DeliveryFailed, MessageReceived
from reliable_channel.runtime.event_log import LEVELS, EventLog, described
from reliable_channel.transport import MemoryNetwork, MemoryTransport
from tests.channel.world import make_channel

SECRET = b"the payload of a message"
RECEIVED = MessageReceived("id", "mal\nory", SECRET, 7, 0)


@pytest.fixture
def log() -> EventLog:
    return EventLog("general", "alice")


@pytest.mark.parametrize(
    ("event", "level"),
    [
        (TransportDegraded("send", "away"), logging.WARNING),
        (DeliveryFailed("id", 5, "no acknowledgement"), logging.WARNING),
        (ReaderFellBehind(1, 11), logging.WARNING),
        (TransportRecovered("send", 5), logging.INFO),
        (RECEIVED, logging.DEBUG),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_level_of_an_event(
    log: EventLog, event: AnyEvent, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(level, "reliable_channel"):
        log.event(event)
    (record,) = caplog.records
    assert record.levelno == level
    assert record.__dict__["event"] == event.wire_name
    assert record.__dict__["sender_id"] == "alice"
    caplog.clear()
    with caplog.at_level(level + 10, "reliable_channel"):
        log.event(event)
    assert caplog.records == []


def test_a_payload_is_never_logged_and_a_name_stays_in_its_line(
    log: EventLog, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "reliable_channel"):
        log.event(RECEIVED)
    assert "payload" not in caplog.text and "<24 bytes>" in caplog.text
    assert caplog.messages == [message.replace("\n", "") for message in caplog.messages]


def test_the_token_of_a_node_is_not_logged(log: EventLog, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "reliable_channel"):
        log.event(NodeHealthChanged("http://:hunter2@node:8645", "failing", "refused"))
    assert "hunter2" not in caplog.text and "http://***@node:8645" in caplog.text


def test_levels_are_those_of_events() -> None:
    assert set(LEVELS) <= set(get_args(AnyEvent))


def test_a_log_that_nobody_reads_costs_one_look_up_an_event(log: EventLog) -> None:
    calls = Counter[str]()

    def count(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            calls[frame.f_code.co_name] += 1

    logging.getLogger("reliable_channel").isEnabledFor(logging.DEBUG)  # cached from now on
    sys.setprofile(count)
    try:
        log.event(RECEIVED)
    finally:
        sys.setprofile(None)
    assert calls == {"event": 1, "isEnabledFor": 1}


def test_every_event_has_a_text() -> None:
    assert described(RECEIVED).startswith("message_received message_id='id' sender_id='mal\\nory'")


@pytest.mark.anyio
async def test_a_channel_logs_its_life(caplog: pytest.LogCaptureFixture) -> None:
    network = MemoryNetwork()
    with caplog.at_level(logging.DEBUG, "reliable_channel"):
        async with make_channel(MemoryTransport(network), "alice") as alice:
            await alice.send(SECRET)
            async for event in alice.events():
                if event.wire_name == "message_sent":
                    break
            await anyio.lowlevel.checkpoint()
    messages = [record.getMessage() for record in caplog.records]
    assert messages[0].startswith("channel 'general', participant 'alice': opened on /")
    assert messages[-1] == "channel 'general', participant 'alice': closed"
    assert any("message_sent" in message for message in messages)
    assert SECRET.decode() not in caplog.text


def test_one_dead_node_is_one_warning(log: EventLog, caplog: pytest.LogCaptureFixture) -> None:
    dead = "POST /relay: ConnectError: nobody listens"
    caplog.set_level(logging.INFO, "reliable_channel")
    log.event(TransportDegraded("send", f"no node is connected: {dead}"))
    log.event(TransportDegraded("store", f"GET /store: {dead}"))
    log.event(TransportDegraded("receive", "the subscription is gone"))
    for component in ("send", "store", "receive"):
        log.event(TransportRecovered(component, 5))
    log.event(TransportDegraded("store", f"GET /store: {dead}"))
    levels = [r.levelno for r in caplog.records if "transport_degraded" in r.getMessage()]
    assert levels == [logging.WARNING, logging.INFO, logging.WARNING, logging.WARNING]
