"""An MVDS node.

Sans-I/O. The owner calls `append`, `receive` and, when `next_deadline_ms()` has come,
`on_deadline`, each with the time, which must not go back; then it sends what `outgoing()` hands out
and takes note of what `events()` hands out. Nothing else changes state, and nothing here reads a
clock, draws a random number except from `random`, or waits.

The layer below must prove the identity of a peer (Secure Transport).
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
"""How far the timestamp of a repeated body may run ahead to get its own id."""


@dataclass(frozen=True, slots=True)
class NodeStatistics:
    """A snapshot of counters and tables."""

    counters: Counters
    epoch: int
    records: int
    requests: int
    """Those of them that ask a peer for a message."""
    messages: int
    message_bytes: int
    memberships: int
    acks: int


class MvdsNode:
    """A node: it gives messages to the peers of their groups, and takes theirs.

    `random` returns floats in [0, 1) and is asked for the jitter of retransmissions alone. With a
    `recorder`, what a restart needs is handed out by `changes()` after each step.

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
        """Begin as before a restart, with the rows that were recorded."""
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
        """Put a peer into a group: it gets the messages that come from now on.

        Raises:
            ValueError: a group id of other than 32 bytes, or a peer that is empty or this node.
            NodeFull: there are as many memberships as there may be.
        """
        if len(group_id) != GROUP_ID_BYTES:
            raise ValueError(f"a group id has {GROUP_ID_BYTES} bytes, this one {len(group_id)}")
        if not peer_id or peer_id == self.peer_id:
            raise ValueError("a peer is neither empty nor the node itself")
        self._state.groups.add(group_id, peer_id)

    def remove_peer(self, group_id: GroupId, peer_id: PeerId) -> None:
        """Take a peer out of a group: it gets none of its messages any more."""
        state = self._state
        state.groups.remove(group_id, peer_id)
        for record in [record for record in state.records if record.peer_id == peer_id]:
            message = state.held.get(record.message_id)
            if (message and message.group_id == group_id) or peer_id not in state.groups:
                state.drop(record)
        if peer_id not in state.groups:
            state.acks.pop(peer_id, None)

    def peers(self, group_id: GroupId) -> tuple[PeerId, ...]:
        """The peers of a group."""
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
        """Give a message to all peers of a group and return its id; `mode` is that of the options
        where None.

        With `broadcast` the owner sends the message itself, once to all of them, where the
        transport can do that; here it is repeated alone, to those that do not acknowledge it. Then
        there need not be any peers yet.

        Raises:
            UnknownGroup: the group has no peers.
            BodyTooLong: the message would not fit a payload.
            TooManyRepeats: the group was given this body about once a second for a minute ahead.
            NodeFull: a peer has too much waiting for it, or all held messages are waited for.
        """
        state, limits = self._state, self.options.limits
        state.advance(now_ms)
        if not (peers := state.groups.peers(group_id)) and not broadcast:
            raise UnknownGroup(f"group {group_id.hex()} has no peers; add_peer first")
        message, message_id = self._new_message(group_id, body, now_ms // 1000)
        if room_of(message) > limits.payload_bytes:
            raise BodyTooLong(
                f"{len(body)} bytes do not fit a payload of {limits.payload_bytes} "
                f"(limits.payload_bytes) with what goes with them"
            )
        for peer_id in peers:
            if state.records.count(peer_id, gives=True) >= limits.records_per_peer:
                raise NodeFull(
                    f"{limits.records_per_peer} messages wait for peer {peer_id.hex()}, as many as "
                    f"limits.records_per_peer allows; wait for it, or remove_peer"
                )
        if (limit := state.held.make_room(message)) is not None:
            raise NodeFull(f"limits.{limit} is reached, and peers wait for all that is held")
        state.held.add(message_id, message)
        for peer_id in peers:
            if broadcast:
                state.given(peer_id, message_id)
            else:
                state.give(peer_id, message_id, mode or self.options.mode)
        return message_id

    def offer_held(self, group_id: GroupId, peer_id: PeerId, now_ms: int) -> None:
        """Offer a peer that is new or was away for long the messages of a group that are kept: as
        many of them as half of `records_per_peer`, the newest ones."""
        state = self._state
        state.advance(now_ms)
        room = self.options.limits.records_per_peer // 2
        room -= state.records.count(peer_id, gives=True)
        held = [i for i in state.held.of_group(group_id) if not state.records.get(peer_id, i)]
        for message_id in held[-room:] if room > 0 else ():
            state.give(peer_id, message_id, Mode.INTERACTIVE)

    def withdraw(self, message_id: MessageId) -> None:
        """Give a message only to peers that ask for it, from now on."""
        for record in self._state.records.of_message(message_id):
            self._state.drop(record)

    def receive(self, peer_id: PeerId, data: bytes, now_ms: int) -> None:
        """Take a payload from a peer.

        Never raises for what the bytes are: what is refused becomes an event.
        """
        self._state.advance(now_ms)
        self._receiver.receive(peer_id, data)

    def overhear(self, peer_id: PeerId, data: bytes, now_ms: int) -> None:
        """Take note of a payload from a peer to another participant, on a transport where such is
        heard: what the peer has need not be given to it."""
        self._state.advance(now_ms)
        self._receiver.overhear(peer_id, data)

    def peer_is_back(self, peer_id: PeerId, now_ms: int) -> None:
        """A peer can be reached again: send what waits for it soon, rather than when its turn would
        come, as if it had not been sent before; spread over the first interval."""
        state = self._state
        state.advance(now_ms)
        for record in [record for record in state.records if record.peer_id == peer_id]:
            if record.send_count and record.send_epoch > state.epoch + 1:
                record.send_count = 0
                soon = state.epoch + 1 + int(state.random() * self.options.first_interval)
                state.records.plan(record, min(record.send_epoch, soon))

    # -- time --------------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        """When `on_deadline` must be called next, or None while there is nothing to send."""
        epoch = self._sender.next_epoch()
        return None if epoch is None else epoch * self.options.epoch_ms

    def on_deadline(self, now_ms: int) -> None:
        """Send all that is due."""
        self._state.advance(now_ms)
        self._sender.send_due()

    # -- outputs -----------------------------------------------------------------------------------

    def events(self) -> Iterator[Event]:
        """Hand out all that happened."""
        return _drain(self._state.events)

    def outgoing(self) -> Iterator[Outgoing]:
        """Hand out the payloads that must be sent, in order."""
        return _drain(self._state.outgoing)

    def changes(self) -> Changes:
        """What changed since the last call of what a restart needs; to be written in one
        transaction before anything of `events()` and `outgoing()` is let out."""
        return self._state.recorder.take()

    def get(self, message_id: MessageId) -> Message | None:
        """A message that is held, or None."""
        return self._state.held.get(message_id)

    def records(self) -> Iterator[Record]:
        """All records, to be looked at."""
        return iter(self._state.records)

    def statistics(self) -> NodeStatistics:
        """A snapshot of counters and tables."""
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
            f"this body of {len(body)} bytes was given {MAX_SECONDS_AHEAD} times lately; "
            f"make bodies differ, or wait a second"
        )


def _drain(queue: deque[_T]) -> Iterator[_T]:
    while queue:
        yield queue.popleft()
