"""SDS and SDS-R of one participant, as small as they can be written, with a switch for each defect.

Written from LIP 109 and the SDS-R guide; it shares no line with `reliable_channel.sds`. What it
leaves out: the unit of time, payloads, and how soon something is repeated.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

Ids = tuple[str, ...]
"""Message ids, or names of participants, without duplicates and in ascending order."""
EVERYTHING: Final = "*"
"""The only member of a filter in which all bits are set."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What a participant obeys; each switch that is turned is a defect."""

    history: int = 3
    """Messages that a message refers to."""
    threshold: int = 2
    """Filters that acknowledge a message."""
    capacity: int = 9
    """Ids that a filter holds before it rolls over."""
    drops_duplicates: bool = True
    waits_for_parked: bool = True
    """Whether a message that waits itself does not count as present."""
    delivers_after_loss: bool = True
    """Whether a message is delivered, not dropped, when what it waits for is given up."""
    releases_in_order: bool = True
    """Whether messages that become ready are delivered in causal order, not as they arrived."""
    counts_participants: bool = True
    """Whether two filters of one participant count once."""
    rolls_over: bool = True
    weighs_filters: bool = True
    """Whether a filter with all bits set counts for nothing."""
    asks_again: bool = True
    orders_ties: bool = True
    """Whether messages of one Lamport timestamp are ordered by their ids."""
    merges_clock: bool = True
    forgets_syncs: bool = True
    """Whether sync messages stay out of causal histories."""
    asks_after_loss: bool = True
    """Whether a reference to a message that was given up makes it wanted again."""
    counts_syncs: bool = False
    """Whether a sync message advances the clock, as LIP 109 has it. Then there are endless states,
    and single traces can be compared alone."""


class Packet(NamedTuple):
    """A message on the wire: content, or a sync message, which has no timestamp here."""

    message_id: str
    sender: str
    lamport: int
    history: tuple[str, ...]
    filter: Ids
    requests: Ids
    is_sync: bool = False


class Participant(NamedTuple):
    """What one participant knows; a value."""

    name: str
    clock: int = 0
    log: tuple[tuple[int, str], ...] = ()
    """Lamport timestamps and ids, in the order of the log."""
    received: Ids = ()
    """All that ever arrived or was sent."""
    parked: tuple[Packet, ...] = ()
    missing: Ids = ()
    """Known by reference alone."""
    lost: Ids = ()
    """Missing, and no message waits for it any more."""
    asked: Ids = ()
    """What was requested; of use to the defect alone."""
    answers: Ids = ()
    """What others requested and will be broadcast."""
    unacknowledged: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Own messages, each with the names whose filters hold it."""

    @property
    def ids(self) -> tuple[str, ...]:
        """The log's ids in its order."""
        return tuple(message_id for _, message_id in self.log)


class Event(NamedTuple):
    """What a step shows the application."""

    kind: str
    """`delivered` or `acknowledged`."""
    participant: str
    message_id: str


def ids(*groups: Iterable[str]) -> Ids:
    """The union of some ids."""
    return tuple(sorted({each for group in groups for each in group}))


def without(all_ids: Ids, *removed: str) -> Ids:
    """Ids but for some."""
    return tuple(each for each in all_ids if each not in removed)


def send(rules: Rules, me: Participant, message_id: str) -> tuple[Participant, Packet]:
    """LIP 109, Send Message."""
    clock = me.clock + 1
    packet = Packet(
        message_id, me.name, clock, _history(rules, me), _filter(rules, me), _requests(rules, me)
    )
    return me._replace(
        clock=clock,
        log=_inserted(rules, me.log, (clock, message_id)),
        received=ids(me.received, [message_id]),
        asked=_noted(rules, me, packet),
        unacknowledged=(*me.unacknowledged, (message_id, ())),
    ), packet


def sync(rules: Rules, me: Participant) -> tuple[Participant, Packet]:
    """LIP 109, Periodic Sync Message; SDS-R, requests ride on it."""
    requests = _requests(rules, me)
    packet = Packet(
        f"{me.name}-sync", me.name, 0, _history(rules, me), _filter(rules, me), requests, True
    )
    clock = me.clock + 1 if rules.counts_syncs else me.clock
    me = me._replace(asked=_noted(rules, me, packet), clock=clock)
    if not rules.forgets_syncs:
        me = me._replace(log=_inserted(rules, me.log, (me.clock, packet.message_id)))
    return me, packet


def receive(rules: Rules, me: Participant, packet: Packet) -> tuple[Participant, list[Event]]:
    """LIP 109, Receive Message; SDS-R, When RECEIVING a Message."""
    message_id, events = packet.message_id, list[Event]()
    if packet.sender == me.name:
        return me, events
    if message_id in me.received and (rules.drops_duplicates or message_id not in me.ids):
        return me, events
    me = _review_acknowledgements(rules, me, packet, events)
    if not packet.is_sync:
        me = me._replace(
            received=ids(me.received, [message_id]),
            missing=without(me.missing, message_id),
            answers=without(me.answers, message_id),
        )
    unknown = [each for each in packet.history if each not in me.received]
    wanted = unknown if rules.asks_after_loss else [u for u in unknown if u not in me.lost]
    me = me._replace(
        missing=ids(me.missing, wanted),
        asked=_noted(rules, me, packet),
        answers=ids(me.answers, (each for each in packet.requests if each in me.ids)),
    )
    if packet.is_sync:
        return me, events
    if all(_is_met(rules, me, each) for each in packet.history):
        me = _deliver(rules, me, packet, events)
        return _release(rules, me, events), events
    return me._replace(parked=(*me.parked, packet)), events


def give_up(rules: Rules, me: Participant) -> tuple[Participant, list[Event]]:
    """LIP 109: mark all missing messages as irretrievably lost."""
    events = list[Event]()
    me = me._replace(lost=ids(me.lost, me.missing), missing=())
    if not rules.delivers_after_loss:
        return me._replace(parked=()), events
    return _release(rules, me, events), events


def _review_acknowledgements(
    rules: Rules, me: Participant, packet: Packet, events: list[Event]
) -> Participant:
    """LIP 109, Review ACK Status: a causal history proves, filters are evidence."""
    left = []
    counts = packet.filter != (EVERYTHING,) or not rules.weighs_filters
    for message_id, seen_by in me.unacknowledged:
        if counts and (message_id in packet.filter or EVERYTHING in packet.filter):
            again = (*seen_by, packet.sender)
            seen_by = ids(again) if rules.counts_participants else tuple(sorted(again))
        if message_id in packet.history or len(seen_by) >= rules.threshold:
            events.append(Event("acknowledged", me.name, message_id))
        else:
            left.append((message_id, seen_by))
    return me._replace(unacknowledged=tuple(left))


def _deliver(rules: Rules, me: Participant, packet: Packet, events: list[Event]) -> Participant:
    """LIP 109, Deliver Message and Resolve Conflicts."""
    events.append(Event("delivered", me.name, packet.message_id))
    return me._replace(
        clock=max(me.clock, packet.lamport) if rules.merges_clock else me.clock,
        log=_inserted(rules, me.log, (packet.lamport, packet.message_id)),
        lost=without(me.lost, packet.message_id),
    )


def _release(rules: Rules, me: Participant, events: list[Event]) -> Participant:
    """LIP 109, Periodic Incoming Buffer Sweep: deliver what became ready."""
    if not rules.releases_in_order:
        ready = _closure(rules, me)
        me = me._replace(parked=tuple(each for each in me.parked if each not in ready))
        for packet in ready:
            me = _deliver(rules, me, packet, events)
        return me
    while ready := [p for p in me.parked if all(_is_met(rules, me, each) for each in p.history)]:
        first = min(ready, key=lambda packet: (packet.lamport, packet.message_id))
        me = me._replace(parked=tuple(each for each in me.parked if each != first))
        me = _deliver(rules, me, first, events)
    return me


def _closure(rules: Rules, me: Participant) -> list[Packet]:
    """All that can be delivered now, one after the other, as it arrived."""
    ready, met = list[Packet](), {*me.ids, *me.lost}
    while more := [p for p in me.parked if p not in ready and met.issuperset(p.history)]:
        ready += more
        met.update(packet.message_id for packet in more)
    return [packet for packet in me.parked if packet in ready]


def _is_met(rules: Rules, me: Participant, message_id: str) -> bool:
    if message_id in me.lost or message_id in me.ids:
        return True
    parked = any(packet.message_id == message_id for packet in me.parked)
    return parked and not rules.waits_for_parked


def _inserted(
    rules: Rules, log: tuple[tuple[int, str], ...], entry: tuple[int, str]
) -> tuple[tuple[int, str], ...]:
    if rules.orders_ties:
        return tuple(sorted((*log, entry)))
    return tuple(sorted((*log, entry), key=lambda each: each[0]))


def _history(rules: Rules, me: Participant) -> tuple[str, ...]:
    return me.ids[max(0, len(me.log) - rules.history) :]


def _filter(rules: Rules, me: Participant) -> Ids:
    """A filter without false positives, which rolls over to the newest ids when it is full."""
    if len(me.received) <= rules.capacity:
        return me.received
    if not rules.rolls_over:
        return (EVERYTHING,)
    newest = [each for each in me.ids if each in me.received][-rules.capacity :]
    return ids(newest)


def _requests(rules: Rules, me: Participant) -> Ids:
    return me.missing if rules.asks_again else without(me.missing, *me.asked)


def _noted(rules: Rules, me: Participant, packet: Packet) -> Ids:
    return me.asked if rules.asks_again else ids(me.asked, packet.requests)
