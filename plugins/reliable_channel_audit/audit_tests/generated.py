"""Journals of a group in which nothing goes wrong that is not put right: clean data for audits.

The schedule is drawn: latencies, copies that are lost and come from Store later, messages that wait
for others. The lines are written by the SDK's own `Journal`, the messages by its own codec.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

from reliable_channel.engine.logged import Logged
from reliable_channel.events import (
    AcknowledgementSource,
    MessageAcknowledged,
    MessageReceived,
    MessageSent,
    SendingMessage,
)
from reliable_channel.runtime.journal import PART_BYTES, Journal
from reliable_channel.sds.bloom import BloomParameters, RollingBloomFilter
from reliable_channel.sds.dialects import SpecCodec
from reliable_channel.sds.ids import reliable_channel_id
from reliable_channel.sds.message import HistoryEntry, Message
from reliable_channel.transport.base import Envelope, Received, Source

EPOCH_MS: Final = 1_700_000_000_000
QUIET_MS: Final = 200_000
"""How long all stay after the last message: longer than a repair takes by the default options."""
SMALL_BLOOM: Final = BloomParameters(60)
"""Filters that roll over a few times while a hundred messages are sent."""
_CODEC: Final = SpecCodec()


@dataclass(frozen=True)
class Packet:
    """A message on its way."""

    message: Message
    payload: bytes
    message_hash: bytes
    timestamp_ns: int


@dataclass
class Writer:
    """One participant, with its log and its journal."""

    name: str
    journal: Journal
    keys: list[tuple[int, str]] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    unacknowledged: set[str] = field(default_factory=set)
    parked: dict[str, Packet] = field(default_factory=dict)
    bloom_filter: RollingBloomFilter | None = None

    def land(self, message: Message, at_ms: int, message_hash: bytes | None) -> int:
        lamport, content = message.lamport_timestamp or 0, message.content or b""
        key = lamport, message.message_id
        position = bisect_left(self.keys, key)
        self.keys.insert(position, key)
        self.seen.add(message.message_id)
        first = message.message_id if message_hash is None else None
        logged = Logged(
            message.message_id,
            message.sender_id,
            lamport,
            position,
            0,
            content,
            first,
            message_hash,
        )
        self.journal.logged(logged, at_ms)
        return position

    def send(self, packet: Packet, at_ms: int) -> None:
        message_id = packet.message.message_id
        self.fill(message_id)
        self.journal.event(SendingMessage(message_id, "request"), at_ms)
        self.land(packet.message, at_ms, None)
        envelope = Envelope(packet.payload, packet.timestamp_ns, False, packet.message_hash)
        self.journal.went(packet.payload, envelope, "content", at_ms)
        sent = MessageSent(message_id, "request", packet.message_hash, (message_id,))
        self.journal.event(sent, at_ms)
        self.unacknowledged.add(message_id)

    def fill(self, message_id: str) -> None:
        if self.bloom_filter is not None:
            self.bloom_filter.insert(message_id)

    def receive(self, packet: Packet, source: Source, at_ms: int) -> None:
        message = packet.message
        ready = self.seen.issuperset(message.causal_ids)
        outcome = "duplicate" if message.message_id in self.seen else "parked"
        outcome = "delivered" if ready and outcome == "parked" else outcome
        received = Received(packet.payload, packet.message_hash, packet.timestamp_ns, source)
        self.journal.came(packet.payload, received, outcome, at_ms)
        for message_id in sorted(self.unacknowledged.intersection(message.causal_ids)):
            self.unacknowledged.discard(message_id)
            proof = AcknowledgementSource.CAUSAL_HISTORY
            told = MessageAcknowledged(message_id, proof, message.sender_id)
            self.journal.event(told, at_ms)
        if outcome != "duplicate":
            self.fill(message.message_id)
            self.parked[message.message_id] = packet
            self._deliver(deque([message.message_id] if ready else []), at_ms)

    def _deliver(self, ready: deque[str], at_ms: int) -> None:
        while ready:
            packet = self.parked.pop(ready.popleft())
            message = packet.message
            position = self.land(message, at_ms, packet.message_hash)
            received = MessageReceived(
                message.message_id,
                message.sender_id,
                message.content or b"",
                message.lamport_timestamp or 0,
                position,
                retrieval_hint=packet.message_hash,
            )
            self.journal.event(received, at_ms)
            ready += [
                message_id
                for message_id, parked in self.parked.items()
                if message_id not in ready and self.seen.issuperset(parked.message.causal_ids)
            ]


def copy_group(directory: Path, *, seed: int = 1, loss: float = 0.1) -> list[Path]:
    """As `write_group`, for tests that need the same journals again and again."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, data in _written(seed, loss):
        (directory / name).write_bytes(data)
    return sorted(directory.iterdir())


@lru_cache(maxsize=8)
def _written(seed: int, loss: float) -> list[tuple[str, bytes]]:
    with TemporaryDirectory() as directory:
        paths = write_group(Path(directory), seed=seed, loss=loss)
        return [(path.name, path.read_bytes()) for path in paths]


def write_group(
    directory: Path,
    *,
    participants: int = 4,
    messages: int = 120,
    seed: int = 1,
    loss: float = 0.1,
    history: int = 10,
    bloom: BloomParameters | None = SMALL_BLOOM,
    channel_id: str = "general",
    part_bytes: int = PART_BYTES,
    prefix: str = "p",
    is_hot: bool = False,
) -> list[Path]:
    """Write a journal for each participant and return their paths. If `is_hot`, half of what comes
    is the first message again."""
    options = {}
    if bloom is not None:
        options = {"bloom_capacity": bloom.capacity, "bloom_error_rate": bloom.error_rate}
    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / f"{prefix}{number:03}.jsonl" for number in range(participants)]
    random = Random(seed)
    with ExitStack() as stack:
        group = [
            Writer(
                path.stem,
                stack.enter_context(
                    Journal(
                        path,
                        channel_id=channel_id,
                        sender_id=path.stem,
                        content_topic="/generated/1/chat/proto",
                        part_bytes=part_bytes,
                    )
                ),
                bloom_filter=None if bloom is None else RollingBloomFilter(bloom),
            )
            for path in paths
        ]
        for writer in group:
            writer.journal.opened(at_ms=EPOCH_MS, wanted_from_ms=0, log_length=0, options=options)
        end_ms = _live(group, messages, random, loss, history, channel_id, is_hot=is_hot)
        for writer in group:
            writer.journal.closed(end_ms + QUIET_MS)
    return paths


def _live(
    group: list[Writer],
    messages: int,
    random: Random,
    loss: float,
    history: int,
    channel_id: str,
    *,
    is_hot: bool,
) -> int:
    """Let everything happen in the order of time; return when the last of it did."""
    numbers, at_ms, first = count(), EPOCH_MS, None
    agenda: list[tuple[int, int, Writer, Packet | None, Source]] = []
    for _ in range(messages):
        at_ms += 1 + int(random.expovariate(1 / 100))
        agenda.append((at_ms, next(numbers), random.choice(group), None, Source.LIVE))
    while agenda:
        at_ms, _, writer, packet, source = heapq.heappop(agenda)
        if packet is not None:
            writer.receive(packet, source, at_ms)
            if is_hot and first is not None:
                writer.receive(first, Source.STORE, at_ms)
            continue
        packet = _packet(writer, at_ms, random, history, channel_id)
        first = first or packet
        writer.send(packet, at_ms)
        for other, arrival_ms, source in _arrivals(group, writer, at_ms, random, loss):
            heapq.heappush(agenda, (arrival_ms, next(numbers), other, packet, source))
    return at_ms


def _arrivals(
    group: list[Writer], sender: Writer, at_ms: int, random: Random, loss: float
) -> Iterator[tuple[Writer, int, Source]]:
    for other in group:
        if other is not sender:
            if random.random() < loss:
                yield other, at_ms + random.randint(2_000, 5_000), Source.STORE
            else:
                yield other, at_ms + random.randint(5, 400), Source.LIVE


def _packet(writer: Writer, at_ms: int, random: Random, history: int, channel_id: str) -> Packet:
    content = random.randbytes(40)
    timestamp_ns = at_ms * 1_000_000
    newest = writer.keys[-history:] if history else []
    lamport = max(at_ms, newest[-1][0] + 1 if newest else 0)
    message = Message(
        writer.name,
        reliable_channel_id(writer.name, timestamp_ns, content),
        channel_id,
        lamport,
        tuple(HistoryEntry(message_id) for _, message_id in newest),
        None if writer.bloom_filter is None else bytes(writer.bloom_filter),
        (),
        content,
    )
    payload = _CODEC.encode(message)
    return Packet(message, payload, sha256(payload).digest(), timestamp_ns)
