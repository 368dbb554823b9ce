"""The stream of events: who gets which, and what a slow reader gets."""

import gc
from collections.abc import AsyncIterator

import anyio
import pytest

from reliable_channel import MessageReceived
from reliable_channel.diagnostics import SyncSent
from reliable_channel.events import AnyEvent, EventsMissed
from reliable_channel.runtime.backlog import Backlog
from reliable_channel.runtime.event_stream import TRIM_AT, TRIM_AT_BYTES, EventStream

pytestmark = pytest.mark.anyio

Log = dict[str, bytes]


def make_stream(limit: int, *, log: Log | None = None, backlog: int = 1_000) -> EventStream:
    return EventStream(limit, Backlog((log or {}).get, limit=backlog))


def no_log(message_id: str) -> bytes | None:
    return None


def message(name: str) -> MessageReceived:
    return MessageReceived(name, "bob", name.encode(), 1, 0)


def emit(stream: EventStream, *names: str) -> None:
    """Emit messages for names in capitals, and events of the moment for others."""
    for name in names:
        stream.emit(message(name) if name.isupper() else SyncSent(name))


def name_of(event: AnyEvent) -> str:
    match event:
        case EventsMissed(count, messages):
            return f"missed {count}, {messages} messages"
        case MessageReceived(message_id=name) | SyncSent(name):
            return name
    raise AssertionError(event)


async def take(events: AsyncIterator[AnyEvent], count: int) -> list[str]:
    return [name_of(await anext(events)) for _ in range(count)]


async def read_all(stream: EventStream, names: list[str]) -> None:
    async for event in stream.read():
        names += [name_of(event)]


async def rest(stream: EventStream, events: AsyncIterator[AnyEvent]) -> list[str]:
    """Close the stream and read on to its end."""
    stream.close()
    return [name_of(event) async for event in events]


async def test_the_first_reader_gets_what_came_before() -> None:
    stream = make_stream(10)
    emit(stream, "a", "b")
    assert await take(stream.read(), 2) == ["a", "b"]


async def test_what_nobody_read_in_time_is_counted_and_messages_are_kept() -> None:
    stream = make_stream(2)
    emit(stream, "a", "B", "c", "d", "e")
    assert stream.dropped == 2
    assert await take(stream.read(), 4) == ["missed 2, 0 messages", "B", "d", "e"]


async def test_leaving_the_loop_loses_nothing() -> None:
    stream = make_stream(10)
    emit(stream, "a", "b", "c")
    assert await take(stream.read(), 1) == ["a"]
    emit(stream, "d")
    assert await take(stream.read(), 3) == ["b", "c", "d"]


async def test_several_readers_get_everything_from_their_start_on() -> None:
    stream = make_stream(10)
    emit(stream, "a")
    first: list[str] = []
    second: list[str] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read_all, stream, first)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(read_all, stream, second)
        await anyio.wait_all_tasks_blocked()
        emit(stream, "b", "c")
        stream.close()
    assert (first, second) == (["a", "b", "c"], ["b", "c"])


async def test_a_follower_takes_nothing_away_from_others() -> None:
    stream = make_stream(10)
    emit(stream, "a")
    follower = stream.follow()
    emit(stream, "b")
    assert await take(follower, 1) == ["b"]
    assert await take(stream.read(), 2) == ["a", "b"]


async def test_a_slow_reader_gets_messages_in_order_and_one_count_of_the_rest() -> None:
    stream = make_stream(2)
    slow, quick = stream.read(), stream.read()
    emit(stream, "a")
    assert await take(slow, 1) == await take(quick, 1) == ["a"]
    for name in ("B", "c", "D", "e", "f", "G", "h"):
        emit(stream, name)
        await take(quick, 1)
    assert stream.behind == 7
    assert await take(slow, 5) == ["missed 3, 0 messages", "B", "D", "G", "h"]
    emit(stream, "i")
    assert await take(slow, 1) == ["i"]
    assert stream.behind == 1, "that is the quick one"


async def test_a_reader_that_falls_behind_while_it_catches_up_gets_a_second_count() -> None:
    stream = make_stream(1)
    slow = stream.read()
    emit(stream, "A", "b", "C", "d")
    assert await take(slow, 2) == ["missed 1, 0 messages", "A"]
    emit(stream, "E", "f", "g")
    assert await rest(stream, slow) == ["missed 2, 0 messages", "C", "E", "g"]


async def test_a_reader_behind_the_backlog_is_told_of_messages_that_it_misses() -> None:
    stream = make_stream(1, backlog=2)
    slow = stream.read()
    emit(stream, "A", "B", "c", "D", "E", "f")
    assert await take(slow, 2) == ["missed 3, 2 messages", "D"]
    emit(stream, "G", "H", "I", "J")
    assert await rest(stream, slow) == ["missed 3, 2 messages", "H", "I", "J"]


async def test_contents_in_the_log_are_read_from_it_and_others_are_kept() -> None:
    log = {"A": b"A", "B": b"a segment of B", "C": b"C", "D": b"D"}
    stream = make_stream(1, log=log)
    slow = stream.read()
    emit(stream, "A", "B", "C", "D", "e")
    del log["C"]  # trimmed
    events = [await anext(slow) for _ in range(5)]
    assert [name_of(event) for event in events] == ["A", "B", "missed 1, 1 messages", "D", "e"]
    assert events[0] == message("A")
    assert events[1] == message("B")


async def test_a_reader_that_falls_behind_is_reported_once_until_it_caught_up() -> None:
    reports: list[tuple[int, int]] = []
    stream = EventStream(2, Backlog(no_log), fell_behind=lambda *report: reports.append(report))
    slow, slower = stream.read(), stream.read()
    emit(stream, "a")
    await take(slow, 1)
    emit(stream, "b", "c")
    assert reports == [(1, 3)]
    emit(stream, "d", "e", "f")
    assert reports == [(1, 3), (1, 3)], "the other one"
    assert await take(slow, 3) == ["missed 3, 0 messages", "e", "f"]
    with anyio.move_on_after(0.001):
        await anext(slow)
    emit(stream, "g", "h")
    await slower.aclose()
    assert len(reports) == 2
    emit(stream, "i")
    assert reports[2:] == [(1, 3)]


async def test_no_reader_is_no_slow_reader() -> None:
    reports: list[tuple[int, int]] = []
    stream = EventStream(1, Backlog(no_log), fell_behind=lambda *report: reports.append(report))
    emit(stream, "a", "b", "c")
    assert reports == []


async def wait_for_more(events: AsyncIterator[AnyEvent]) -> None:
    with anyio.move_on_after(0):
        await anext(events)


async def test_nothing_is_kept_for_long_that_every_reader_has_read() -> None:
    stream = make_stream(200)
    abandoned, events = stream.read(), stream.read()
    emit(stream, *"a" * (TRIM_AT + 1))
    await take(events, TRIM_AT + 1)
    await wait_for_more(events)
    assert len(stream.buffer) == TRIM_AT + 1
    del abandoned
    gc.collect()
    await wait_for_more(events)
    assert len(stream.buffer) == 0


async def test_content_that_every_reader_has_read_leaves_sooner() -> None:
    stream = make_stream(200)
    events = stream.read()
    for size in (TRIM_AT_BYTES, 1):
        stream.emit(MessageReceived("a", "bob", bytes(size), 1, 0))
        await take(events, 1)
        await wait_for_more(events)
        assert len(stream.buffer) == (1 if size == TRIM_AT_BYTES else 0)


async def test_a_closed_reader_ends_and_nothing_is_kept_for_it() -> None:
    stream = make_stream(100)
    async with stream.read() as events:
        emit(stream, "a", "b")
        assert await take(events, 1) == ["a"]
    assert [event async for event in events] == []
    assert await take(stream.read(), 1) == ["b"]
    assert len(stream.buffer) == 1


async def test_closing_a_reader_ends_its_waiting() -> None:
    stream = make_stream(10)
    events = stream.read()
    names: list[str] = []

    async def read() -> None:
        names.extend([name_of(event) async for event in events])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await anyio.wait_all_tasks_blocked()
        await events.aclose()
    assert names == []


async def test_large_contents_leave_the_buffer_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reliable_channel.runtime.event_stream.BUFFER_LIMIT_BYTES", 3)
    log = {name: name.encode() for name in ("A", "B", "C", "D", "E")}
    stream = make_stream(100, log=log)
    emit(stream, *log)
    assert len(stream.buffer) == 3
    assert await take(stream.read(), 5) == list(log)


async def test_closing_ends_reading_after_what_is_there() -> None:
    stream = make_stream(1)
    emit(stream, "A", "b")
    stream.close()
    names: list[str] = []
    await read_all(stream, names)
    await read_all(stream, names)
    assert names == ["A", "b"]


async def test_a_wait_that_is_cancelled_can_be_taken_up_again() -> None:
    stream = make_stream(10)
    events = stream.read()
    with anyio.move_on_after(0.001):
        await anext(events)
    emit(stream, "a")
    assert name_of(await anext(events)) == "a"


async def test_asking_for_the_next_event_confirms_the_one_before() -> None:
    confirmed: list[AnyEvent] = []
    stream = EventStream(1, Backlog(no_log), confirm=confirmed.append)
    emit(stream, "A", "B", "C")
    events = stream.read()
    await take(events, 2)
    assert list(map(name_of, confirmed)) == ["A"]
    await events.aclose()
    assert await take(stream.read(confirm=False), 1) == ["C"]
    assert len(confirmed) == 1
