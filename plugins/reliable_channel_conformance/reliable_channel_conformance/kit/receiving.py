"""Rows of the table about received messages, their order, duplicates, acknowledgements and
forgeries."""

from dataclasses import replace
from typing import Final

from .bench import Broken, Harness, NotApplicable
from .peer import Peer
from .row import advised, required

SDS: Final = "LIP 109, "


async def _order(bench: Harness, peer: Peer, contents: list[bytes]) -> None:
    """Wait until all are delivered, and compare the order."""
    await bench.expect(
        peer,
        lambda: set(contents) <= set(peer.payloads()),
        lambda: f"{contents} must all be delivered; it has {peer.payloads()}",
    )
    delivered = [each for each in peer.payloads() if each in contents]
    if delivered != contents:
        raise Broken(
            f"{contents} must be delivered once, in the order of the list (got {delivered})"
        )


@required(
    "causal order",
    SDS + "Receive Message",
    "If all dependencies are met and the message has a populated `content` field, the participant "
    "MUST deliver the message. If dependencies are unmet, the participant MUST add the message to "
    "the incoming buffer of messages with unmet causal dependencies.",
)
async def waits_for_its_dependency(bench: Harness) -> None:
    """A message `two` that refers to `one` arrives before `one` and is delivered after it."""
    peer = await bench.peer()
    one = bench.message("a", b"one")
    bench.say("a", b"two", history=[one.message_id])
    await bench.delivered(peer)
    if b"two" in peer.payloads():
        raise Broken("the peer delivered message `two` before message `one`, to which `two` refers")
    bench.network.publish(bench.profile.codec.encode(one))
    await _order(bench, peer, [b"one", b"two"])


@required(
    "causal order",
    SDS + "Receive Message",
    "Dependencies are met if the message IDs in the `causal_history` of the received message "
    "appear in the local history of the receiving participant.",
)
async def waits_for_what_waits_itself(bench: Harness) -> None:
    """Three messages, each of which refers to the one before, arrive in reverse order (D02,
    D30)."""
    peer = await bench.peer()
    one = bench.message("a", b"one")
    two = bench.message("a", b"two", history=[one.message_id])
    three = bench.message("a", b"three", history=[two.message_id])
    for each in (three, two, one):
        bench.network.publish(bench.profile.codec.encode(each))
        await peer.log()
    await _order(bench, peer, [b"one", b"two", b"three"])


@required(
    "causal order",
    SDS + "Resolve Conflicts",
    "The participant MUST order messages with the same Lamport timestamp in ascending order of "
    "message ID.",
)
async def ties_are_ordered_by_id(bench: Harness) -> None:
    """Of two messages with one timestamp, the log has the message with the lower id first."""
    peer = await bench.peer()
    stamp = bench.message("a", b"-").lamport_timestamp
    bench.say("a", b"greater", message_id="ff" * 32, lamport=stamp)
    bench.say("b", b"lesser", message_id="11" * 32, lamport=stamp)
    await bench.logged(peer, "11" * 32, "ff" * 32)
    ids = [entry["message_id"] for entry in await peer.log()]
    if ids.index("11" * 32) > ids.index("ff" * 32):
        raise Broken(f"the log must have 11… before ff… (got {ids})")


@advised(
    "causal order",
    SDS + "Receive Message",
    "the participant MAY deduplicate the message by comparing its `message_id` to previously "
    "received message IDs.",
)
async def duplicates_are_delivered_once(bench: Harness) -> None:
    """A message that arrives three times is delivered once (D01)."""
    peer = await bench.peer()
    data = bench.profile.codec.encode(bench.message("a", b"one"))
    for _ in range(3):
        bench.network.publish(data)
    await bench.delivered(peer)
    if (times := peer.payloads().count(b"one")) != 1:
        raise Broken(
            f"message `one` arrived three times, and the peer delivered the message {times} times"
        )


@required(
    "acknowledgement",
    SDS + "Review ACK Status",
    "the participant MUST mark all messages in the received `causal_history` as **acknowledged**.",
)
async def causal_history_acknowledges(bench: Harness) -> None:
    """The peer's message is acknowledged by a message whose causal history contains it."""
    peer = await bench.peer()
    sent = await peer.send(b"one")
    bench.say("a", b"reply", history=[bench.entry(sent, "peer")])
    await bench.expect(
        peer,
        lambda: bool(peer.named("message_acknowledged", message_id=sent)),
        f"`message_acknowledged` must be emitted for {sent}",
    )


@required(
    "acknowledgement",
    SDS + "Periodic Sync Message",
    "Participants MUST process the causal history and bloom filter of these sync messages "
    "following the same steps as regular messages.",
)
async def sync_messages_acknowledge(bench: Harness) -> None:
    """A sync message acknowledges the peer's message that it refers to, and is not delivered."""
    if bench.profile.refers_to_syncs:
        raise NotApplicable(f"the {bench.profile.name} dialect has no sync messages")
    peer = await bench.peer()
    sent = await peer.send(b"one")
    sync = bench.say("a", history=[bench.entry(sent, "peer")])
    await bench.expect(
        peer,
        lambda: bool(peer.named("message_acknowledged", message_id=sent)),
        f"`message_acknowledged` must be emitted for {sent}",
    )
    if sync in [entry["message_id"] for entry in await peer.log()]:
        raise Broken(
            "the peer has the sync message in its log, but logs hold only messages with content"
        )


@required(
    "acknowledgement",
    SDS + "Review ACK Status",
    "the participant MUST mark all messages included in the `bloom_filter` as **possibly "
    "acknowledged**.",
)
async def filter_acknowledges_possibly(bench: Harness) -> None:
    """With several other participants, a single filter with the peer's message only acknowledges it
    possibly."""
    peer = await bench.peer()
    await _with_others(bench, peer)
    sent = await peer.send(b"one")
    bench.say("a", b"hello", held=[sent])
    await bench.expect(
        peer,
        lambda: any(
            peer.named(f"message_{kind}acknowledged", message_id=sent) for kind in ("possibly_", "")
        ),
        f"`message_possibly_acknowledged` must be emitted for {sent}",
    )


@advised(
    "acknowledgement",
    SDS + "Review ACK Status",
    "If a message appears as **possibly acknowledged** in multiple received bloom filters, the "
    "participant MAY mark it as acknowledged based on probabilistic grounds.",
)
async def one_participant_counts_once(bench: Harness) -> None:
    """One of three other participants acknowledges a message twice by filter and counts once
    (D07)."""
    peer = await bench.peer()
    await _with_others(bench, peer)
    sent = await peer.send(b"one")
    for _ in range(2):
        bench.say("a", b"hello", held=[sent])
    await bench.delivered(peer)
    if peer.named("message_acknowledged", message_id=sent):
        raise Broken(
            f"two bloom filters of one participant were enough to acknowledge {sent}; filters of "
            "several participants are needed"
        )


@advised(
    "acknowledgement",
    SDS + "Participant state",
    "Furthermore, it SHOULD be designed to minimize false positives through an optimal selection "
    "of size and hash functions. (…) taking into account the bloom filter size and hash number.",
)
async def full_filters_acknowledge_nothing(bench: Harness) -> None:
    """Filters of two participants in which all bits are set acknowledge nothing (D09)."""
    peer = await bench.peer()
    await _with_others(bench, peer)
    sent = await peer.send(b"one")
    for sender in ("a", "b"):
        words = b"\xff" * bench.parameters.layout_in(bench.profile.bloom).byte_count
        bench.say(
            sender,
            b"everything",
            bloom_filter=bench.profile.bloom.write(bench.parameters, words),
        )
    await bench.delivered(peer)
    if peer.named("message_acknowledged", message_id=sent):
        raise Broken(f"bloom filters with all bits set acknowledged {sent}")


@required(
    "forged and malformed input",
    SDS + "Message",
    "Messages MUST adhere to the following meta structure",
)
async def survives_what_is_no_message(bench: Harness) -> None:
    """After noise, cut messages and wrong wire types, the peer still delivers a valid message."""
    peer = await bench.peer()
    whole = bench.profile.codec.encode(bench.message("a", b"cut"))
    for data in malformed(whole):
        bench.network.publish(data)
    await bench.delivered(peer)
    if b"cut" in peer.payloads():
        raise Broken("the peer delivered a truncated message")


@required(
    "forged and malformed input",
    SDS + "Receive Message",
    "the participant SHOULD ignore the message if it has a `sender_id` matching its own. (…) The "
    "`channel_id` field MUST be set to the identifier of the channel.",
)
async def ignores_other_channels_and_its_own_name(bench: Harness) -> None:
    """The peer delivers neither messages of other channels nor its own messages that come back."""
    peer = await bench.peer()
    other = replace(bench.message("a", b"other channel"), channel_id="another")
    bench.network.publish(bench.profile.codec.encode(other))
    sent = await peer.send(b"one")
    await bench.expect(
        peer,
        lambda: sent in [each.message_id for each in bench.network.by("peer")],
        "its message must be broadcast",
    )
    own = next(each for each in bench.network.by("peer") if each.message_id == sent)
    bench.network.publish(bench.profile.codec.encode(own))
    await bench.delivered(peer)
    if wrong := {b"other channel", b"one"} & set(peer.payloads()):
        raise Broken(f"{sorted(wrong)} must not be delivered")


@required(
    "forged and malformed input",
    SDS + "Receive Message",
    "If all dependencies are met and the message has a populated `content` field, the participant "
    "MUST deliver the message.",
)
async def odd_filters_do_not_stop_delivery(bench: Harness) -> None:
    """Messages with no filter, an empty filter, or a filter of odd length are delivered (D06)."""
    peer = await bench.peer()
    await peer.send(b"one")
    size = len(bench.filter_of([]))
    for name, data in (("empty", b""), ("short", b"\x01" * 100), ("long", b"\x00" * (size + 64))):
        bench.say("a", name.encode(), bloom_filter=data)
    expected = {b"empty", b"short", b"long"}
    await bench.expect(
        peer,
        lambda: expected <= set(peer.payloads()),
        lambda: f"all must be delivered; missing are {sorted(expected - set(peer.payloads()))}",
    )


@advised(
    "forged and malformed input",
    "SDS is silent; an id that refers to itself can never be met",
    "A message that refers to itself, or two that refer to each other, must not block others.",
)
async def cycles_do_not_block(bench: Harness) -> None:
    """Messages that refer to themselves or to each other do not block later messages."""
    peer = await bench.peer()
    bench.say("a", b"self", message_id="aa" * 32, history=["aa" * 32])
    bench.say("a", b"left", message_id="bb" * 32, history=["cc" * 32])
    bench.say("a", b"right", message_id="cc" * 32, history=["bb" * 32])
    await bench.delivered(peer)


@advised(
    "ephemeral",
    SDS + "Ephemeral Messages",
    "Upon reception, ephemeral messages SHOULD be delivered immediately without buffering for "
    "causal dependencies or including in the local log.",
)
async def ephemeral_messages_are_delivered(bench: Harness) -> None:
    """A message without Lamport timestamp, history and filter reaches the application (D04)."""
    if not bench.profile.has_ephemeral:
        raise NotApplicable(f"the {bench.profile.name} dialect has no ephemeral messages")
    peer = await bench.peer()
    await bench.delivered(peer)  # it listens: nobody repeats an ephemeral message
    message = replace(bench.message("a", b"brief"), lamport_timestamp=None, bloom_filter=None)
    bench.network.publish(bench.profile.codec.encode(message), ephemeral=True)
    await bench.delivered(peer)
    heard = [
        each for name in ("ephemeral_received", "message_received") for each in peer.named(name)
    ]
    if not any(each.get("message_id") == message.message_id for each in heard):
        raise Broken("the ephemeral message was not delivered")
    if message.message_id in [entry["message_id"] for entry in await peer.log()]:
        raise Broken(
            "the peer has the ephemeral message in its log, but logs hold no ephemeral messages"
        )


async def _with_others(bench: Harness, peer: Peer) -> None:
    """Let the peer know of three other participants."""
    for sender in ("a", "b", "c"):
        bench.say(sender, f"{sender} is here".encode())
    await bench.delivered(peer, sender="c")


ROWS = (
    waits_for_its_dependency,
    waits_for_what_waits_itself,
    ties_are_ordered_by_id,
    duplicates_are_delivered_once,
    causal_history_acknowledges,
    sync_messages_acknowledge,
    filter_acknowledges_possibly,
    one_participant_counts_once,
    full_filters_acknowledge_nothing,
    survives_what_is_no_message,
    ignores_other_channels_and_its_own_name,
    odd_filters_do_not_stop_delivery,
    cycles_do_not_block,
    ephemeral_messages_are_delivered,
)


def malformed(whole: bytes) -> list[bytes]:
    """Return noise, and cut or changed copies of a message, none of which is a valid message.

    Each cut removes one byte, because a longer cut could remove a whole optional field.
    """
    noise = [b"", b"\x00", b"\xff" * 100, b"\x0a\xff\xff\xff\xff\x0f", b"\x0b" * 2_000]
    return [*noise, whole[: len(whole) // 2], whole[:-1], whole[:20] + b"\x07" + whole[20:]]
