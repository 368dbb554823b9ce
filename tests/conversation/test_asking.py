"""Questions and answers: each answer once, over loss, kills and restarts."""

import asyncio
from collections import Counter
from random import Random
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_reliable_channel.channels import Channels, Participant
from reliable_channel import ReliableChannel
from reliable_channel.conversation import asking
from reliable_channel.conversation.asking import (
    UnreadableEnvelope,
    decode,
    encode,
    is_envelope,
)
from reliable_channel.errors import ChannelClosed, NoAnswer, OutgoingBufferFull
from reliable_channel.events import AnswerLate, MessageReceived, MessageUndecodable, QuestionDropped
from reliable_channel.runtime import Runtime

pytestmark = pytest.mark.anyio
AUTO: dict[str, Any] = {"preset": "auto"}
HOUR_S = 3600.0


async def shout(channel: ReliableChannel) -> None:
    async for question in channel.questions():
        await question.answer(question.content.upper())


def late_answers(participant: Participant) -> list[AnswerLate]:
    return [event for event in participant.events if isinstance(event, AnswerLate)]


def answers_in(participant: Participant) -> Counter[tuple[str, bytes]]:
    """Answers in the log by sender and question."""
    return Counter(
        (entry.sender_id, envelope.question_id)
        for entry in participant.channel.log()
        if is_envelope(entry.content) and (envelope := decode(entry.content)).asker_id
    )


async def test_the_first_answer_is_returned_and_others_are_late(channels: Channels) -> None:
    alice, bob, carol = await channels.open("alice", "bob", "carol", **AUTO)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shout, bob.channel)
        tasks.start_soon(shout, carol.channel)
        answer = await alice.channel.ask(b"hello", within_s=60)
        assert answer.content == b"HELLO" and answer.sender_id in ("bob", "carol")
        await alice.until(lambda: late_answers(alice))
        (late,) = late_answers(alice)
        assert {answer.sender_id, late.sender_id} == {"bob", "carol"}
        assert late.content == b"HELLO"
        tasks.cancel_scope.cancel()


async def test_all_answers_come_until_the_time_is_over(channels: Channels) -> None:
    alice, bob, carol, dave = await channels.open("alice", "bob", "carol", "dave", **AUTO)
    async with anyio.create_task_group() as tasks:
        for one in (bob, carol, dave):
            tasks.start_soon(shout, one.channel)
        began_s = anyio.current_time()
        found = [answer async for answer in alice.channel.ask_all(b"x", within_s=60)]
        assert sorted(answer.sender_id for answer in found) == ["bob", "carol", "dave"]
        assert anyio.current_time() - began_s == pytest.approx(60)
        async with alice.channel.ask_all(b"y", within_s=60) as few:
            assert (await anext(few)).content == b"Y"
        with pytest.raises(StopAsyncIteration):
            await anext(few)
        tasks.cancel_scope.cancel()


async def test_no_answer_in_time_names_what_was_missing(channels: Channels) -> None:
    alice, bob = await channels.open("alice", "bob", **AUTO)
    with bob.cut_off(), pytest.raises(NoAnswer) as caught:
        await alice.channel.ask(b"hello", within_s=5)
    text = str(caught.value)
    assert "within 5 s" in text and "preset 'auto'" in text
    assert "no other participant was heard" in text and "published" in text
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shout, bob.channel)
        await alice.until(lambda: late_answers(alice))
        assert late_answers(alice)[0].question_id == caught.value.question_id
        tasks.cancel_scope.cancel()


async def test_long_questions_and_answers_are_cut_and_joined(channels: Channels) -> None:
    alice, bob = await channels.open(
        "alice", "bob", segmentation="nim-segmentation", loss=0.2, **AUTO
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shout, bob.channel)
        answer = await alice.channel.ask(b"x" * 300_000, within_s=HOUR_S)
        assert answer.content == b"X" * 300_000
        await alice.channel.send(b"y" * 300_000, wait="acknowledged", within_s=HOUR_S)
        tasks.cancel_scope.cancel()


async def test_a_second_answer_of_a_participant_does_not_count(channels: Channels) -> None:
    alice, bob = await channels.open("alice", "bob", **AUTO)
    async with anyio.create_task_group() as tasks:

        async def answer_twice() -> None:
            question = await anext(bob.channel.questions())
            question_id = decode(question.event.content).question_id
            for content in (b"first", b"second"):  # as a service without state after a restart
                await bob.send(encode(question_id, content, "alice"))

        tasks.start_soon(answer_twice)
        found = [answer async for answer in alice.channel.ask_all(b"x", within_s=60)]
    assert [answer.content for answer in found] == [b"first"]


async def test_answers_to_one_question_are_bounded(
    channels: Channels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "ANSWERS_LIMIT", 1)
    alice, bob, carol = await channels.open("alice", "bob", "carol", **AUTO)
    async with anyio.create_task_group() as tasks:
        for one in (bob, carol):
            tasks.start_soon(shout, one.channel)
        found = [answer async for answer in alice.channel.ask_all(b"x", within_s=60)]
        tasks.cancel_scope.cancel()
    assert len(found) == len(late_answers(alice)) == 1


async def test_loops_of_a_program_share_the_questions(channels: Channels) -> None:
    alice, bob = await channels.open("alice", "bob", **AUTO)
    seen: list[bytes] = []

    async def answer() -> None:
        async for question in bob.channel.questions():
            seen.append(question.content)
            await anyio.sleep(1)
            await question.answer(b"done")

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(answer)
        async with anyio.create_task_group() as asking_tasks:
            for number in range(6):
                asking_tasks.start_soon(ask, alice.channel, b"%d" % number)
        tasks.cancel_scope.cancel()
    assert sorted(seen) == [b"%d" % number for number in range(6)]


async def ask(channel: ReliableChannel, question: bytes) -> None:
    await channel.ask(question, within_s=600)


def test_a_loop_that_is_cancelled_leaves_the_question_to_another() -> None:
    async def main() -> bytes:
        questions = asking.Asking("bob", lambda event: None)
        first, second = (asyncio.ensure_future(questions.next(lambda: False)) for _ in range(2))
        await asyncio.sleep(0)
        questions.note(MessageReceived("id", "alice", encode(bytes(16), b"hello"), 1, position=0))
        first.cancel()  # in the turn in which it was woken
        async with asyncio.timeout(60):
            return (await second).envelope.content

    assert asyncio.run(main()) == b"hello"


async def test_an_answer_stays_where_its_confirmation_is_cancelled(
    channels: Channels, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob = await channels.open("alice", "bob", **AUTO)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shout, bob.channel)
        answers = alice.channel.ask_all(b"hello", within_s=HOUR_S)
        with monkeypatch.context() as patch, anyio.move_on_after(60):
            patch.setattr(Runtime, "confirm", lambda runtime, event: anyio.sleep_forever())
            raise AssertionError(await anext(answers))
        assert (await anext(answers)).content == b"HELLO"
        tasks.cancel_scope.cancel()


async def test_a_question_that_was_not_accepted_can_be_asked_again(channels: Channels) -> None:
    alice, bob = await channels.open("alice", "bob", limits={"outgoing_messages": 1}, **AUTO)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shout, bob.channel)
        request = await alice.channel.send(b"in the way")
        answers = alice.channel.ask_all(b"hello", within_s=60)
        with pytest.raises(OutgoingBufferFull):
            await anext(answers)
        await request.acknowledged()
        assert (await anext(answers)).content == b"HELLO"
        tasks.cancel_scope.cancel()


async def test_an_open_question_is_answered_once_after_a_restart(channels: Channels) -> None:
    alice, bob = await channels.open("alice", "bob", **AUTO)
    questions = bob.channel.questions()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, alice.channel, b"hello")
        assert (await anext(questions)).content == b"hello"
        await channels.sleep(60)  # other readers of bob have confirmed what they may
        await bob.crash()
        await bob.start()
        question = await anext(bob.channel.questions())
        assert question.content == b"hello" and question.event.redelivered
        first = await question.answer(b"once")
        assert (await question.answer(b"twice")).request_id == first.request_id
    await bob.restart()
    await channels.sleep(60)
    with anyio.move_on_after(600):
        raise AssertionError(await anext(bob.channel.questions()))
    assert set(answers_in(alice).values()) == {1}


async def test_an_ignored_question_does_not_come_again(channels: Channels) -> None:
    alice, bob = await channels.open("alice", "bob", **AUTO)
    await alice.send(encode(bytes(16), b"spam"))
    await (await anext(bob.channel.questions())).ignore()
    await bob.restart()
    with anyio.move_on_after(600):
        raise AssertionError(await anext(bob.channel.questions()))


async def test_between_an_answer_and_its_confirmation_the_process_may_end(
    channels: Channels, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob = await channels.open("alice", "bob", **AUTO)
    await alice.send(encode(bytes(16), b"hello"))
    question = await anext(bob.channel.questions())

    async def dies(runtime: object, event: object) -> None:
        raise KeyError(event)

    with monkeypatch.context() as patch, pytest.raises(KeyError):
        patch.setattr(Runtime, "confirm", dies)
        await question.answer(b"HELLO")
    await bob.crash()
    await bob.start()
    with anyio.move_on_after(600):
        raise AssertionError(await anext(bob.channel.questions()))
    assert set(answers_in(alice).values()) == {1}


async def test_who_asks_again_after_a_kill_gets_the_answer_that_came(channels: Channels) -> None:
    alice, bob = await channels.open("alice", "bob", **AUTO)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shout, bob.channel)
        with alice.cut_off():
            with pytest.raises(NoAnswer):
                await alice.channel.ask(b"hello", within_s=1, idempotency_key="k")
        await alice.until(lambda: late_answers(alice))
        await alice.send("the next events confirm the answer, so that it does not come again")
        await channels.sleep(60)
        await alice.crash()
        await alice.start()
        answer = await alice.channel.ask(b"hello", within_s=60, idempotency_key="k")
        assert answer.content == b"HELLO"
        assert set(answers_in(bob).values()) == {1}
        tasks.cancel_scope.cancel()


async def test_questions_beyond_the_limit_are_dropped_and_come_after_a_restart(
    channels: Channels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "QUESTIONS_LIMIT", 2)
    alice, bob = await channels.open("alice", "bob", **AUTO)
    questions = bob.channel.questions()
    for number in range(3):
        await alice.send(encode(bytes(15) + bytes([number]), b"%d" % number))
    await bob.until(lambda: [e for e in bob.events if isinstance(e, QuestionDropped)])
    contents = [(await anext(questions)).content for _ in range(2)]
    assert contents == [b"1", b"2"]
    monkeypatch.undo()
    await bob.restart()
    questions = bob.channel.questions()
    assert [(await anext(questions)).content for _ in range(3)] == [b"0", b"1", b"2"]


async def test_an_envelope_of_another_version_is_an_event(channels: Channels) -> None:
    alice, bob = await channels.open("alice", "bob", **AUTO)
    await alice.send(encode(bytes(16), b"x").replace(b"\x10\x01", b"\x10\x02"))
    await bob.until(lambda: [e for e in bob.events if isinstance(e, MessageUndecodable)])
    (event,) = [e for e in bob.events if isinstance(e, MessageUndecodable)]
    assert event.sender_id == "alice" and "version 1 (got 2)" in event.reason


async def test_closing_the_channel_ends_every_wait(channels: Channels) -> None:
    alice, _ = await channels.open("alice", "bob", **AUTO)
    ended: list[str] = []

    async def answer() -> None:
        async for _ in alice.channel.questions():
            pass
        ended.append("questions")

    async def wait() -> None:
        with pytest.raises(ChannelClosed):
            await alice.channel.ask(b"x", within_s=HOUR_S)
        ended.append("ask")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(answer)
        tasks.start_soon(wait)
        await channels.sleep(1)
        await alice.stop()
    assert sorted(ended) == ["ask", "questions"]


async def test_a_closed_channel_takes_no_answer(channels: Channels) -> None:
    alice, bob = await channels.open("alice", "bob", **AUTO)
    await alice.send(encode(bytes(16), b"hello"))
    question = await anext(bob.channel.questions())
    await bob.stop()
    with anyio.fail_after(60):
        with pytest.raises(ChannelClosed, match="closed"):
            await question.answer(b"late")
        with pytest.raises(ChannelClosed, match="closed"):
            await question.ignore()


@pytest.mark.parametrize("seed", range(3))
async def test_loss_and_kills_lose_no_answer_and_double_none(
    seed: int, channels: Channels, virtual_time: None
) -> None:
    """Two services and a client; everybody is killed again and again, 30 % of messages are lost."""
    random = Random(seed)
    names = ("alice", "bob", "carol")
    alice, bob, carol = await channels.open(*names, loss=0.3, seed=10 * seed, **AUTO)
    for service in (bob, carol):  # readers of events confirm questions if nobody answers them
        service.on_open = lambda channel: channel.questions()
    answered: dict[int, bytes] = {}
    done = anyio.Event()

    async def serve(participant: Participant) -> None:
        async for question in participant.channel.questions():
            await anyio.sleep(random.random())
            await question.answer(participant.name.encode() + question.content)

    async def ask_all() -> None:
        for number in range(20):
            if number not in answered:
                key = f"question {number}"
                content = b"%d" % number
                answer = await alice.channel.ask(content, within_s=HOUR_S, idempotency_key=key)
                answered[number] = answer.content
        done.set()

    async def live(participant: Participant, life: Any) -> None:
        """Live some seconds, be killed, start again."""
        while not done.is_set():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(life)
                with anyio.move_on_after(random.uniform(1, 20)):
                    await done.wait()
                tasks.cancel_scope.cancel()
            await participant.crash()
            await participant.start()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(live, alice, ask_all)
        tasks.start_soon(live, bob, lambda: serve(bob))
        tasks.start_soon(live, carol, lambda: serve(carol))
    assert {number: content[-len(str(number)) :] for number, content in answered.items()} == {
        number: b"%d" % number for number in range(20)
    }
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve, bob)
        tasks.start_soon(serve, carol)
        await alice.until(lambda: len(answers_in(alice)) == 40, within_s=24 * HOUR_S)
        tasks.cancel_scope.cancel()
    await channels.agree()
    assert set(answers_in(bob).values()) == {1}


parts = st.tuples(st.binary(min_size=16, max_size=16), st.binary(), st.text())


@given(parts)
def test_what_is_encoded_is_decoded(parts: tuple[bytes, bytes, str]) -> None:
    payload = encode(*parts)
    found = decode(payload)
    assert is_envelope(payload)
    assert (found.question_id, found.content, found.asker_id) == parts


@given(parts, st.data())
def test_what_is_cut_short_is_unreadable_or_shorter(
    parts: tuple[bytes, bytes, str], data: st.DataObject
) -> None:
    payload = encode(*parts)
    cut = payload[: data.draw(st.integers(5, len(payload)))]
    try:
        found = decode(cut)
    except UnreadableEnvelope:
        return
    assert len(found.content) <= len(parts[1])


@given(st.text())
def test_no_text_is_an_envelope(text: str) -> None:
    assert not is_envelope(text.encode(errors="replace"))


def test_golden_bytes() -> None:
    payload = encode(bytes(range(16)), b"half past six", "alice")
    assert payload.hex() == (
        "0d524351a110011a10000102030405060708090a0b0c0d0e0f2205616c6963652a0d"
        "68616c66207061737420736978"
    )


def test_a_wrong_version_or_id_is_unreadable() -> None:
    payload = encode(bytes(16), b"x")
    with pytest.raises(UnreadableEnvelope, match=r"version 1 \(got 2\)"):
        decode(payload.replace(b"\x10\x01", b"\x10\x02"))
    with pytest.raises(UnreadableEnvelope, match="16 bytes"):
        decode(encode(b"short", b"x"))
