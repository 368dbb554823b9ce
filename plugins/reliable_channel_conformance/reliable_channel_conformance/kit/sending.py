"""Rows of the table about sent messages, with their fields, references, clocks, retries and
syncs."""

from typing import Final

from .bench import Broken, Harness, NotApplicable
from .peer import Peer, PeerFailed
from .row import advised, required

SDS: Final = "LIP 109, "
EPOCH_S: Final = "10000000"
"""Length of an epoch that does not end while a check runs (s)."""


def _content(bench: Harness, name: str = "peer") -> list[str]:
    return [each.message_id for each in bench.network.by(name) if each.content]


async def _sent(bench: Harness, peer: Peer, content: bytes) -> str:
    """Have a peer send, and wait until the message is on the wire."""
    message_id = await peer.send(content)
    await bench.expect(
        peer,
        lambda: message_id in _content(bench, peer.name),
        f"message {message_id} must be broadcast, and is not",
    )
    return message_id


@required(
    "encoding",
    SDS + "Message",
    "The sending participant MUST include its own globally unique identifier in the `sender_id` "
    "field. In addition, it MUST include a globally unique identifier for the message in the "
    "`message_id` field. The `channel_id` field MUST be set.",
)
async def fields_are_set(bench: Harness) -> None:
    """A content message can be decoded, and has sender, id, channel, Lamport timestamp and
    content."""
    peer = await bench.peer()
    message_id = await _sent(bench, peer, b"one")
    if any(each.message is None for each in bench.network.wire if each.sender == "peer"):
        raise Broken("a message of the peer cannot be decoded as an SDS message")
    message = next(each for each in bench.network.by("peer") if each.message_id == message_id)
    if message.sender_id != "peer" and bench.profile.requires_sender:
        raise Broken(f"`sender_id` must be 'peer' (got {message.sender_id!r})")
    if message.channel_id != "conformance":
        raise Broken(f"`channel_id` must be 'conformance' (got {message.channel_id!r})")
    if message.lamport_timestamp is None or b"one" not in (message.content or b""):
        raise Broken("the message lacks a Lamport timestamp, or its content")


@required(
    "encoding",
    SDS + "Send Message",
    "the participant MUST include the current `bloom_filter` state in the broadcast message.",
)
async def filter_has_what_was_received(bench: Harness) -> None:
    """After a message is delivered, the peer's next message has its id in the filter."""
    peer = await bench.peer()
    received = bench.say("a", b"first")
    await bench.expect(peer, lambda: b"first" in peer.payloads(), "`first` must be delivered")
    message_id = await _sent(bench, peer, b"one")
    message = next(each for each in bench.network.by("peer") if each.message_id == message_id)
    if message.bloom_filter is None:
        raise Broken("the message has no bloom filter")
    layout, words = bench.profile.bloom.read(message.bloom_filter, bench.parameters)
    if not layout.holds(words, bench.profile.bloom.hash_pair(received)):
        raise Broken(f"the bloom filter of the message lacks {received}, which the peer delivered")


@required(
    "causal order",
    SDS + "Send Message",
    "the participant MUST determine the preceding few message IDs in the local history and include "
    "these in an ordered list in the `causal_history` field.",
)
async def history_has_what_was_delivered(bench: Harness) -> None:
    """A message refers to the message that was delivered last, and to the peer's own last
    message."""
    peer = await bench.peer()
    received = bench.say("a", b"first")
    await bench.expect(peer, lambda: b"first" in peer.payloads(), "`first` must be delivered")
    own = await _sent(bench, peer, b"one")
    second = await _sent(bench, peer, b"two")
    histories = {each.message_id: list(each.causal_ids) for each in bench.network.by("peer")}
    if received not in histories[own]:
        raise Broken(f"the causal history of the message is {histories[own]}, but lacks {received}")
    if own not in histories[second]:
        raise Broken(f"the causal history of the message is {histories[second]}, but lacks {own}")


@required(
    "clocks",
    SDS + "Send Message",
    "the participant MUST increase its local Lamport timestamp by `1` and include this in the "
    "`lamport_timestamp` field.",
)
async def clock_increases(bench: Harness) -> None:
    """Of two messages, the second message has the greater Lamport timestamp."""
    peer = await bench.peer()
    ids = [await _sent(bench, peer, b"one"), await _sent(bench, peer, b"two")]
    stamps = [_stamp(bench, message_id) for message_id in ids]
    if not stamps[0] < stamps[1]:
        raise Broken(f"Lamport timestamps must increase (got {stamps})")


@required(
    "clocks",
    SDS + "Deliver Message",
    "If the received message's Lamport timestamp is greater than the participant's local Lamport "
    "timestamp, the participant MUST update its local Lamport timestamp to match.",
)
async def clock_follows_a_delivered_message(bench: Harness) -> None:
    """After a message from ten minutes ahead, the peer's next message has a greater timestamp."""
    peer = await bench.peer()
    first = bench.message("a", b"from ahead")
    ahead = (first.lamport_timestamp or 0) + 600_000
    bench.say("a", b"from ahead", lamport=ahead)
    await bench.expect(peer, lambda: b"from ahead" in peer.payloads(), "it must be delivered")
    message_id = await _sent(bench, peer, b"one")
    if _stamp(bench, message_id) <= ahead:
        raise Broken(
            f"after it received Lamport timestamp {ahead}, the peer sent "
            f"{_stamp(bench, message_id)}"
        )


@advised(
    "clocks",
    "SDS is silent; LIP 109 begins clocks at the time, so a far timestamp is no honest one",
    "A Lamport timestamp far in the future must not move the clocks of a channel for ever.",
)
async def clock_resists_the_far_future(bench: Harness) -> None:
    """After a message from the year 2300, the peer's messages still have timestamps of today."""
    peer = await bench.peer()
    far = 10_413_792_000_000
    bench.say("a", b"from 2300", lamport=far)
    await bench.delivered(peer)
    message_id = await _sent(bench, peer, b"one")
    if _stamp(bench, message_id) >= far:
        raise Broken(
            f"the Lamport timestamp of the peer followed a far one to {_stamp(bench, message_id)}"
        )


@required(
    "loss",
    SDS + "Periodic Outgoing Buffer Sweep",
    "The participant MUST rebroadcast **unacknowledged** outgoing messages after a set period.",
)
async def unacknowledged_is_sent_again(bench: Harness) -> None:
    """A message without an acknowledgement is broadcast a second and a third time."""
    peer = await bench.peer()
    message_id = await _sent(bench, peer, b"one")
    await bench.expect(
        peer,
        lambda: _content(bench).count(message_id) >= 3,
        lambda: f"it must be broadcast again, and was {_content(bench).count(message_id)} times",
    )


@required(
    "loss",
    SDS + "Review ACK Status",
    "**Acknowledged** - (…) This state will also remove the message from the outgoing buffer.",
)
async def acknowledged_is_not_sent_again(bench: Harness) -> None:
    """A message is no longer broadcast after its acknowledgement, while an unacknowledged message
    is."""
    peer = await bench.peer()
    first = await _sent(bench, peer, b"one")
    bench.say("a", b"reply", history=[first])
    await bench.delivered(peer)
    second = await _sent(bench, peer, b"two")
    before = _content(bench).count(first)
    await bench.expect(
        peer,
        lambda: _content(bench).count(second) >= 4,
        f"{second} must be broadcast again while no participant acknowledges it",
    )
    if (after := _content(bench).count(first)) > before:
        raise Broken(
            f"{first} was acknowledged, but the peer broadcast it {after - before} times afterwards"
        )


@advised(
    "shape of traffic",
    SDS + "Periodic Sync Message",
    "For each channel of communication, participants SHOULD periodically send sync messages.",
)
async def sync_messages_are_sent(bench: Harness) -> None:
    """A peer with a log sends messages without content on its own."""
    if bench.profile.refers_to_syncs:
        raise NotApplicable(f"the {bench.profile.name} dialect has no sync messages")
    peer = await bench.peer()
    bench.say("a", b"first")
    await bench.expect(peer, lambda: bool(_syncs(bench)), "it must send a sync message")


@required(
    "shape of traffic",
    SDS + "Periodic Sync Message",
    "These sync messages MUST NOT be included in causal histories of subsequent messages.",
)
async def sync_messages_are_not_referred_to(bench: Harness) -> None:
    """The causal history of a message contains no sync messages, own or received."""
    if bench.profile.refers_to_syncs:
        raise NotApplicable(f"the {bench.profile.name} dialect has no sync messages")
    peer = await bench.peer()
    theirs = bench.say("a")
    bench.say("a", b"first")
    await bench.expect(peer, lambda: bool(_syncs(bench)), "it must send a sync message")
    own = set(_syncs(bench))
    message_id = await _sent(bench, peer, b"one")
    message = next(each for each in bench.network.by("peer") if each.message_id == message_id)
    if wrong := {theirs, *own} & set(message.causal_ids):
        raise Broken(f"the causal history of the message lists sync messages: {sorted(wrong)}")


@advised(
    "shape of traffic",
    "SDS is silent; one request of a hundred bytes is answered with a message of 20 kB and more",
    "A repair request that is replayed must not be answered each time.",
)
async def replayed_requests_are_answered_once(bench: Harness) -> None:
    """A repair request that is repeated ten times within some seconds gets at most two answers."""
    peer = await bench.peer()
    wanted = bench.say("a", b"wanted")
    await bench.expect(peer, lambda: b"wanted" in peer.payloads(), "`wanted` must be delivered")
    data = bench.profile.codec.encode(bench.message("b", requests=[bench.entry(wanted, "a")]))
    for _ in range(10):
        bench.network.publish(data)
        await peer.until(lambda: False, beats=5)
    if (times := _content(bench).count(wanted)) > 2:
        raise Broken(
            f"the peer answered one repair request, replayed ten times, with {times} messages"
        )


@advised(
    "rate limit",
    "LIP 173, Rate limit manager",
    "At the limit, further dispatch MUST wait for the next epoch.",
)
async def budget_of_an_epoch_is_kept(bench: Harness) -> None:
    """With a budget of 5 messages per epoch, the peer accepts 12 messages and sends 5 of them."""
    flags = ("--rate-limit-enabled", "--rate-limit-messages-per-epoch", "5")
    try:
        peer = await bench.peer(flags=(*flags, "--rate-limit-epoch-period-s", EPOCH_S))
    except PeerFailed as error:
        raise NotApplicable(
            f"the peer does not accept the flags `{' '.join(flags)}`: {error}"
        ) from error
    for number in range(12):
        await peer.send(f"message {number}".encode())

    def published() -> int:
        return len(bench.network.by("peer"))

    await peer.until(lambda: published() > 5, bench.setting.beats // 3)
    if published() > 5:
        raise Broken(f"the peer has a budget of 5 messages an epoch, but sent {published()}")


def _syncs(bench: Harness) -> list[str]:
    return [each.message_id for each in bench.network.by("peer") if not each.content]


def _stamp(bench: Harness, message_id: str) -> int:
    return next(
        each.lamport_timestamp or 0
        for each in bench.network.by("peer")
        if each.message_id == message_id
    )


ROWS = (
    fields_are_set,
    filter_has_what_was_received,
    history_has_what_was_delivered,
    clock_increases,
    clock_follows_a_delivered_message,
    clock_resists_the_far_future,
    unacknowledged_is_sent_again,
    acknowledged_is_not_sent_again,
    sync_messages_are_sent,
    sync_messages_are_not_referred_to,
    replayed_requests_are_answered_once,
    budget_of_an_epoch_is_kept,
)
