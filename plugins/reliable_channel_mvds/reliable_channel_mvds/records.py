"""Records of messages and peers, called `state` in the specification. A record counts how often its
message was sent, and has the epoch of the next time.

A peer has at most one record for a message. The record says whether the message is offered, sent or
requested.
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
    """Kind of a record, numbered as in the reference implementation. Acks have no record, because
    they are not retransmitted."""

    OFFER = 0
    REQUEST = 1
    MESSAGE = 2


@dataclass(slots=True, eq=False)
class Record:
    """Record of a message that is sent to a peer or requested from a peer."""

    type: RecordType
    peer_id: PeerId
    message_id: MessageId
    send_epoch: int
    """Next epoch in which the record may be sent."""
    send_count: int = 0
    turn: int = -1
    """Valid place of the record in the schedule. Other places of the record in the schedule are out
    of date."""

    @property
    def gives(self) -> bool:
        """True if the peer should receive the message, False if the peer should send the
        message."""
        return self.type is not RecordType.REQUEST


class Records:
    """Table of all records, by message and peer, and by the epoch in which they are due."""

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
        """Number of requested messages, counted once for each peer."""
        return self._requesting.total()

    def get(self, peer_id: PeerId, message_id: MessageId) -> Record | None:
        """Return the record of a message for a peer, or None."""
        return self._by_message.get(message_id, {}).get(peer_id)

    def of_message(self, message_id: MessageId) -> list[Record]:
        """Return the records of a message for all peers."""
        return list(self._by_message.get(message_id, {}).values())

    def giving_to(self, message_id: MessageId) -> int:
        """Return the number of peers to which a message is being sent."""
        return sum(record.gives for record in self._by_message.get(message_id, {}).values())

    def count(self, peer_id: PeerId, *, gives: bool) -> int:
        """Return the number of messages that are sent to a peer, or requested from a peer."""
        return (self._giving if gives else self._requesting)[peer_id]

    def add(self, record: Record) -> None:
        """Add a record to the table. The new record replaces another record of the same message and
        peer."""
        self.remove(record.peer_id, record.message_id)
        self._by_message.setdefault(record.message_id, {})[record.peer_id] = record
        (self._giving if record.gives else self._requesting)[record.peer_id] += 1
        self.plan(record, record.send_epoch)

    def remove(self, peer_id: PeerId, message_id: MessageId) -> Record | None:
        """Remove a record and return it, or return None if there is no record."""
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
        """Plan to send a record in the given epoch or later."""
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
        """Return the epoch in which the next record is due, or None."""
        while self._schedule:
            send_epoch, turn, record = self._schedule[0]
            if record.turn == turn:
                return send_epoch
            heappop(self._schedule)
        return None

    def take_due(self, epoch: int) -> Iterator[Record]:
        """Yield the records that are due in an epoch, the earliest first. A due record stays in the
        table, and is yielded again only after the next `plan`."""
        while (due := self.next_epoch()) is not None and due <= epoch:
            yield heappop(self._schedule)[2]

    def restore(self, row: Row) -> Record:
        """Return the record in a row, without adding it to the table."""
        key, kind, send_count, send_epoch = row
        assert isinstance(key, bytes) and isinstance(kind, int)
        assert isinstance(send_count, int) and isinstance(send_epoch, int)
        message_id, peer_id = key[:MESSAGE_ID_BYTES], key[MESSAGE_ID_BYTES:]
        return Record(
            RecordType(kind), PeerId(peer_id), MessageId(message_id), send_epoch, send_count
        )
