"""SDS and SDS-R for one participant, in the shortest form.

The rules follow LIP 109 and the SDS-R guide, and share no code with `reliable_channel.sds`. The
rules leave out the unit of time, payloads, and the pauses between repetitions. A defect is a
subclass of `Rules` that changes one method (`defects`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

Ids = tuple[str, ...]
"""Message ids without duplicates, in ascending order."""
Names = tuple[str, ...]
Log = tuple[tuple[int, str], ...]
"""Lamport timestamps and message ids, in the order of the log."""


class Packet(NamedTuple):
    """Packet with content or a sync message, which has no timestamp in the model."""

    message_id: str
    sender: str
    lamport: int
    history: tuple[str, ...]
    filter: Ids
    requests: Ids
    is_sync: bool = False


class Participant(NamedTuple):
    """Knowledge of one participant, as an immutable value."""

    name: str
    clock: int = 0
    log: Log = ()
    received: Ids = ()
    """Ids of all messages that ever arrived or were sent."""
    parked: tuple[Packet, ...] = ()
    missing: Ids = ()
    """Ids of the messages that are known only by reference."""
    lost: Ids = ()
    """Ids of the missing messages for which no other message waits any more."""
    answers: Ids = ()
    """Ids of the messages that others requested and that will be broadcast."""
    unacknowledged: tuple[tuple[str, Names], ...] = ()
    """Own messages without acknowledgement, each with the senders of filters that contain it."""
    asked: Ids = ()
    """Ids of the requested messages. Only the rules of a defect use `asked`."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Message ids of the log, in its order."""
        return tuple(message_id for _, message_id in self.log)


class Event(NamedTuple):
    """Event that a step emits to the application."""

    kind: str
    """Kind of the event, `delivered` or `acknowledged`."""
    participant: str
    message_id: str


def ids(*groups: Iterable[str]) -> Ids:
    """Return the union of several groups of ids."""
    return tuple(sorted({each for group in groups for each in group}))


def without(all_ids: Ids, *removed: str) -> Ids:
    return tuple(each for each in all_ids if each not in removed)


@dataclass(frozen=True)
class Rules:
    """Rules of a participant. Each step is a function of the participant's knowledge and its
    input."""

    history: int = 3
    """Number of messages that a message refers to."""
    threshold: int = 2
    """Number of filters that acknowledge a message."""
    capacity: int = 9
    """Number of ids in a filter before it rolls over."""

    def send(self, me: Participant, message_id: str) -> tuple[Participant, Packet]:
        """Send a message (LIP 109, Send Message)."""
        lamport = me.clock + 1
        changed = me._replace(
            clock=lamport,
            log=self.inserted(me.log, (lamport, message_id)),
            received=ids(me.received, [message_id]),
            unacknowledged=(*me.unacknowledged, (message_id, ())),
        )
        return changed, self.packet(me, message_id, lamport)

    def sync(self, me: Participant) -> tuple[Participant, Packet]:
        """Send a sync message with requests (LIP 109, Periodic Sync Message, and SDS-R)."""
        return me, self.packet(me, f"{me.name}-sync", 0)._replace(is_sync=True)

    def receive(self, me: Participant, packet: Packet) -> tuple[Participant, list[Event]]:
        """Receive a message (LIP 109, Receive Message, and SDS-R, When RECEIVING a Message)."""
        message_id, events = packet.message_id, list[Event]()
        if packet.sender == me.name or message_id in me.received:
            return me, events
        me = self.review(me, packet, events)
        if not packet.is_sync:
            me = me._replace(
                received=ids(me.received, [message_id]),
                missing=without(me.missing, message_id),
                answers=without(me.answers, message_id),
            )
        me = me._replace(
            missing=ids(me.missing, without(packet.history, *me.received)),
            answers=ids(me.answers, (each for each in packet.requests if each in me.ids)),
        )
        if packet.is_sync:
            return me, events
        if all(self.is_met(me, each) for each in packet.history):
            me = self.deliver(me, packet, events)
            return self.release(me, events), events
        return me._replace(parked=(*me.parked, packet)), events

    def give_up(self, me: Participant) -> tuple[Participant, list[Event]]:
        """Mark all missing messages as irretrievably lost (LIP 109)."""
        events = list[Event]()
        me = me._replace(lost=ids(me.lost, me.missing), missing=())
        return self.release(me, events), events

    def review(self, me: Participant, packet: Packet, events: list[Event]) -> Participant:
        """Review the acknowledgements of own messages (LIP 109, Review ACK Status). A causal
        history proves that a message was received, and a filter makes it likely."""
        left = []
        for message_id, seen_by in me.unacknowledged:
            seen_by = self.witnesses(seen_by, packet, message_id)
            if message_id in packet.history or len(seen_by) >= self.threshold:
                events.append(Event("acknowledged", me.name, message_id))
            else:
                left.append((message_id, seen_by))
        return me._replace(unacknowledged=tuple(left))

    def deliver(self, me: Participant, packet: Packet, events: list[Event]) -> Participant:
        """Deliver a message (LIP 109, Deliver Message and Resolve Conflicts)."""
        events.append(Event("delivered", me.name, packet.message_id))
        return me._replace(
            clock=max(me.clock, packet.lamport),
            log=self.inserted(me.log, (packet.lamport, packet.message_id)),
            lost=without(me.lost, packet.message_id),
        )

    def release(self, me: Participant, events: list[Event]) -> Participant:
        """Deliver waiting messages that are ready, in order (LIP 109, Periodic Incoming Buffer
        Sweep)."""
        while ready := [p for p in me.parked if all(self.is_met(me, each) for each in p.history)]:
            first = min(ready, key=lambda packet: (packet.lamport, packet.message_id))
            me = me._replace(parked=tuple(each for each in me.parked if each != first))
            me = self.deliver(me, first, events)
        return me

    def packet(self, me: Participant, message_id: str, lamport: int) -> Packet:
        """Return a message with history, requests, and an exact filter that rolls over when it is
        full."""
        history, held = me.ids[max(0, len(me.log) - self.history) :], me.received
        if len(held) > self.capacity:
            held = ids([each for each in me.ids if each in held][-self.capacity :])
        return Packet(message_id, me.name, lamport, history, held, requests=me.missing)

    def is_met(self, me: Participant, message_id: str) -> bool:
        """Return True if messages no longer wait for a dependency."""
        return message_id in me.lost or message_id in me.ids

    def witnesses(self, seen_by: Names, packet: Packet, message_id: str) -> Names:
        """Return the names of the participants whose filters contain a message, each once."""
        return ids(seen_by, [packet.sender]) if message_id in packet.filter else seen_by

    def inserted(self, log: Log, entry: tuple[int, str]) -> Log:
        """Return a log with a further message, in order of Lamport timestamp and message id."""
        return tuple(sorted((*log, entry)))
