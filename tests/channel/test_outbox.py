"""The outbox: what goes first, what is dropped, and who is woken."""

import anyio
import anyio.abc
import pytest

from reliable_channel.runtime.outbox import CONTROL_LIMIT, EPHEMERAL_LIMIT, Outbox
from reliable_channel.sds.events import Outgoing, OutgoingKind

pytestmark = pytest.mark.anyio


def outgoing(kind: OutgoingKind, message_id: str) -> Outgoing:
    return Outgoing(kind, message_id, b"data")


async def take_all(outbox: Outbox) -> list[str]:
    taken = []
    while len(outbox):
        _, _, message = await outbox.get()
        outbox.done()
        taken.append(message.message_id)
    return taken


async def test_content_goes_first_in_the_order_it_was_sent() -> None:
    outbox = Outbox()
    for kind in reversed(OutgoingKind):
        for number in (1, 2):
            outbox.put(outgoing(kind, f"{kind.value}-{number}"))
    assert await take_all(outbox) == [
        "content-1", "content-2", "sync-2", "control-1", "control-2",
        "retry-1", "retry-2", "repair-1", "repair-2", "ephemeral-1", "ephemeral-2",
    ]  # fmt: skip


async def test_the_same_message_waits_once() -> None:
    outbox = Outbox()
    for _ in range(2):
        outbox.put(outgoing(OutgoingKind.RETRY, "a"))
        outbox.put(outgoing(OutgoingKind.SYNC, "s"))
    assert await take_all(outbox) == ["s", "a"]


async def test_a_sync_in_hand_does_not_keep_the_next_one_out() -> None:
    outbox = Outbox()
    outbox.put(outgoing(OutgoingKind.SYNC, "s1"))
    await outbox.get()
    outbox.put(outgoing(OutgoingKind.SYNC, "s2"))
    outbox.put(outgoing(OutgoingKind.SYNC, "s3"))
    outbox.done()
    assert await take_all(outbox) == ["s3"]


async def test_what_is_put_back_takes_its_old_place() -> None:
    outbox = Outbox()
    for message_id in "abc":
        outbox.put(outgoing(OutgoingKind.CONTENT, message_id))
    outbox.put_back(await outbox.get())
    assert await take_all(outbox) == ["a", "b", "c"]


@pytest.mark.parametrize("kind", OutgoingKind)
async def test_every_kind_can_be_put_back(kind: OutgoingKind) -> None:
    outbox = Outbox()
    outbox.put(outgoing(kind, "a"))
    outbox.put_back(await outbox.get())
    assert await take_all(outbox) == ["a"]


async def test_everyone_who_waits_is_woken() -> None:
    outbox = Outbox()
    taken: list[str] = []

    async def take_one() -> None:
        taken.append((await outbox.get())[2].message_id)

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(take_one)
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(5):
            for message_id in "abcd":
                outbox.put(outgoing(OutgoingKind.CONTENT, message_id))
            await anyio.wait_all_tasks_blocked()
        assert sorted(taken) == ["a", "b", "c", "d"]


async def test_it_is_drained_once_nothing_waits_and_nothing_is_in_hand() -> None:
    outbox = Outbox()
    outbox.put(outgoing(OutgoingKind.CONTENT, "a"))
    drained = False

    async def wait(task_status: anyio.abc.TaskStatus[None]) -> None:
        nonlocal drained
        task_status.started()
        await outbox.drained()
        drained = True

    async with anyio.create_task_group() as tasks:
        await tasks.start(wait)
        await outbox.get()
        await anyio.wait_all_tasks_blocked()
        assert (len(outbox), drained) == (1, False)
        outbox.done()
    assert (len(outbox), drained) == (0, True)


async def test_what_never_went_out_is_listed_in_order() -> None:
    outbox = Outbox()
    outbox.put(outgoing(OutgoingKind.SYNC, "s"))
    for message_id in "cab":
        outbox.put(outgoing(OutgoingKind.CONTENT, message_id))
    assert [message.message_id for message in outbox.undispatched()] == ["c", "a", "b"]


@pytest.mark.parametrize(
    ("kind", "limit"),
    [(OutgoingKind.EPHEMERAL, EPHEMERAL_LIMIT), (OutgoingKind.CONTROL, CONTROL_LIMIT)],
)
async def test_what_is_of_use_for_a_moment_does_not_pile_up(kind: OutgoingKind, limit: int) -> None:
    outbox = Outbox()
    for number in range(limit + 3):
        outbox.put(outgoing(kind, str(number)))
    taken = await take_all(outbox)
    assert (taken[0], len(taken)) == ("3", limit)


@pytest.mark.parametrize(("newer", "goes"), [(["s2"], "s2"), (["s2", "s3"], "s3")])
async def test_a_sync_that_is_put_back_makes_room_for_a_newer_one(
    newer: list[str], goes: str
) -> None:
    outbox = Outbox()
    outbox.put(outgoing(OutgoingKind.SYNC, "s1"))
    item = await outbox.get()
    outbox.put(outgoing(OutgoingKind.SYNC, newer[0]))
    outbox.put_back(item)
    for message_id in newer[1:]:
        outbox.put(outgoing(OutgoingKind.SYNC, message_id))
    assert len(outbox) == 1
    assert await take_all(outbox) == [goes]
