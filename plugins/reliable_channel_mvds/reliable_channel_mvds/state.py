"""Tables of a node that sending and receiving share, with the steps that change several tables."""

from collections import deque
from dataclasses import dataclass

from reliable_channel.spi import Recorder

from .events import Event, LimitReached, MessageAcknowledged, Outgoing
from .groups import Groups
from .held import HeldMessages
from .message import MessageId, PeerId
from .options import Mode, NodeOptions, Random
from .records import Record, Records, RecordType
from .wire import WireProfile


@dataclass(slots=True)
class Counters:
    """Counters of a node since its start."""

    payloads_sent: int = 0
    payloads_received: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    acks_sent: int = 0
    offers_sent: int = 0
    requests_sent: int = 0
    messages_sent: int = 0
    retransmissions: int = 0
    """Number of offers, requests and messages that had been sent before."""
    messages_received: int = 0
    duplicates_received: int = 0
    elements_rejected: int = 0


class NodeState:
    """Tables of an MVDS node."""

    def __init__(
        self,
        peer_id: PeerId,
        options: NodeOptions,
        profile: WireProfile,
        random: Random,
        recorder: Recorder,
        now_ms: int,
    ) -> None:
        self.peer_id, self.options, self.profile, self.random = peer_id, options, profile, random
        self.recorder = recorder
        self.records = Records(recorder)
        self.groups = Groups(options.limits.memberships, recorder)
        self.held = HeldMessages(options.limits, recorder, self._forgotten)
        self.counters = Counters()
        self.events: deque[Event] = deque()
        self.outgoing: deque[Outgoing] = deque()
        self.epoch = now_ms // options.epoch_ms
        """The current one. Epochs are counted from 1970, so that send epochs outlive a restart."""
        self.acks: dict[PeerId, dict[MessageId, None]] = {}
        """Not retransmitted, hence no records, and not recorded."""
        self.payload_epoch: int | None = None
        """When acks, or records that had no room in the last payload, are to go out."""

    def advance(self, now_ms: int) -> None:
        """Note the present time of the node's owner."""
        self.epoch = max(self.epoch, now_ms // self.options.epoch_ms)

    def in_next_payload(self) -> None:
        """Plan a payload for the next epoch."""
        if self.payload_epoch is None:
            self.payload_epoch = self.epoch + 1

    def acknowledge(self, peer_id: PeerId, message_id: MessageId) -> bool:
        """Add an ack to the next payload for a peer. If there is no room for the ack, `acknowledge`
        returns False."""
        acks = self.acks.setdefault(peer_id, {})
        if message_id not in acks and len(acks) >= self.options.limits.acks_per_peer:
            return False
        acks[message_id] = None
        self.in_next_payload()
        return True

    def give(self, peer_id: PeerId, message_id: MessageId, mode: Mode, *, delay: int = 0) -> None:
        """Send or offer a held message to a peer in the next epoch, or `delay` epochs later."""
        kind = RecordType.MESSAGE if mode is Mode.BATCH else RecordType.OFFER
        self.records.add(Record(kind, peer_id, message_id, self.epoch + 1 + delay))
        self.held.wanted(message_id)

    def given(self, peer_id: PeerId, message_id: MessageId) -> None:
        """Note that a held message was sent to a peer once, and plan its repetition."""
        wait = self.options.interval(1, self.random)
        epoch = self.epoch + wait
        self.records.add(Record(RecordType.MESSAGE, peer_id, message_id, epoch, send_count=1))
        self.held.wanted(message_id)

    def request(self, peer_id: PeerId, message_id: MessageId) -> None:
        """Request a message from a peer, from the next epoch on."""
        record = Record(RecordType.REQUEST, peer_id, message_id, self.epoch + 1)
        self.records.add(record)

    def drop(self, record: Record) -> None:
        """Remove a record from the table. A message for which no peer waits may make room from now
        on."""
        self.records.remove(record.peer_id, record.message_id)
        if record.gives and not self.records.giving_to(record.message_id):
            self.held.idle(record.message_id)

    def peer_has(self, peer_id: PeerId, message_id: MessageId) -> None:
        """Note that a peer has a message. A message that a peer has is no longer sent to the
        peer."""
        record = self.records.get(peer_id, message_id)
        if record is None or not record.gives:
            return
        self.drop(record)
        waiting = self.records.giving_to(message_id)
        self.events.append(MessageAcknowledged(message_id, peer_id, waiting))

    def _forgotten(self, limit: str, message_id: MessageId) -> None:
        self.events.append(LimitReached(limit, message_id))
