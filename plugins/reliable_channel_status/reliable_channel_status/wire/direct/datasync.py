"""2/MVDS of Status clients, which sends each message until it is acknowledged.

Status clients use the batch mode of MVDS. A message is sent at once and repeated until its
acknowledgement, which clients show as "delivered". The module has no I/O, so the caller passes the
time and transports the payloads.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final

from .. import status_pb2
from ..codec import parsed
from ..keys import PublicKey, keccak256
from ..outcomes import MessageId
from ..recent import Recent

ID_BYTES: Final = 32
GROUP_BYTES: Final = 32
FIRST_WAIT_MS: Final = 30_000
"""First wait until a message is sent again. The wait doubles after each repetition
(`CalculateSendTime` of status-go)."""
MAX_SENDS: Final = 8
"""Maximum number of times that a message is sent, which takes about two hours."""
MAX_PENDING: Final = 1_000
"""Maximum number of unacknowledged messages. Beyond the maximum, the oldest message counts as not
delivered."""
MAX_RECORDS: Final = 1_000
"""Maximum number of acknowledgements, requests or messages in a payload. A larger payload is
refused."""
MAX_ACKS: Final = 10_000
"""Maximum number of acknowledgements that wait to be sent. Senders repeat a message whose
acknowledgement is missing."""


@dataclass(frozen=True, slots=True)
class DataSyncMessage:
    """Message of a group that consists of two users."""

    group_id: bytes
    timestamp_s: int
    body: bytes

    @property
    def id(self) -> bytes:
        """Message id of 32 bytes by which the message is acknowledged (2/MVDS, Messages)."""
        timestamp = self.timestamp_s.to_bytes(8, "little", signed=True)
        return sha256(b"MESSAGE_ID" + self.group_id + timestamp + self.body).digest()


@dataclass(frozen=True, slots=True)
class DataSyncPayload:
    acks: tuple[bytes, ...] = ()
    requests: tuple[bytes, ...] = ()
    messages: tuple[DataSyncMessage, ...] = ()

    def encode(self) -> bytes:
        return status_pb2.DataSyncPayload(
            acks=self.acks,
            requests=self.requests,
            messages=[
                status_pb2.DataSyncMessage(
                    group_id=one.group_id, timestamp=one.timestamp_s, body=one.body
                )
                for one in self.messages
            ],
        ).SerializeToString()


def read_datasync(data: bytes) -> DataSyncPayload | None:
    """Return the MVDS payload in `data`. For other data, such as a message without MVDS,
    `read_datasync` returns None."""
    raw = status_pb2.DataSyncPayload()
    if not parsed(raw, data):
        return None
    if max(len(raw.acks), len(raw.requests), len(raw.messages)) > MAX_RECORDS:
        return None
    payload = DataSyncPayload(
        tuple(one for one in raw.acks if len(one) == ID_BYTES),
        tuple(one for one in raw.requests if len(one) == ID_BYTES),
        tuple(
            DataSyncMessage(one.group_id, one.timestamp, one.body)
            for one in raw.messages
            if len(one.group_id) == GROUP_BYTES and one.body
        ),
    )
    return payload if payload != DataSyncPayload() else None


def group_of(one: PublicKey, other: PublicKey) -> bytes:
    """Return the MVDS group of two users, Keccak-256 of both compressed keys, lower x coordinate
    first."""
    first, second = sorted((one.compressed, other.compressed), key=lambda key: key[1:])
    return keccak256(first + second)


@dataclass(frozen=True, slots=True)
class Pending:
    """Message that waits for an acknowledgement."""

    peer: PublicKey
    message_id: MessageId
    message: DataSyncMessage
    sends: int
    due_ms: int


class DataSync:
    """MVDS messages and acknowledgements of one participant.

    Args:
        public_key: of the participant.
        pending: what waited at the end of the last run.
    """

    def __init__(self, public_key: PublicKey, pending: Iterable[Pending] = ()) -> None:
        self._public_key = public_key
        self._pending = {one.message.id: one for one in pending}
        self._acks: Recent[tuple[PublicKey, bytes], None] = Recent(MAX_ACKS)

    @property
    def pending(self) -> tuple[Pending, ...]:
        """Messages that have not been acknowledged."""
        return tuple(self._pending.values())

    def send(
        self, peer: PublicKey, message_id: MessageId, body: bytes, now_ms: int
    ) -> tuple[Pending, list[Pending]]:
        """Add a message that must be sent now. `send` also returns messages that are given up to
        make room."""
        message = DataSyncMessage(group_of(self._public_key, peer), now_ms // 1000, body)
        one = Pending(peer, message_id, message, 1, now_ms + FIRST_WAIT_MS)
        self._pending[message.id] = one
        dropped = []
        while len(self._pending) > MAX_PENDING:
            dropped.append(self._pending.pop(next(iter(self._pending))))
        return one, dropped

    def receive(self, peer: PublicKey, payload: DataSyncPayload) -> list[Pending]:
        """Process another participant's payload, and return the messages that it acknowledges. The
        caller calls `acknowledge` for each message in the payload that it has handled."""
        for wanted in payload.requests:
            if (one := self._pending.get(wanted)) is not None and one.peer == peer:
                self._pending[wanted] = replace(one, due_ms=0)
        known = (self._pending.get(ack) for ack in dict.fromkeys(payload.acks))
        found = [one for one in known if one is not None and one.peer == peer]
        for one in found:
            del self._pending[one.message.id]
        return found

    def acknowledge(self, peer: PublicKey, datasync_id: bytes) -> None:
        """Acknowledge a message again each time that the message arrives."""
        self._acks.renew((peer, datasync_id), None)

    def take_acks(self) -> list[tuple[PublicKey, DataSyncPayload]]:
        """Return acknowledgements that must be sent now, in one or more payloads for each peer."""
        by_peer: dict[PublicKey, list[bytes]] = {}
        for peer, datasync_id in self._acks:
            by_peer.setdefault(peer, []).append(datasync_id)
        self._acks.clear()
        return [
            (peer, DataSyncPayload(acks=tuple(ids[first : first + MAX_RECORDS])))
            for peer, ids in by_peer.items()
            for first in range(0, len(ids), MAX_RECORDS)
        ]

    def next_deadline_ms(self) -> int | None:
        """Return the time at which the next message must be repeated, or None."""
        return min((one.due_ms for one in self._pending.values()), default=None)

    def take_due(self, now_ms: int) -> tuple[list[Pending], list[Pending]]:
        """Return messages that must be sent again, and messages that are given up without an
        acknowledgement."""
        again, given_up = [], []
        for datasync_id, one in list(self._pending.items()):
            if one.due_ms > now_ms:
                continue
            if one.sends >= MAX_SENDS:
                given_up.append(self._pending.pop(datasync_id))
                continue
            wait_ms = FIRST_WAIT_MS * 2**one.sends
            one = replace(one, sends=one.sends + 1, due_ms=now_ms + wait_ms)
            self._pending[datasync_id] = one
            again.append(one)
        return again, given_up
