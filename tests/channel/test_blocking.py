"""The channel without `async`."""

import pytest

from reliable_channel import BlockingReliableChannel, MessageSent
from reliable_channel.errors import ChannelClosed, EmptyContent
from reliable_channel.events import SendingMessage


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
