"""Effects of a received payload on the state, with the rules of both modes (Flow)."""

from collections.abc import Iterable

from .events import (
    Element,
    ElementsRejected,
    LimitReached,
    MessageReceived,
    PayloadRejected,
    Reason,
)
from .message import GROUP_ID_BYTES, MESSAGE_ID_BYTES, GroupId, Message, MessageId, Payload, PeerId
from .options import Mode
from .records import RecordType
from .state import NodeState
from .wire import CodecError, room_of


class Receiver:
    """Handles received payloads. A wrong element is refused alone, and the other elements of its
    payload count."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self._rejected: dict[tuple[Element, Reason], tuple[int, bytes]] = {}

    def receive(self, peer_id: PeerId, data: bytes) -> None:
        """Handle a payload from a peer."""
        state = self._state
        state.counters.payloads_received += 1
        state.counters.bytes_received += len(data)
        limit = state.options.limits.received_payload_bytes
        if peer_id == state.peer_id:
            self._refuse(peer_id, "it comes from this node itself")
        elif peer_id not in state.groups:
            self._refuse(peer_id, "the peer is in no group")
        elif len(data) > limit:
            self._refuse(peer_id, f"it has {len(data)} bytes; received_payload_bytes is {limit}")
        else:
            try:
                payload = state.profile.decode(data)
            except CodecError as error:
                self._refuse(peer_id, str(error))
            else:
                self._take(peer_id, payload)

    def overhear(self, peer_id: PeerId, data: bytes) -> None:
        """Note that the sender of a payload to another peer has the messages that it names."""
        state = self._state
        if peer_id not in state.groups or len(data) > state.options.limits.received_payload_bytes:
            return
        try:
            payload = state.profile.decode(data)
        except CodecError:
            return
        for message_id in (*payload.acks, *payload.offers, *(m.id for m in payload.messages)):
            state.peer_has(peer_id, message_id)

    def _take(self, peer_id: PeerId, payload: Payload) -> None:
        """An empty payload leaves no trace: it is never answered, or two nodes (of the reference,
        for one) would answer each other for ever."""
        for message_id in self._well_formed(Element.ACK, payload.acks):
            self._state.peer_has(peer_id, message_id)
        # Before the offers, so that what is given and offered at once is not asked for.
        for message in payload.messages:
            self._message(peer_id, message)
        for message_id in self._well_formed(Element.OFFER, payload.offers):
            self._offer(peer_id, message_id)
        for offer in payload.group_offers:
            if self._is_in_group(Element.OFFER, peer_id, offer.group_id):
                for message_id in self._well_formed(Element.OFFER, offer.message_ids):
                    self._offer(peer_id, message_id)
        for message_id in self._well_formed(Element.REQUEST, payload.requests):
            self._request(peer_id, message_id)
        self._tell_rejected(peer_id)

    def _offer(self, peer_id: PeerId, message_id: MessageId) -> None:
        state = self._state
        if message_id in state.held:
            # DIVERGES: the reference says nothing, and who did not get its ack offers for ever.
            state.peer_has(peer_id, message_id)
            self._acknowledge(peer_id, message_id, Element.OFFER)
        elif state.records.get(peer_id, message_id) is not None:
            return  # It is asked for already, and will be again. (The reference adds a record.)
        elif state.records.count(peer_id, gives=False) >= state.options.limits.requests_per_peer:
            self._reject(Element.OFFER, Reason.NO_ROOM, message_id)
        else:
            state.request(peer_id, message_id)

    def _request(self, peer_id: PeerId, message_id: MessageId) -> None:
        """Interactive mode: the OFFER is removed from the state and the MESSAGE added.

        DIVERGES: the reference keeps the OFFER, and passes over all requests after an unknown one.
        """
        state = self._state
        message = state.held.get(message_id)
        if message is None:
            self._reject(Element.REQUEST, Reason.UNKNOWN_MESSAGE, message_id)
            return
        if not self._is_in_group(Element.REQUEST, peer_id, message.group_id):
            return
        record = state.records.get(peer_id, message_id)
        if record is not None and record.type is RecordType.MESSAGE:
            if record.send_epoch > state.epoch + 1:  # it was lost on its way
                state.records.plan(record, state.epoch + 1)
        elif (record is not None or self._has_room(peer_id)) and self._fits(message):
            state.give(peer_id, message_id, Mode.BATCH)
        else:
            self._reject(Element.REQUEST, Reason.NO_ROOM, message_id)

    def _message(self, peer_id: PeerId, message: Message) -> None:
        state = self._state
        if not self._is_in_group(Element.MESSAGE, peer_id, message.group_id):
            return
        message_id = message.id
        if message_id in state.held:
            state.counters.duplicates_received += 1
            state.peer_has(peer_id, message_id)
            self._acknowledge(peer_id, message_id, Element.MESSAGE)
            return
        if state.held.make_room(message) is not None:
            # Without an ack it comes again, when there may be room.
            self._reject(Element.MESSAGE, Reason.NO_ROOM, message_id)
            return
        state.held.add(message_id, message)
        state.counters.messages_received += 1
        state.events.append(
            MessageReceived(message_id, message.group_id, message.timestamp, message.body, peer_id)
        )
        # Those who were asked for it have it: an ack instead spares them to send it.
        holders = [record.peer_id for record in state.records.of_message(message_id)]
        for holder in dict.fromkeys([peer_id, *holders]):
            state.records.remove(holder, message_id)
            self._acknowledge(holder, message_id, Element.MESSAGE)
        self._relay(message_id, message, {peer_id, *holders})

    def _relay(self, message_id: MessageId, message: Message, holders: set[PeerId]) -> None:
        """Pass a message on to the peers of its group that have not shown that they have it."""
        state, limits = self._state, self._state.options.limits
        if (mode := state.options.relay) is None:
            return
        others = [peer for peer in state.groups.peers(message.group_id) if peer not in holders]
        limit = state.held.relay_limit() if self._fits(message) else "payload_bytes"
        if others and limit is not None:
            state.events.append(LimitReached(limit, message_id))
            return
        for peer_id in others:
            if state.records.count(peer_id, gives=True) < limits.records_per_peer // 2:
                state.give(peer_id, message_id, mode, delay=state.options.relay_delay)
            else:
                state.events.append(LimitReached("records_per_peer", message_id, peer_id))

    def _fits(self, message: Message) -> bool:
        return room_of(message) <= self._state.options.limits.payload_bytes

    def _has_room(self, peer_id: PeerId) -> bool:
        state = self._state
        return state.records.count(peer_id, gives=True) < state.options.limits.records_per_peer

    def _acknowledge(self, peer_id: PeerId, message_id: MessageId, element: Element) -> None:
        if not self._state.acknowledge(peer_id, message_id):
            self._reject(element, Reason.NO_ROOM, message_id)

    def _well_formed(self, element: Element, ids: Iterable[MessageId]) -> Iterable[MessageId]:
        for message_id in ids:
            if len(message_id) == MESSAGE_ID_BYTES:
                yield message_id
            else:
                self._reject(element, Reason.MALFORMED_ID, message_id)

    def _is_in_group(self, element: Element, peer_id: PeerId, group_id: GroupId) -> bool:
        if len(group_id) != GROUP_ID_BYTES:
            self._reject(element, Reason.MALFORMED_GROUP, group_id)
            return False
        if not self._state.groups.has(group_id, peer_id):
            self._reject(element, Reason.NOT_IN_GROUP, group_id)
            return False
        return True

    def _refuse(self, peer_id: PeerId, detail: str) -> None:
        self._state.events.append(PayloadRejected(peer_id, detail))

    def _reject(self, element: Element, reason: Reason, example_id: bytes) -> None:
        """Count what is refused, so that a payload full of it is a few events."""
        count, first = self._rejected.get((element, reason), (0, example_id))
        self._rejected[element, reason] = count + 1, first

    def _tell_rejected(self, peer_id: PeerId) -> None:
        for (element, reason), (count, example_id) in self._rejected.items():
            self._state.counters.elements_rejected += count
            self._state.events.append(ElementsRejected(peer_id, element, reason, count, example_id))
        self._rejected.clear()
