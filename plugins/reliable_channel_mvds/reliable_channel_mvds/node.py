"""MVDS node as a state machine.

The node does no I/O. The owner of the node calls `append`, `receive` and, when it is due,
`on_deadline`. After each call, the owner sends the result of `outgoing()` and handles the result of
`events()`. Only calls of its methods change the state of the node. The methods read no clock, never
wait, and draw random numbers only from `random`.

The transport must prove the identity of each peer (Secure Transport).
"""

from collections import deque
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Final, TypeVar

from reliable_channel.spi import NO_RECORDER, Changes, Recorder, Tables

from .errors import BodyTooLong, NodeFull, TooManyRepeats, UnknownGroup
from .events import Event, Outgoing
from .groups import PEERS
from .held import MESSAGES
from .message import GROUP_ID_BYTES, GroupId, Message, MessageId, PeerId
from .options import Mode, NodeOptions, Random
from .receiving import Receiver
from .records import RECORDS, Record
from .sending import Sender
from .state import Counters, NodeState
from .wire import SEED, WireProfile, room_of

_T = TypeVar("_T")

MAX_SECONDS_AHEAD: Final = 60
"""Maximum lead of the timestamp of a repeated body, which gives the body an id of its own."""


@dataclass(frozen=True, slots=True)
class NodeStatistics:
    """Snapshot of a node's counters and tables."""

    counters: Counters
    epoch: int
    records: int
    requests: int
    """Number of records that request a message from a peer."""
    messages: int
    message_bytes: int
    memberships: int
    acks: int


class MvdsNode:
    """MVDS node of one participant. The node sends messages to the peers of their groups, and
    receives messages of its peers.

    The generator `random` returns floats in [0, 1), only for the jitter of retransmissions. With a
    `recorder`, `changes()` returns the changes that a restart needs, after each step.

    Raises:
        ValueError: the peer id is empty.
    """

    def __init__(
        self,
        peer_id: PeerId,
        *,
        now_ms: int,
        random: Random,
        options: NodeOptions | None = None,
        profile: WireProfile = SEED,
        recorder: Recorder = NO_RECORDER,
    ) -> None:
        if not peer_id:
            raise ValueError("the peer id is empty")
        self.peer_id: Final = peer_id
        self.options: Final = options or NodeOptions()
        self._state = NodeState(peer_id, self.options, profile, random, recorder, now_ms)
        self._sender = Sender(self._state)
        self._receiver = Receiver(self._state)

    def restore(self, tables: Tables, now_ms: int) -> None:
        """Begin with the rows that an earlier process recorded."""
        state = self._state
        state.advance(now_ms)
        state.groups.restore(tables.get(PEERS.name, ()))
        state.held.restore(iter(tables.get(MESSAGES.name, ())))
        longest = state.epoch + self.options.longest_wait  # whatever the clock was then
        for row in tables.get(RECORDS.name, ()):
            record = state.records.restore(row)
            record.send_epoch = min(max(record.send_epoch, state.epoch + 1), longest)
            state.records.add(record)
            if record.gives:
                state.held.wanted(record.message_id)

    # -- groups ------------------------------------------------------------------------------------

    def add_peer(self, group_id: GroupId, peer_id: PeerId) -> None:
        """Add a peer to a group. The peer gets the messages of the group from now on.

        Raises:
            ValueError: the group id does not have 32 bytes, or the peer is empty or is this node.
            NodeFull: the limit of memberships is reached.
        """
        if len(group_id) != GROUP_ID_BYTES:
            raise ValueError(f"a group id must have {GROUP_ID_BYTES} bytes (got {len(group_id)})")
        if not peer_id or peer_id == self.peer_id:
            raise ValueError(
                "a peer id must be neither empty nor the id of the node itself: give the id of "
                "another node"
            )
        self._state.groups.add(group_id, peer_id)

    def remove_peer(self, group_id: GroupId, peer_id: PeerId) -> None:
        """Remove a peer from a group. The removed peer gets no further messages of the group."""
        state = self._state
        state.groups.remove(group_id, peer_id)
        for record in [record for record in state.records if record.peer_id == peer_id]:
            message = state.held.get(record.message_id)
            if (message and message.group_id == group_id) or peer_id not in state.groups:
                state.drop(record)
        if peer_id not in state.groups:
            state.acks.pop(peer_id, None)

    def peers(self, group_id: GroupId) -> tuple[PeerId, ...]:
        """Return the peers of a group in the order in which they were added."""
        return self._state.groups.peers(group_id)

    # -- inputs ------------------------------------------------------------------------------------

    def append(
        self,
        group_id: GroupId,
        body: bytes,
        now_ms: int,
        *,
        mode: Mode | None = None,
        broadcast: bool = False,
    ) -> MessageId:
        """Send a message to all peers of a group, and return the message's id. If `mode` is None,
        the message is sent in the mode of the options.

        With `broadcast`, the owner itself sends the message once to all peers. The node then
        repeats the message only to peers that do not acknowledge it. A group in which a message is
        broadcast need not have peers yet.

        Raises:
            UnknownGroup: the group has no peers.
            BodyTooLong: the message would not fit a payload.
            TooManyRepeats: the group was given this body about once a second for the next minute.
            NodeFull: too much waits for a peer, or peers wait for all held messages.
        """
        state, limits = self._state, self.options.limits
        state.advance(now_ms)
        if not (peers := state.groups.peers(group_id)) and not broadcast:
            raise UnknownGroup(f"group {group_id.hex()} has no peers; call add_peer first")
        message, message_id = self._new_message(group_id, body, now_ms // 1000)
        if room_of(message) > limits.payload_bytes:
            raise BodyTooLong(
                f"a body of {len(body)} bytes is too long for a payload of {limits.payload_bytes} "
                "bytes (limits.payload_bytes) with its headers"
            )
        for peer_id in peers:
            if state.records.count(peer_id, gives=True) >= limits.records_per_peer:
                raise NodeFull(
                    f"{limits.records_per_peer} messages wait for peer {peer_id.hex()}, the "
                    "maximum of limits.records_per_peer; wait for the peer, or call remove_peer"
                )
        if (limit := state.held.make_room(message)) is not None:
            raise NodeFull(
                f"limits.{limit} is reached, and every held message still waits for a peer"
            )
        state.held.add(message_id, message)
        for peer_id in peers:
            if broadcast:
                state.given(peer_id, message_id)
            else:
                state.give(peer_id, message_id, mode or self.options.mode)
        return message_id

    def offer_held(self, group_id: GroupId, peer_id: PeerId, now_ms: int) -> None:
        """Offer the held messages of a group to a peer that is new or was away for long. The newest
        messages are offered, at most half of `records_per_peer`."""
        state = self._state
        state.advance(now_ms)
        room = self.options.limits.records_per_peer // 2
        room -= state.records.count(peer_id, gives=True)
        held = [i for i in state.held.of_group(group_id) if not state.records.get(peer_id, i)]
        for message_id in held[-room:] if room > 0 else ():
            state.give(peer_id, message_id, Mode.INTERACTIVE)

    def withdraw(self, message_id: MessageId) -> None:
        """Send a message from now on only to peers that request it."""
        for record in self._state.records.of_message(message_id):
            self._state.drop(record)

    def receive(self, peer_id: PeerId, data: bytes, now_ms: int) -> None:
        """Handle a payload from a peer.

        `receive` raises no error, because a refused payload becomes an event.
        """
        self._state.advance(now_ms)
        self._receiver.receive(peer_id, data)

    def overhear(self, peer_id: PeerId, data: bytes, now_ms: int) -> None:
        """Note a payload between two other participants, which the transport also delivered.
        Messages that the payload's sender has need not be sent to it."""
        self._state.advance(now_ms)
        self._receiver.overhear(peer_id, data)

    def peer_is_back(self, peer_id: PeerId, now_ms: int) -> None:
        """Note that a peer can be reached again. The messages that wait for the peer are sent soon,
        spread over the first interval."""
        state = self._state
        state.advance(now_ms)
        for record in [record for record in state.records if record.peer_id == peer_id]:
            if record.send_count and record.send_epoch > state.epoch + 1:
                record.send_count = 0
                soon = state.epoch + 1 + int(state.random() * self.options.first_interval)
                state.records.plan(record, min(record.send_epoch, soon))

    # -- time --------------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        """Return the time at which `on_deadline` must be called next, or None if nothing is
        planned."""
        epoch = self._sender.next_epoch()
        return None if epoch is None else epoch * self.options.epoch_ms

    def on_deadline(self, now_ms: int) -> None:
        """Send everything that is due at this time."""
        self._state.advance(now_ms)
        self._sender.send_due()

    # -- outputs -----------------------------------------------------------------------------------

    def events(self) -> Iterator[Event]:
        """Yield all events since the last call of `events`."""
        return _drain(self._state.events)

    def outgoing(self) -> Iterator[Outgoing]:
        """Yield the payloads that must be sent, in the order of sending."""
        return _drain(self._state.outgoing)

    def changes(self) -> Changes:
        """Return the changes of the state that a restart needs. Write the changes in one
        transaction before you use `events()` and `outgoing()`."""
        return self._state.recorder.take()

    def get(self, message_id: MessageId) -> Message | None:
        """Return a message that the node holds, or None."""
        return self._state.held.get(message_id)

    def records(self) -> Iterator[Record]:
        """Yield all records of the node, for inspection."""
        return iter(self._state.records)

    def statistics(self) -> NodeStatistics:
        """Return a snapshot of the node's counters and tables."""
        state = self._state
        return NodeStatistics(
            counters=copy(state.counters),
            epoch=state.epoch,
            records=len(state.records),
            requests=state.records.requested,
            messages=len(state.held),
            message_bytes=state.held.size_bytes,
            memberships=len(state.groups),
            acks=sum(map(len, state.acks.values())),
        )

    def _new_message(
        self, group_id: GroupId, body: bytes, timestamp: int
    ) -> tuple[Message, MessageId]:
        """A message with its own id. Equal bodies in a second would have one id, and be one
        message for all (as they are in the reference): the later one is a second younger."""
        fields = self._state.profile.own_message_fields
        for ahead in range(MAX_SECONDS_AHEAD + 1):
            message = Message(group_id, timestamp + ahead, body, fields)
            if (message_id := message.id) not in self._state.held:
                return message, message_id
        raise TooManyRepeats(
            f"a body of {len(body)} equal bytes was sent {MAX_SECONDS_AHEAD} times within "
            "seconds; make bodies differ, or wait a second"
        )


def _drain(queue: deque[_T]) -> Iterator[_T]:
    while queue:
        yield queue.popleft()
