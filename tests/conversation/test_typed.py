"""A channel of values: what is on the wire, and what cannot be decoded."""

from collections.abc import Sequence
from typing import Any, assert_type

import anyio
import msgspec
import pytest

from pytest_reliable_channel.channels import Channels
from reliable_channel.conversation import JsonValue, TypedChannel, json
from reliable_channel.conversation.typed import Reader
from reliable_channel.events import MessageUndecodable

pytestmark = pytest.mark.anyio


class Order(msgspec.Struct):
    table: int
    dish: str


async def test_messages_are_values_and_the_wire_has_their_json(channels: Channels) -> None:
    alice, bob = await channels.open("alice", "bob", preset="auto")
    orders = alice.channel.typed(json(Order))
    assert_type(orders, TypedChannel[Order])
    reader = bob.channel.typed(json(Order)).messages()
    await orders.send(Order(7, "soup"), wait="acknowledged", within_s=60)
    message = await anext(reader)
    assert_type(message.content, Order)
    assert message.content == Order(7, "soup")
    assert (message.sender_id, message.message_id) == ("alice", message.event.message_id)
    assert message.event.content == b'{"table":7,"dish":"soup"}'
    plain = bob.channel.typed(json())
    assert_type(plain, TypedChannel[JsonValue])


async def test_what_cannot_be_decoded_is_an_event_that_names_the_sender(
    channels: Channels,
) -> None:
    alice, bob = await channels.open("alice", "bob", preset="auto")
    reader = bob.channel.typed(json(Order)).messages()
    for payload in (b"no json", b'{"table":"seven","dish":"soup"}', b'{"table":8,"dish":"rice"}'):
        await alice.send(payload)
    assert (await anext(reader)).content == Order(8, "rice")
    await bob.until(lambda: len(undecodable(bob.events)) == 2)
    assert {event.sender_id for event in undecodable(bob.events)} == {"alice"}
    assert "table" in undecodable(bob.events)[1].reason


def undecodable(events: Sequence[object]) -> list[MessageUndecodable]:
    return [event for event in events if isinstance(event, MessageUndecodable)]


async def test_questions_and_answers_are_values(channels: Channels) -> None:
    alice, bob = await channels.open("alice", "bob", preset="auto")

    async def answer() -> None:
        async for question in bob.channel.typed(json(Order)).questions():
            await question.answer(Order(question.content.table, "served"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(answer)
        asked = alice.channel.ask_all(b"no json", within_s=30)
        assert [found async for found in asked] == []  # and the question is not asked for ever
        answered = await alice.channel.typed(json(Order)).ask(Order(7, "soup"), within_s=60)
        assert answered.content == Order(7, "served")
        tasks.cancel_scope.cancel()
    assert [event.sender_id for event in undecodable(bob.events)] == ["alice"]


async def test_messages_skip_questions_and_confirm_only_themselves(channels: Channels) -> None:
    alice, bob = await channels.open("alice", "bob", preset="auto")
    questions = bob.channel.questions()
    async with bob.channel.messages() as messages:
        await alice.send("one")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: anext(alice.channel.ask_all(b"?", within_s=60), None))
            await bob.until(lambda: len(bob.received) == 2)
            await alice.send("two")
            assert [(await anext(messages)).content for _ in range(2)] == [b"one", b"two"]
            assert (await anext(questions)).content == b"?"
    with pytest.raises(StopAsyncIteration):
        await anext(messages)


async def test_closing_a_reader_ends_its_wait(channels: Channels) -> None:
    alice, _ = await channels.open("alice", "bob", preset="auto")
    verbs = alice.channel
    readers: list[Reader[Any]] = [verbs.messages(), verbs.questions()]
    for reader in (*readers, verbs.ask_all(b"?", within_s=3600)):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anext, reader, None)
            await channels.sleep(1)
            began_s = anyio.current_time()
            await reader.aclose()
        assert anyio.current_time() - began_s < 1
