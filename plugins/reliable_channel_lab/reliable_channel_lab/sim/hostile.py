"""Dishonest participant that has the key of the channel."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Final

from reliable_channel.sds import HistoryEntry, Message, SdsOptions, WireProfile
from reliable_channel.sds.adaptive.bundles import MAX_UNPACKED_BYTES, packed
from reliable_channel.sds.dialects import CodecError
from reliable_channel.sds.message import FINGERPRINT_BYTES, ListedIds, LogRoot, Reconciling

from .ledger import Ledger
from .network import Network, Packet, packet
from .scenario import Attack
from .timeline import Timeline

HEARD: Final = 500
"""Number of received packets that the attacker remembers and uses against their senders."""
HOUR_MS: Final = 3_600_000


class Attacker:
    """Participant that receives all messages, and sends messages that no honest participant
    sends."""

    def __init__(
        self,
        number: int,
        timeline: Timeline,
        network: Network,
        ledger: Ledger,
        profile: WireProfile,
        options: SdsOptions,
        channel_id: str,
        random: Random,
    ) -> None:
        self.number = number
        self._timeline = timeline
        self._network = network
        self._ledger = ledger
        self._profile = profile
        self._layout = options.bloom.layout
        self._most_ahead_ms = options.max_lamport_ahead_ms
        self._channel_id = channel_id
        self._random = random
        self._heard: OrderedDict[str, tuple[Message, Packet]] = OrderedDict()
        self._made = 0
        self._attacks: dict[Attack, Callable[[], Iterator[Message]]] = {
            Attack.LAMPORT_FAR_AHEAD: self._lamport_far_ahead,
            Attack.LAMPORT_AHEAD: self._lamport_ahead,
            Attack.FULL_FILTER: self._full_filter,
            Attack.UNKNOWN_DEPENDENCIES: self._unknown_dependencies,
            Attack.CYCLE: self._cycle,
            Attack.REQUEST_STORM: self._request_storm,
            Attack.FORGED_SENDER: self._forged_sender,
            Attack.FALSE_ROOT: self._false_root,
            Attack.FALSE_DIFFERENCE: self._false_difference,
        }

    def hear(self, arrived: Packet) -> None:
        try:
            message = self._profile.codec.decode(arrived.data)
        except CodecError:
            return
        self._heard[message.message_id] = message, arrived
        if len(self._heard) > HEARD:
            self._heard.popitem(last=False)
        if (record := self._ledger.enter(message)) is not None:
            record.received = True

    def attack(self, attack: Attack) -> None:
        now_ms = self._timeline.now_ms
        if attack is Attack.GARBAGE:
            data = bytes(int(self._random.random() * 256) for _ in range(100))
            self._network.broadcast(self.number, packet(data, now_ms))
        elif attack is Attack.REPLAY:
            for _, heard in self._some_heard(10):
                self._network.broadcast(self.number, heard)
        else:
            for message in self._attacks[attack]():
                self._ledger.enter(message)
                data = self._profile.codec.encode(message)
                self._network.broadcast(self.number, packet(data, now_ms))

    def _lamport_far_ahead(self) -> Iterator[Message]:
        yield self._message(ahead_ms=self._most_ahead_ms + 24 * HOUR_MS)

    def _lamport_ahead(self) -> Iterator[Message]:
        yield self._message(ahead_ms=self._most_ahead_ms - 6 * HOUR_MS)

    def _full_filter(self) -> Iterator[Message]:
        yield self._message(content=None, bloom=b"\xff" * self._layout.byte_count)

    def _unknown_dependencies(self) -> Iterator[Message]:
        unknown = [self._entry(self._new_id()) for _ in range(100)]
        yield self._message(after=unknown)

    def _cycle(self) -> Iterator[Message]:
        ids = [self._new_id() for _ in range(3)]
        for message_id, after in zip(ids, ids[1:] + ids[:1], strict=True):
            yield self._message(message_id=message_id, after=[self._entry(after)])

    def _request_storm(self) -> Iterator[Message]:
        wanted = [
            self._entry(message.message_id, message.sender_id)
            for message, _ in self._some_heard(100)
        ]
        yield self._message(content=None, requests=wanted)

    def _forged_sender(self) -> Iterator[Message]:
        for message, _ in self._some_heard(1):
            yield self._message(sender=message.sender_id)

    def _false_root(self) -> Iterator[Message]:
        random, end = self._random.random, self._timeline.now_ms // 1_000
        fingerprint = bytes(int(random() * 256) for _ in range(FINGERPRINT_BYTES))
        start = int(random() * end) if self._made % 2 else 0
        root = LogRoot(start, end, int(random() * 100), fingerprint)
        yield replace(self._message(content=None), log_root=root)

    def _false_difference(self) -> Iterator[Message]:
        """Claims to have nothing, claims to have made-up messages, and bundles of anything."""
        random, end = self._random.random, self._timeline.now_ms // 1_000
        hashes = bytes(int(random() * 256) for _ in range(8 * int(random() * 50)))
        roots = tuple(
            LogRoot(int(random() * end), end, int(random() * 100), bytes(FINGERPRINT_BYTES))
            for _ in range(int(random() * 100))
        )
        nested = Reconciling(bundle=(b"", b"garbage"))
        inner = self._profile.codec.encode(replace(self._message(content=None), reconciling=nested))
        heard = [packet.data for _, packet in self._some_heard(20)]
        for said in (
            Reconciling(lists=(ListedIds(0, end, b""), ListedIds(0, end, hashes))),
            Reconciling(roots=roots),
            Reconciling(bundle=(inner, *heard, b"garbage")),
            Reconciling(packed=packed((inner, *heard, b"garbage"))),
            Reconciling(packed=packed((bytes(MAX_UNPACKED_BYTES),))),
        ):
            yield replace(self._message(content=None), reconciling=said)

    def _some_heard(self, count: int) -> list[tuple[Message, Packet]]:
        heard = list(self._heard.values())
        picks = [int(self._random.random() * len(heard)) for _ in range(min(count, len(heard)))]
        return [heard[pick] for pick in sorted(set(picks))]

    def _message(
        self,
        *,
        sender: str = "mallory",
        message_id: str | None = None,
        ahead_ms: int = 0,
        after: list[HistoryEntry] | None = None,
        requests: list[HistoryEntry] | None = None,
        bloom: bytes | None = None,
        content: bytes | None = b"",
    ) -> Message:
        message_id = message_id or self._new_id()
        return Message(
            sender,
            message_id,
            self._channel_id,
            self._timeline.now_ms + ahead_ms,
            after or (),
            bloom,
            requests or (),
            # Empty stands for: something, and never twice the same.
            f"mallory writes {message_id}".encode() if content == b"" else content,
        )

    def _entry(self, message_id: str, sender_id: str = "mallory") -> HistoryEntry:
        return HistoryEntry(message_id, None, sender_id)

    def _new_id(self) -> str:
        self._made += 1
        return f"{int(self._random.random() * 2**53):014x}-{self._made:x}"
