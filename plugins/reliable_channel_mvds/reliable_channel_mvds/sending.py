"""Payloads of a node, at most one for each peer in an epoch, with everything that is due and
fits."""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from .events import DeliveryFailed, Element, Outgoing
from .message import GroupId, GroupOffer, Message, MessageId, Payload, PeerId
from .records import Record, RecordType
from .state import NodeState
from .wire import ID_ROOM_BYTES, OFFER_ROOM_BYTES, room_of

_ELEMENTS: Final = {
    RecordType.OFFER: Element.OFFER,
    RecordType.REQUEST: Element.REQUEST,
    RecordType.MESSAGE: Element.MESSAGE,
}


@dataclass(slots=True)
class _Draft:
    """A payload that is being filled."""

    room: int
    acks: list[MessageId] = field(default_factory=list)
    offers: list[MessageId] = field(default_factory=list)
    requests: list[MessageId] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)

    def takes(self, size: int) -> bool:
        """Use up as much room, if there is."""
        if size > self.room:
            return False
        self.room -= size
        return True


class Sender:
    """Makes the payloads of a node in each epoch."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self._due: dict[PeerId, deque[tuple[int, Record]]] = {}
        """What is due and did not go out yet, each with its turn: where the record has another one
        by now, it was answered or planned anew."""

    def next_epoch(self) -> int | None:
        """Return the time of the next payload, or None."""
        epochs = (self._state.payload_epoch, self._state.records.next_epoch())
        return min((epoch for epoch in epochs if epoch is not None), default=None)

    def send_due(self) -> None:
        """Make the payloads that are due. Messages that come later in an epoch wait for the next
        epoch, so that each peer gets one payload."""
        state = self._state
        if (due := self.next_epoch()) is None or due > state.epoch:
            return
        state.payload_epoch = None
        for record in state.records.take_due(state.epoch):
            self._due.setdefault(record.peer_id, deque()).append((record.turn, record))
        for peer_id in dict.fromkeys([*state.acks, *self._due]):
            self._send(peer_id)
        if state.acks or self._due:
            state.in_next_payload()

    def _send(self, peer_id: PeerId) -> None:
        state = self._state
        draft = _Draft(state.options.limits.payload_bytes)
        self._take_acks(peer_id, draft)
        self._take_records(peer_id, draft)
        by_group = state.profile.sends_group_offers
        payload = Payload(
            tuple(draft.acks),
            () if by_group else tuple(draft.offers),
            tuple(draft.requests),
            tuple(draft.messages),
            self._by_group(draft.offers) if by_group else (),
        )
        if payload.is_empty:  # all of it was answered in the meantime
            return
        data = state.profile.encode(payload)
        state.outgoing.append(Outgoing(peer_id, data))
        counters = state.counters
        counters.payloads_sent += 1
        counters.bytes_sent += len(data)
        counters.acks_sent += len(draft.acks)
        counters.offers_sent += len(draft.offers)
        counters.requests_sent += len(draft.requests)
        counters.messages_sent += len(draft.messages)

    def _take_acks(self, peer_id: PeerId, draft: _Draft) -> None:
        """Acks go once: their loss is mended by the message, or offer, that comes again."""
        acks = self._state.acks.get(peer_id, {})
        while acks and draft.takes(ID_ROOM_BYTES):
            message_id = next(iter(acks))
            del acks[message_id]
            draft.acks.append(message_id)
        if not acks:
            self._state.acks.pop(peer_id, None)

    def _take_records(self, peer_id: PeerId, draft: _Draft) -> None:
        due = self._due.get(peer_id, deque())
        while due:
            turn, record = due[0]
            if record.turn == turn and not self._has_failed(record):
                if not self._takes_record(draft, record):
                    return
                self._sent(record)
            due.popleft()
        self._due.pop(peer_id, None)

    def _takes_record(self, draft: _Draft, record: Record) -> bool:
        message_id = record.message_id
        match record.type:
            case RecordType.OFFER:
                if taken := draft.takes(OFFER_ROOM_BYTES):
                    draft.offers.append(message_id)
            case RecordType.REQUEST:
                if taken := draft.takes(ID_ROOM_BYTES):
                    draft.requests.append(message_id)
            case RecordType.MESSAGE:
                message = self._held(message_id)
                if taken := draft.takes(room_of(message)):
                    draft.messages.append(message)
        return taken

    def _sent(self, record: Record) -> None:
        """Retransmission: `Send Epoch` and `Send Count` MUST be increased every time."""
        state = self._state
        state.counters.retransmissions += record.send_count > 0
        record.send_count += 1
        wait = state.options.interval(record.send_count, state.random)
        state.records.plan(record, state.epoch + wait)

    def _has_failed(self, record: Record) -> bool:
        """Give up what was sent often enough."""
        maximum = self._state.options.max_send_count
        if maximum is None or record.send_count < maximum:
            return False
        self._state.drop(record)
        self._state.events.append(
            DeliveryFailed(
                record.message_id, record.peer_id, _ELEMENTS[record.type], record.send_count
            )
        )
        return True

    def _by_group(self, offers: list[MessageId]) -> tuple[GroupOffer, ...]:
        groups: dict[GroupId, list[MessageId]] = {}
        for message_id in offers:
            groups.setdefault(self._held(message_id).group_id, []).append(message_id)
        return tuple(GroupOffer(group_id, tuple(ids)) for group_id, ids in groups.items())

    def _held(self, message_id: MessageId) -> Message:
        message = self._state.held.get(message_id)
        assert message is not None  # what is given or offered is not forgotten
        return message
