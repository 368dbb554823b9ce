"""2/MVDS: payloads, a node that is given several, and a channel's core that is given envelopes."""

from collections.abc import Iterator
from hashlib import sha256
from random import Random
from typing import Final

from reliable_channel.engine.sync_core import NO_RECORDER, CoreContext
from reliable_channel.events import MessageReceived
from reliable_channel.options import ChannelOptions
from reliable_channel.state import MemoryStateStore
from reliable_channel_mvds import (
    PROFILES,
    SEED,
    CodecError,
    GroupId,
    GroupOffer,
    Limits,
    Message,
    MessageId,
    MvdsNode,
    NodeOptions,
    Payload,
    PeerId,
)
from reliable_channel_mvds.channel import MvdsCore
from reliable_channel_mvds.channel.wire import Content, Envelope
from tests.sds.world import taken

from ..target import Target, joined, records

NOW_MS: Final = 1_700_000_000_000
GROUP: Final = GroupId(b"g" * 32)
PEERS: Final = (PeerId(b"bob"), PeerId(b"carol"))
LIMITS: Final = Limits(
    payload_bytes=1_024,
    messages=8,
    message_bytes=2_000,
    remembered_ids=8,
    records_per_peer=8,
    requests_per_peer=8,
    acks_per_peer=8,
)
MESSAGE: Final = Message(GROUP, 1_700_000_000, b"hello", b"\xa2\xf7\x02\x01x")


def payloads() -> Iterator[bytes]:
    wanted = MessageId(b"w" * 32)
    yield SEED.encode(Payload(acks=(MESSAGE.id,), offers=(wanted,)))
    yield SEED.encode(Payload(requests=(MESSAGE.id,), messages=(MESSAGE,)))
    yield SEED.encode(Payload(group_offers=(GroupOffer(GROUP, (wanted,)),)))
    yield PROFILES["later"].encode(Payload((wanted,), (wanted,), (wanted,), (MESSAGE,)))


def _payload(data: bytes) -> None:
    """Written again it means the same, in each numbering."""
    for profile in PROFILES.values():
        try:
            payload = profile.decode(data)
        except CodecError:
            continue
        assert profile.decode(profile.encode(payload)) == payload


def _node(data: bytes) -> None:
    """Limits hold, payloads fit, and in the end nobody is answered any more."""
    node = MvdsNode(
        PeerId(b"alice"),
        now_ms=NOW_MS,
        random=Random(7).random,
        options=NodeOptions(max_send_count=3, limits=LIMITS),
    )
    for peer_id in PEERS:
        node.add_peer(GROUP, peer_id)
    for now_ms, record in enumerate(records(data), NOW_MS):
        (node.overhear if record[-1:] > b"\x7f" else node.receive)(
            PEERS[len(record) & 1], record[:-1], now_ms
        )
        statistics = node.statistics()
        assert statistics.messages <= LIMITS.messages
        assert statistics.message_bytes <= LIMITS.message_bytes
        assert statistics.acks <= LIMITS.acks_per_peer * len(PEERS)
        assert statistics.requests <= LIMITS.requests_per_peer * len(PEERS)
        assert statistics.records - statistics.requests <= LIMITS.records_per_peer * len(PEERS)
    while (deadline_ms := node.next_deadline_ms()) is not None:
        node.on_deadline(deadline_ms)
    for outgoing in node.outgoing():
        assert 0 < len(outgoing.data) <= LIMITS.payload_bytes
    assert node.statistics().records == node.statistics().acks == 0


def _envelopes() -> Iterator[bytes]:
    body = Content("bob", NOW_MS, b"hello").encode()
    group = GroupId(sha256(b"reliable-channel mvds general").digest())
    payload = SEED.encode(Payload(messages=(Message(group, 1, body),)))
    yield Envelope("general", "bob").encode()
    yield Envelope("general", "bob", payload=payload).encode()
    yield Envelope("general", "carol", "alice", payload=payload).encode()
    yield Envelope("general", "carol", "bob", payload=payload).encode()
    yield Envelope("general", "bob", ephemeral=b"typing", nonce=bytes(8)).encode()


def _channel(data: bytes) -> None:
    """Each message is delivered once, and the log holds what was."""
    core = MvdsCore(
        CoreContext(
            *("general", "alice", ChannelOptions(), NOW_MS, Random(7).random),
            *(NO_RECORDER, MemoryStateStore().archive()),
        )
    )
    core.send(b"hello", NOW_MS)
    for now_ms, record in enumerate(records(data), NOW_MS):
        core.receive(record, now_ms, sent_at_ns=now_ms * 1_000_000)
        for outgoing in taken(core.outgoing):
            core.dispatched(outgoing.message_id, now_ms)
    delivered = [e.message_id for e in taken(core.events) if isinstance(e, MessageReceived)]
    assert len(set(delivered)) == len(delivered) == len(core.log) - 1


TARGETS: Final = (
    Target("mvds_payload", _payload, payloads),
    Target(
        "mvds_node",
        _node,
        lambda: [joined(payload + bytes([end]) for payload in payloads()) for end in (0, 255)],
    ),
    Target("mvds_channel", _channel, lambda: [joined(_envelopes())]),
)
