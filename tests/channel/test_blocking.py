"""The channel without `async`."""

import inspect
import subprocess
import sys
from concurrent.futures import Future
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from reliable_channel import BlockingReliableChannel, MessageSent, ReliableChannel
from reliable_channel.conversation import json
from reliable_channel.errors import ChannelClosed, EmptyContent, NoAnswer
from reliable_channel.events import SendingMessage
from reliable_channel.state.files import check


def test_send_and_read_without_async() -> None:
    with BlockingReliableChannel(channel_id="script", sender_id="alice") as channel:
        request = channel.send(b"hello")
        assert any(isinstance(event, MessageSent) for event in channel.events())
        assert len(list(channel.events(timeout_s=0.01))) < 100, "it ends"
        assert [entry.content for entry in channel.log()] == [b"hello"]
        assert channel.statistics().sds.counters.sent == 1
        assert len(channel.log_digest()) == 64
        assert channel.send_ephemeral(b"typing")
        assert request.message_id == channel.log()[0].message_id
        with pytest.raises(EmptyContent):
            channel.send(b"")
    with pytest.raises(ChannelClosed):
        channel.send(b"late")


def test_leaving_a_loop_over_events_loses_none() -> None:
    with BlockingReliableChannel(channel_id="script", sender_id="alice") as channel:
        channel.send(b"one")
        first = next(channel.events())
        assert first.wire_name == "sending_message"
        assert any(isinstance(event, MessageSent) for event in channel.events())


def test_wrong_arguments_fail_at_construction() -> None:
    with pytest.raises(ValueError, match="retry_interval_ms"):
        BlockingReliableChannel(channel_id="x", sender_id="a", retry_interval_ms=0)


def test_a_reader_is_closed_at_the_end_of_its_block() -> None:
    with BlockingReliableChannel(channel_id="script", sender_id="alice") as channel:
        channel.send(b"one")
        with channel.events() as events:
            assert next(events).wire_name == "sending_message"
        assert list(events) == []
        with channel.events() as events:
            assert any(isinstance(event, MessageSent) for event in events)
    with pytest.raises(ChannelClosed):
        next(events)
    events.close()


def test_a_follower_has_the_log_and_what_comes_after_it() -> None:
    with BlockingReliableChannel(
        "memory://follow", channel_id="script", sender_id="alice"
    ) as alice:
        alice.send(b"one")
        with alice.follow() as follower:
            assert [entry.content for entry in follower.snapshot] == [b"one"]
            request = alice.send(b"two")
            sending = next(event for event in follower if isinstance(event, SendingMessage))
            assert sending == SendingMessage(request.message_id, request.request_id)


def test_an_interrupted_loop_takes_no_question(monkeypatch: pytest.MonkeyPatch) -> None:
    def channel(name: str) -> BlockingReliableChannel:
        return BlockingReliableChannel(
            "memory://interrupted", channel_id="script", sender_id=name, preset="auto"
        )

    result, waits = Future[Any].result, count()

    def interrupted(future: Future[Any], timeout: float | None = None) -> Any:
        if next(waits) == 1:  # the first is the start of the call, in AnyIO
            raise KeyboardInterrupt
        return result(future, timeout)

    with channel("alice") as alice, channel("bob") as bob:
        questions = bob.questions(timeout_s=10)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Future, "result", interrupted)
            next(questions)
        asking = Thread(target=alice.ask, args=(b"?",), kwargs={"within_s": 60})
        asking.start()
        next(questions).answer(b"!")
        asking.join()


def public(kind: type) -> dict[str, object]:
    members = {name: member for one in reversed(kind.__mro__) for name, member in vars(one).items()}
    return {name: member for name, member in members.items() if not name.startswith("_")}


def each(parameter: inspect.Parameter) -> str:
    return str(parameter).replace("blocking.Blocking", "conversation.conversation.")


def test_it_has_all_that_the_asynchronous_one_has() -> None:
    ours, theirs = public(BlockingReliableChannel), public(ReliableChannel)
    attributes = {"has_node"}  # an attribute of one, a property of the other
    assert set(ours) == set(theirs) - {"aclose"} - attributes | {"close"}
    for name in set(ours) & set(theirs):
        if isinstance(ours[name], property):
            assert isinstance(theirs[name], property), name
            continue
        own = inspect.signature(getattr(BlockingReliableChannel, name)).parameters
        waited = [each(value) for key, value in own.items() if key != "timeout_s"]
        others = inspect.signature(getattr(ReliableChannel, name)).parameters.values()
        assert waited == [each(value) for value in others], name
    one = BlockingReliableChannel(channel_id="c", sender_id="a", seed=5)
    for name in vars(ReliableChannel(channel_id="c", sender_id="a")):
        assert name.startswith("_") or hasattr(one, name), name


def test_it_takes_the_same_arguments() -> None:
    assert inspect.signature(BlockingReliableChannel) == inspect.signature(ReliableChannel)


def test_the_constructor_has_at_most_twelve_parameters_beside_options() -> None:
    beside = set(inspect.signature(ReliableChannel).parameters) - {"preset", "options", "values"}
    assert len(beside) <= 12


def test_a_misspelt_option_is_a_type_error() -> None:
    # mypy --strict fails where an ignored error is none (`make types`).
    with pytest.raises(TypeError, match="did you mean `history`"):
        ReliableChannel(channel_id="c", sender_id="a", histry="none")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="did you mean `history`"):
        BlockingReliableChannel(channel_id="c", sender_id="a", histry="none")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="`history` must be"):
        BlockingReliableChannel(channel_id="c", sender_id="a", history="no")  # type: ignore[arg-type]


def test_open_and_close_without_with() -> None:
    channel = BlockingReliableChannel("memory://hand", channel_id="script", sender_id="alice")
    channel.open()
    channel.open()
    request = channel.send(b"one")
    assert channel.explain(request.message_id).is_own
    assert channel.sync_status.received == 0
    assert not channel.explain_budget().enabled
    assert next(channel.sync_status_changes()) == channel.sync_status
    assert channel.dropped_incoming == 0
    with pytest.raises(ValueError, match="drop_incoming"):
        channel.cut_off(True)
    channel.close()
    channel.close()
    with pytest.raises(ChannelClosed):
        channel.send(b"two")


def test_the_status_ends_when_it_does_not_change() -> None:
    with BlockingReliableChannel("memory://still", channel_id="c", sender_id="alice") as channel:
        assert len(list(channel.sync_status_changes(timeout_s=0.01))) == 1


def test_the_verbs_without_async() -> None:
    with (
        BlockingReliableChannel(channel_id="verbs", sender_id="alice", preset="auto") as alice,
        BlockingReliableChannel.join(alice.invite(), sender_id="bob") as bob,
    ):
        texts = alice.typed(json(str))

        def answer() -> None:
            for question in bob.typed(json(str)).questions():
                assert question.message_id == question.event.message_id
                request = question.answer(f"{question.sender_id} asked {question.content}")
                assert request.message_ids
                return

        service = Thread(target=answer)
        service.start()
        assert texts.ask("when?", within_s=600).content == "alice asked when?"
        service.join()
        assert [one.sender_id for one in alice.participants()] == ["bob"]
        request = alice.send(b"one", wait="acknowledged", within_s=600)
        request.acknowledged(within_s=0)
        assert not alice.cancel(request)
        with bob.messages() as messages:
            assert next(messages).content == b"one"
        with pytest.raises(NoAnswer):
            alice.ask(b"who?", within_s=0)
        with bob.questions() as questions:
            next(questions).ignore()
            assert list(bob.questions(timeout_s=0)) == []
        assert list(alice.ask_all(b"who?", within_s=0)) == []


LEFT_OPEN = """
import os, sys
from reliable_channel import BlockingReliableChannel
from reliable_channel.errors import ChannelClosed

channel = BlockingReliableChannel(
    "memory://x", channel_id="c", sender_id="a", state=f"sqlite:///{sys.argv[1]}"
)
channel.open()
channel.send(b"kept")
if sys.argv[2] == "fork" and not os.fork():
    for call in (channel.open, channel.statistics, lambda: channel.send(b"x"), channel.events):
        try:
            call()
        except ChannelClosed as error:
            assert "forked" in str(error), error
        else:
            raise AssertionError("an inherited channel works")
    assert not channel.health().live
    channel.close()
    with BlockingReliableChannel("memory://y", channel_id="c", sender_id="b") as own:
        own.send(b"of the child")
    print("the child ends", flush=True)
elif sys.argv[2] == "fork":
    os.wait()
if sys.argv[2] == "raise":
    raise SystemExit(3)
"""


@pytest.mark.parametrize(
    ("how", "status", "told"), [("end", 0, ""), ("raise", 3, ""), ("fork", 0, "the child ends\n")]
)
def test_a_channel_left_open_keeps_no_process_alive_and_says_so(
    how: str, status: int, told: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.db"
    command = [sys.executable, "-X", "dev", "-c", LEFT_OPEN, str(path), how]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (status, told), done.stderr
    assert done.stderr.count("channel 'c' was left open, and is closed") == 1
    assert check(path) == [], "it was closed in order"
