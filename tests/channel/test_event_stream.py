"""The stream of events: who gets which, who waits for whom."""

import gc

import anyio
import pytest

from reliable_channel import Event, SyncSent
from reliable_channel.runtime.event_stream import EventStream

pytestmark = pytest.mark.anyio


def emit(stream: EventStream, *names: str) -> None:
    for name in names:
        stream.emit(SyncSent(name))


def name_of(event: Event) -> str:
    assert isinstance(event, SyncSent)
    return event.message_id


async def take(stream: EventStream, count: int) -> list[str]:
    names: list[str] = []
    async for event in stream.read():
        names.append(name_of(event))
        if len(names) == count:
            break
    return names


async def read_all(stream: EventStream, names: list[str]) -> None:
    async for event in stream.read():
        names += [name_of(event)]


async def test_the_first_reader_gets_what_came_before() -> None:
    stream = EventStream(10)
    emit(stream, "a", "b")
    assert await take(stream, 2) == ["a", "b"]


async def test_without_a_reader_the_oldest_make_room_and_are_counted() -> None:
    stream = EventStream(2)
    emit(stream, "a", "b", "c", "d", "e")
    assert stream.dropped == 3
    assert await take(stream, 2) == ["d", "e"]


async def test_breaking_out_of_the_loop_loses_nothing() -> None:
    stream = EventStream(10)
    emit(stream, "a", "b", "c")
    assert await take(stream, 1) == ["a"]
    emit(stream, "d")
    assert await take(stream, 3) == ["b", "c", "d"]
    gc.collect()  # trio resents generators that are left halfway, loudly and here


async def test_events_between_two_readers_are_bounded_too() -> None:
    stream = EventStream(2)
    emit(stream, "a")
    assert await take(stream, 1) == ["a"]
    emit(stream, "b", "c", "d")
    assert stream.dropped == 1
    assert await take(stream, 2) == ["c", "d"]


async def test_several_readers_get_everything_from_their_start_on() -> None:
    stream = EventStream(10)
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


async def test_a_slow_reader_slows_the_source_down_and_a_leaving_one_frees_it() -> None:
    stream = EventStream(2)
    events = stream.read()
    emit(stream, "a")
    assert name_of(await anext(events)) == "a"
    emit(stream, "b", "c", "d")
    written = 0

    async def write() -> None:
        nonlocal written
        await stream.writable()
        written += 1

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        tasks.start_soon(write)
        await anyio.wait_all_tasks_blocked()
        assert written == 0
        assert name_of(await anext(events)) == "b"
        await anyio.wait_all_tasks_blocked()
        assert written == 2
        emit(stream, "e")
        tasks.start_soon(write)
        await anyio.wait_all_tasks_blocked()
        assert written == 2
        del events
        await anyio.wait_all_tasks_blocked()
        assert written == 3


async def test_without_a_reader_the_source_never_waits() -> None:
    stream = EventStream(1)
    emit(stream, "a", "b", "c")
    with anyio.fail_after(1):
        await stream.writable()


async def test_closing_ends_reading_after_what_is_queued() -> None:
    stream = EventStream(10)
    emit(stream, "a")
    stream.close()
    names: list[str] = []
    with anyio.fail_after(1):
        await read_all(stream, names)
        await read_all(stream, names)
    assert names == ["a"]


async def test_closing_frees_the_source() -> None:
    stream = EventStream(1)
    events = stream.read()
    emit(stream, "a")
    await anext(events)
    emit(stream, "b", "c", "d")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stream.writable)
        await anyio.wait_all_tasks_blocked()
        stream.close()


async def test_a_wait_that_is_cancelled_can_be_taken_up_again() -> None:
    stream = EventStream(10)
    events = stream.read()
    with anyio.move_on_after(0.001):
        await anext(events)
    emit(stream, "a")
    assert name_of(await anext(events)) == "a"
