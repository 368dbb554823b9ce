"""The reliable-channel cases of logos-delivery's suite through its bindings' class: the same calls,
results, texts and events.

Where theirs waits ten seconds for what may not come, these let a later message come first.
"""

import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Final

import pytest
from result import Err, Ok

from interop.compat.wrapper import NodeWrapper

from .nodes import CHANNEL, TOPIC, NodeEvents, Nodes, message, say

pytestmark = pytest.mark.slow

OTHER_TOPIC = "/test/1/elsewhere/proto"
ALONE = {"retry_interval_ms": 3_600_000}
"""Nobody sends anything again by itself."""
REPAIRING: Final[dict[str, object]] = {
    **ALONE,
    "repair": {"t_min_ms": 0, "t_max_ms": 100, "sweep_interval_ms": 20},
}

Starter = Callable[..., tuple[NodeWrapper, NodeEvents]]


@pytest.fixture
def member(nodes: Nodes) -> Starter:
    """Start a node whose channel is open."""

    def start(
        name: str, *, topic: str = TOPIC, join: NodeWrapper | None = None, **config: object
    ) -> tuple[NodeWrapper, NodeEvents]:
        node, told = nodes.start(name, join=join, **config)
        assert node.channel_create(CHANNEL, topic, name) == Ok(CHANNEL)
        return node, told

    return start


# -- lifecycle -------------------------------------------------------------------------------------


@pytest.mark.conformance("RC01")
def test_a_channel_is_made_once(nodes: Nodes) -> None:
    node, told = nodes.start("alice")
    assert node.channel_create(CHANNEL, TOPIC, "alice") == Ok(CHANNEL)
    twice = node.channel_create(CHANNEL, TOPIC, "alice")
    assert twice == Err(f"ChannelCreate failed: channel already exists: {CHANNEL}")
    assert node.channel_exists(CHANNEL) == Ok(True)
    nodes.end()
    assert told.events == []


@pytest.mark.conformance("RC02")
def test_a_channel_that_was_never_made_takes_nothing(nodes: Nodes) -> None:
    node, told = nodes.start("alice")
    sent = node.channel_send("nobody's", message(b"hello"))
    assert sent == Err("ChannelSend failed: unknown channel: nobody's")
    assert node.channel_exists("nobody's") == Ok(False)
    nodes.end()
    assert told.events == []


@pytest.mark.conformance("RC03")
def test_a_channel_is_closed_once(nodes: Nodes) -> None:
    node, told = nodes.start("alice")
    node.channel_create(CHANNEL, TOPIC, "alice").unwrap()
    assert node.channel_close(CHANNEL) == Ok("")
    for unknown in (CHANNEL, "nobody's"):
        closed = node.channel_close(unknown)
        assert closed == Err(f"ChannelClose failed: unknown channel: {unknown}")
    assert node.channel_exists(CHANNEL) == Ok(False)
    nodes.end()
    assert told.events == []


@pytest.mark.conformance("RC03b")
def test_closing_an_unknown_channel_leaves_others_open(member: Starter) -> None:
    alice, to_alice = member("alice")
    bob, _ = member("bob", join=alice)
    assert alice.channel_close("nobody's").is_err()
    say(bob, b"hello")
    assert to_alice.delivers(b"hello")
    assert alice.channel_close(CHANNEL).is_ok()


@pytest.mark.conformance("RC04")
def test_an_empty_payload_is_refused_and_another_has_a_request_at_once(member: Starter) -> None:
    alice, _ = member("alice")
    empty = alice.channel_send(CHANNEL, message(b""))
    assert empty == Err("ChannelSend failed: empty payload")
    assert say(alice, b"to nobody yet")
    assert alice.channel_close(CHANNEL).is_ok()
    late = alice.channel_send(CHANNEL, message(b"late"))
    assert late == Err(f"ChannelSend failed: unknown channel: {CHANNEL}")


@pytest.mark.conformance("RC04b")
def test_the_ephemeral_flag_changes_nothing_for_the_sender(member: Starter) -> None:
    alice, _ = member("alice")
    assert alice.channel_send(CHANNEL, message(b"typing", ephemeral=True)).unwrap()
    empty = alice.channel_send(CHANNEL, message(b"", ephemeral=True))
    assert empty == Err("ChannelSend failed: empty payload")


@pytest.mark.conformance("RC04c")
def test_every_send_is_a_request_of_its_own(member: Starter) -> None:
    alice, _ = member("alice")
    assert say(alice, b"the same") != say(alice, b"the same")


# -- delivery --------------------------------------------------------------------------------------


@pytest.mark.conformance("RC05")
def test_a_message_arrives_with_its_content_and_sender(member: Starter) -> None:
    bob, to_bob = member("bob")
    alice, _ = member("alice", join=bob)
    say(alice, b"\x00hello\xff")
    assert to_bob.delivers(b"\x00hello\xff")
    (received,) = to_bob.of("channel_message_received")
    assert (received["channelId"], received["senderId"]) == (CHANNEL, "alice")


@pytest.mark.conformance("RC06")
def test_a_message_without_the_marker_reaches_messaging_alone(member: Starter) -> None:
    bob, to_bob = member("bob")
    alice, _ = member("alice", join=bob)
    alice.send_message(message(b"unmarked")).unwrap()
    assert to_bob.hears(b"unmarked")
    say(alice, b"marked")
    assert to_bob.delivers(b"marked")


@pytest.mark.conformance("RC07")
def test_a_message_on_another_topic_reaches_messaging_alone(member: Starter) -> None:
    bob, to_bob = member("bob")
    bob.subscribe_content_topic(OTHER_TOPIC).unwrap()
    alice, _ = member("alice", join=bob, topic=OTHER_TOPIC)
    carol, _ = member("carol", join=bob)
    say(alice, b"elsewhere")
    assert to_bob.hears(b"elsewhere", OTHER_TOPIC)
    say(carol, b"here")
    assert to_bob.delivers(b"here")


@pytest.mark.conformance("RC08")
def test_an_exchange_keeps_its_order_and_says_so_on_the_wire(member: Starter) -> None:
    bob, to_bob = member("bob")
    alice, to_alice = member("alice", join=bob)
    say(alice, b"m1")
    assert to_bob.delivers(b"m1")
    say(bob, b"m2")
    assert to_alice.delivers(b"m2")
    say(alice, b"m3")
    assert to_bob.delivers(b"m1", b"m3")
    assert to_bob.hears(b"m3")
    first, third = to_bob.envelopes()
    own_id, *history = re.findall(rb"[0-9a-f]{64}", third)
    assert re.findall(rb"[0-9a-f]{64}", first)[0] in history
    assert own_id not in history


@pytest.mark.conformance("RC08")
def test_a_message_is_received_before_its_channel_delivers_it(member: Starter) -> None:
    """The suite looks for the envelope as soon as the channel delivers."""
    bob, to_bob = member("bob")
    alice, to_alice = member("alice", join=bob)
    for number in range(20):
        say(alice, b"ping %d." % number)
        assert to_bob.delivers(*(b"ping %d." % n for n in range(number + 1)))
        say(bob, b"pong %d." % number)
        assert to_alice.delivers(*(b"pong %d." % n for n in range(number + 1)))
    for told, others in ((to_bob, b"ping"), (to_alice, b"pong")):
        content = re.compile(others + rb" \d+\.")
        heard: set[bytes] = set()
        for event in told.events:
            if event["eventType"] == "message_received":
                heard.update(content.findall(bytes(event["message"]["payload"])))
            if event["eventType"] == "channel_message_received":
                assert b64decode(event["payload"]) in heard


def test_own_messages_are_not_received(member: Starter) -> None:
    bob, to_bob = member("bob")
    alice, to_alice = member("alice", join=bob)
    say(alice, b"through the channel")
    alice.send_message(message(b"through messaging")).unwrap()
    assert to_bob.hears(b"through the channel") and to_bob.hears(b"through messaging")
    say(bob, b"answer")
    assert to_alice.hears(b"answer")
    assert not any(b"through" in envelope for envelope in to_alice.envelopes())


@pytest.mark.conformance("RC09")
def test_who_joins_late_gets_what_was_sent_before(nodes: Nodes, member: Starter) -> None:
    alice, _ = member("alice", channelOptions=ALONE)
    say(alice, b"m1")
    bob, to_bob = nodes.create("bob", join=alice, channelOptions=ALONE)
    assert bob.channel_create(CHANNEL, TOPIC, "bob") == Ok(CHANNEL)
    assert bob.channel_create(CHANNEL, TOPIC, "bob").is_err()
    assert bob.channel_exists(CHANNEL) == Ok(True)
    bob.start_node().unwrap()  # not before: what comes first would be missed
    assert to_bob.until(lambda: bool(to_bob.of("relay_topic_health_change")))
    say(alice, b"m2")
    assert to_bob.delivers(b"m1", b"m2")


def missed(
    nodes: Nodes, member: Starter, options: Mapping[str, object]
) -> tuple[NodeWrapper, NodeEvents]:
    """Bob, who has no channel when m1 comes, and then m2, which refers to it."""
    bob, to_bob = nodes.start("bob", channelOptions=options)
    bob.subscribe_content_topic(TOPIC).unwrap()
    alice, _ = member("alice", join=bob, channelOptions=options)
    say(alice, b"m1")
    assert to_bob.hears(b"m1")
    bob.channel_create(CHANNEL, TOPIC, "bob").unwrap()
    say(alice, b"m2")
    assert to_bob.hears(b"m2")
    return bob, to_bob


@pytest.mark.conformance("RC10")
def test_a_message_whose_predecessor_is_missing_waits(nodes: Nodes, member: Starter) -> None:
    bob, to_bob = missed(nodes, member, ALONE)
    carol, _ = member("carol", join=bob, channelOptions=ALONE)
    say(carol, b"refers to nothing")
    assert to_bob.delivers(b"refers to nothing")


@pytest.mark.conformance("RC10r")
def test_a_missing_message_is_repaired(nodes: Nodes, member: Starter) -> None:
    bob, to_bob = missed(nodes, member, REPAIRING)
    say(bob, b"still here")
    while not to_bob.until(lambda: len(to_bob.contents()) == 2, within_s=0.1):
        say(bob, b"still here")
    assert to_bob.contents() == [b"m1", b"m2"]


@pytest.mark.conformance("RC12")
def test_each_of_three_receives_it_once(member: Starter) -> None:
    bob, to_bob = member("bob")
    _, to_carol = member("carol", join=bob)
    alice, _ = member("alice", join=bob)
    for content in (b"m1", b"m2"):
        say(alice, content)
    for told in (to_bob, to_carol):
        assert told.delivers(b"m1", b"m2")
        assert {e["senderId"] for e in told.of("channel_message_received")} == {"alice"}


@pytest.mark.conformance("RC13")
def test_who_closes_and_comes_back_goes_on(member: Starter) -> None:
    bob, to_bob = member("bob")
    alice, _ = member("alice", join=bob)
    say(alice, b"m1")
    assert to_bob.delivers(b"m1")
    assert alice.channel_close(CHANNEL).is_ok()
    assert alice.channel_create(CHANNEL, TOPIC, "alice") == Ok(CHANNEL)
    say(alice, b"m2")
    say(alice, b"m3")
    assert to_bob.delivers(b"m1", b"m2", b"m3")


@pytest.mark.conformance("RCx")
def test_a_closed_channel_is_silent(nodes: Nodes, member: Starter) -> None:
    bob, to_bob = member("bob")
    alice, _ = member("alice", join=bob)
    assert bob.channel_close(CHANNEL).is_ok()
    bob.subscribe_content_topic(TOPIC).unwrap()  # closing ended the subscription, as theirs does
    say(alice, b"hello")
    assert to_bob.hears(b"hello")
    nodes.end()
    assert to_bob.contents() == []


@pytest.mark.conformance("RCp")
def test_a_channel_id_is_used_in_one_run_after_the_other(nodes: Nodes, member: Starter) -> None:
    for run in range(3):
        bob, to_bob = member("bob")
        alice, to_alice = member("alice", join=bob)
        say(alice, b"ping %d" % run)
        assert to_bob.delivers(b"ping %d" % run)
        say(bob, b"pong %d" % run)
        assert to_alice.delivers(b"pong %d" % run)
        nodes.end()


# -- beyond the suite ------------------------------------------------------------------------------


def test_a_request_that_store_has_is_sent(member: Starter) -> None:
    services = {"store": True, "reliabilityEnabled": True}
    options = {"confirm_interval_ms": 50}
    bob, _ = member("bob", **services)
    alice, to_alice = member("alice", join=bob, channelOptions=options, **services)
    request_id = say(alice, b"x" * 200_000)  # several segments
    assert to_alice.until(lambda: bool(to_alice.of("channel_message_sent")))
    (sent,) = to_alice.of("channel_message_sent")
    assert sent == {
        "eventType": "channel_message_sent",
        "channelId": CHANNEL,
        "requestId": request_id,
    }


def test_a_channel_without_autosharding_cannot_subscribe(nodes: Nodes) -> None:
    node, _ = nodes.start("alice", numShardsInNetwork=0)
    refused = node.channel_create(CHANNEL, TOPIC, "alice").unwrap_err()
    assert refused.startswith("ChannelCreate failed: failed to subscribe to content topic: ")
    assert node.channel_exists(CHANNEL) == Ok(False)
