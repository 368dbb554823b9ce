"""The `state` of the specification: records of what is to be sent to which peer, how often it was,
and at which epoch it may be again.

A peer has at most one record for a message: it is offered, given, or asked for.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from heapq import heappop, heappush
from typing import Final

from reliable_channel.spi import Recorder, Row, Table

from .message import MESSAGE_ID_BYTES, MessageId, PeerId

RECORDS: Final = Table(
    "mvds_records",
    (
        ("message_and_peer", "BLOB"),
        ("type", "INTEGER"),
        ("send_count", "INTEGER"),
        ("send_epoch", "INTEGER"),
    ),
)


class RecordType(IntEnum):
    """What a record is, numbered as in the reference. There are none for acks: they are not
    retransmitted."""

    OFFER = 0
    REQUEST = 1
    MESSAGE = 2


@dataclass(slots=True, eq=False)
class Record:
    """A message on its way to, or from, a peer."""

    type: RecordType
    peer_id: PeerId
    message_id: MessageId
    send_epoch: int
    """The next epoch at which it may be sent."""
    send_count: int = 0
    turn: int = -1
    """Its valid place in the schedule; other places of it there are out of date."""

    @property
    def gives(self) -> bool:
        """True if the peer is to get the message, rather than to send it."""
        return self.type is not RecordType.REQUEST


class Records:
    """All records, found by message and peer, and by the epoch at which they are due."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._by_message: dict[MessageId, dict[PeerId, Record]] = {}
        self._schedule: list[tuple[int, int, Record]] = []
        self._turns = 0
        self._giving: Counter[PeerId] = Counter()
        self._requesting: Counter[PeerId] = Counter()

    def __iter__(self) -> Iterator[Record]:
        for records in self._by_message.values():
            yield from records.values()

    def __len__(self) -> int:
        return self._giving.total() + self._requesting.total()

    @property
    def requested(self) -> int:
        """How many messages are asked of peers, counted for each of them."""
        return self._requesting.total()

    def get(self, peer_id: PeerId, message_id: MessageId) -> Record | None:
        """The record of a message for a peer, or None."""
        return self._by_message.get(message_id, {}).get(peer_id)

    def of_message(self, message_id: MessageId) -> list[Record]:
        """The records of a message."""
        return list(self._by_message.get(message_id, {}).values())

    def giving_to(self, message_id: MessageId) -> int:
        """How many peers a message is being given to."""
        return sum(record.gives for record in self._by_message.get(message_id, {}).values())

    def count(self, peer_id: PeerId, *, gives: bool) -> int:
        """How many messages a peer is being given, or asked for."""
        return (self._giving if gives else self._requesting)[peer_id]

    def add(self, record: Record) -> None:
        """Take a record in; it replaces another one of the same message and peer."""
        self.remove(record.peer_id, record.message_id)
        self._by_message.setdefault(record.message_id, {})[record.peer_id] = record
        (self._giving if record.gives else self._requesting)[record.peer_id] += 1
        self.plan(record, record.send_epoch)

    def remove(self, peer_id: PeerId, message_id: MessageId) -> Record | None:
        """Take a record out and return it, or None if there is none."""
        records = self._by_message.get(message_id, {})
        if (record := records.pop(peer_id, None)) is None:
            return None
        if not records:
            del self._by_message[message_id]
        counter = self._giving if record.gives else self._requesting
        counter[peer_id] -= 1
        if not counter[peer_id]:
            del counter[peer_id]
        record.turn = -1
        self._recorder.delete(RECORDS, message_id + peer_id)
        return record

    def plan(self, record: Record, send_epoch: int) -> None:
        """Let a record be sent from this epoch on."""
        record.send_epoch = send_epoch
        record.turn = self._turns
        heappush(self._schedule, (send_epoch, self._turns, record))
        self._turns += 1
        self._recorder.put(
            RECORDS,
            record.message_id + record.peer_id,
            int(record.type),
            record.send_count,
            send_epoch,
        )

    def next_epoch(self) -> int | None:
        """When the next record is due, or None where there is none."""
        while self._schedule:
            send_epoch, turn, record = self._schedule[0]
            if record.turn == turn:
                return send_epoch
            heappop(self._schedule)
        return None

    def take_due(self, epoch: int) -> Iterator[Record]:
        """Hand out the records whose epoch has come, the earliest first; each stays, and is not
        handed out again until it is planned again."""
        while (due := self.next_epoch()) is not None and due <= epoch:
            yield heappop(self._schedule)[2]

    def restore(self, row: Row) -> Record:
        """A record from its row; it is not taken in yet."""
        key, kind, send_count, send_epoch = row
        assert isinstance(key, bytes) and isinstance(kind, int)
        assert isinstance(send_count, int) and isinstance(send_epoch, int)
        message_id, peer_id = key[:MESSAGE_ID_BYTES], key[MESSAGE_ID_BYTES:]
        return Record(
            RecordType(kind), PeerId(peer_id), MessageId(message_id), send_epoch, send_count
        )
