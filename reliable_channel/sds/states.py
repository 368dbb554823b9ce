"""The states of a message as one participant sees it, and every transition between them.

A participant knows a message by its id. It may have the message, or know of it only because another
message lists it in its causal history. LIP 109 describes what to do in each case but names no
states; this module does, in one table.

**Known by reference.** A message arrives whose causal history lists an id that is not known here.
The id becomes *missing*: it is searched in Store, peers are asked for it (SDS-R), and the message
that refers to it is *parked*, because a message is delivered only after everything it depends on.
References cost their sender a few bytes and a receiver much more, so only a bounded number become
missing at once; the others are *queued* and become missing later. A missing message that is not
found in time is *lost*: messages that wait for it are delivered without it, and name it.

**Joining.** A participant that joins a running channel cannot tell a lost message from one that was
sent before it joined. For a while, ids it does not know are *presumed* historic: searched, but
nothing waits for them. If one is not found, or turns out to be from before the join, it is
*historic*, and is not searched again.

**Here.** A message that arrives is *delivered* if everything it depends on is delivered, lost or
historic; else it is *parked*. A full buffer drops a parked message, which then is missing again. A
delivered message stays in the log until the log's limits *evict* it. Then only its id is
remembered, so that a reference to it does not make it missing.

**Forgotten.** The lists of lost, historic and evicted ids are bounded. When an id leaves its list,
the message is *unknown* again.

The core decides through this table: what a reference does (`references.py`, `following.py`) is
`TRANSITIONS[state, event]`, and what waits, and what is searched, follows from the attributes of
`State`. A state is not stored: it follows from the table of the core that has the id (`StatesOf`).
With `check_transitions`, as in all tests and simulations, every step of the core is compared with
the table, and one that is not in it raises `IllegalTransition`.
"""

from collections.abc import Callable, Iterable, Iterator, KeysView
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .ids import RecentIds
    from .state import ChannelState
    from .unseen import UnseenReferences

check_transitions = False
"""Whether participants that are made from now on compare each of their steps with the table."""


@contextmanager
def checking() -> Iterator[None]:
    """Check the participants that are made inside of the block."""
    global check_transitions
    before, check_transitions = check_transitions, True
    try:
        yield
    finally:
        check_transitions = before


class State(Enum):
    """What a message is to one participant."""

    is_awaited: bool
    """Messages that refer to it are parked until it is delivered or given up."""
    is_searched: bool
    """It is looked for in Store, and may be requested from peers."""
    is_here: bool
    """Its bytes are here."""

    UNKNOWN = "unknown", "", ""
    QUEUED = "queued", "awaited", "known by reference; its search has not begun"
    MISSING = "missing", "awaited searched", "known by reference, and searched"
    PRESUMED = "presumed", "searched", "known by reference while joining; nothing waits for it"
    HISTORIC = "historic", "", "sent before this participant joined, and not wanted"
    PARKED = "parked", "awaited here", "arrived; waits for messages it depends on"
    DELIVERED = "delivered", "here", "in the log, and emitted to the application"
    LOST = "lost", "", "not found in time; nothing waits for it any more"
    EVICTED = "evicted", "", "was delivered; the log's limits removed it"

    def __new__(cls, name: str, attributes: str, meaning: str) -> "State":
        """Make a member of its name, its attributes and its meaning."""
        member = object.__new__(cls)
        member._value_ = name
        member.is_awaited = "awaited" in attributes
        member.is_searched = "searched" in attributes
        member.is_here = "here" in attributes
        member.__doc__ = meaning or "neither here nor referred to"
        return member


class Event(Enum):
    """What happens to a message."""

    REFERENCED = "another message refers to it"
    REFERENCED_JOINING = "another message refers to it, while joining"
    REFERENCE_QUEUED = "another message refers to it, beyond the budget"
    SEARCH_BEGINS = "the budget lets its search begin"
    ARRIVES_EARLY = "arrives before messages it depends on"
    COMPLETE = "is here, and all it depends on is delivered or given up"
    UNWANTED = "arrives, and is from before the join"
    TOO_OLD = "arrives, and is older than the log"
    SENT = "this participant sends it"
    TIMEOUT = "is not found in time"
    LIMIT = "a limit of references or messages is reached"
    CYCLE = "waits for a message that waits for it"
    FORGED = "turns out to be forged, or is withdrawn"
    LOG_LIMIT = "the log's limits remove it"
    FORGOTTEN = "its id leaves a bounded list"


_S, _E = State, Event
_REFERRED: Final = {
    (_S.UNKNOWN, _E.REFERENCED): _S.MISSING,
    (_S.UNKNOWN, _E.REFERENCED_JOINING): _S.PRESUMED,
    (_S.UNKNOWN, _E.REFERENCE_QUEUED): _S.QUEUED,
    (_S.QUEUED, _E.REFERENCED): _S.MISSING,
    (_S.QUEUED, _E.REFERENCED_JOINING): _S.PRESUMED,
    (_S.LOST, _E.REFERENCED_JOINING): _S.PRESUMED,
    (_S.QUEUED, _E.SEARCH_BEGINS): _S.MISSING,
}
_ARRIVED: Final[dict[tuple[State, Event], State]] = {
    **{
        (state, _E.ARRIVES_EARLY): _S.PARKED
        for state in State
        if not state.is_here and state is not _S.EVICTED
    },
    **{
        (state, _E.COMPLETE): _S.DELIVERED
        for state in State
        if state not in (_S.DELIVERED, _S.EVICTED)
    },
    **{
        (state, _E.UNWANTED): _S.HISTORIC
        for state in State
        if not state.is_here and state is not _S.EVICTED
    },
    (_S.QUEUED, _E.TOO_OLD): _S.LOST,
    (_S.MISSING, _E.TOO_OLD): _S.LOST,
    (_S.PRESUMED, _E.TOO_OLD): _S.UNKNOWN,
    (_S.UNKNOWN, _E.TOO_OLD): _S.LOST,  # after a forged message with its id was removed
    (_S.UNKNOWN, _E.SENT): _S.DELIVERED,
    (_S.PARKED, _E.CYCLE): _S.PARKED,
}
_ENDED: Final = {
    (_S.MISSING, _E.TIMEOUT): _S.LOST,
    (_S.QUEUED, _E.TIMEOUT): _S.UNKNOWN,
    (_S.PRESUMED, _E.TIMEOUT): _S.HISTORIC,
    (_S.MISSING, _E.LIMIT): _S.UNKNOWN,
    (_S.QUEUED, _E.LIMIT): _S.UNKNOWN,
    (_S.PRESUMED, _E.LIMIT): _S.HISTORIC,
    (_S.PARKED, _E.LIMIT): _S.MISSING,
    (_S.PARKED, _E.FORGED): _S.UNKNOWN,
    (_S.DELIVERED, _E.FORGED): _S.UNKNOWN,
}
_SILENT: Final = {
    (_S.DELIVERED, _E.LOG_LIMIT): _S.EVICTED,
    (_S.LOST, _E.FORGOTTEN): _S.UNKNOWN,
    (_S.HISTORIC, _E.FORGOTTEN): _S.UNKNOWN,
    (_S.EVICTED, _E.FORGOTTEN): _S.UNKNOWN,
}
"""Transitions inside of a bounded list, which the core does not report."""
TRANSITIONS: Final[dict[tuple[State, Event], State]] = {
    **_REFERRED,
    **_ARRIVED,
    **_ENDED,
    **_SILENT,
}
"""The state after an event. A reference to a message in any other state changes nothing, and every
other pair that is not listed is a defect of the core."""
for _state in State:
    for _event in (_E.REFERENCED, _E.REFERENCED_JOINING, _E.REFERENCE_QUEUED):
        TRANSITIONS.setdefault((_state, _event), _state)


class IllegalTransition(AssertionError):
    """The core did something that is not in the table: a defect."""


Moved = Callable[[str, Event], None]
"""Takes note of a step of the core: `TransitionCheck`, or nothing."""


def unchecked(message_id: str, event: Event) -> None:
    """Take no note of a step."""


class StatesOf:
    """States of messages, by the tables of one participant."""

    def __init__(self, state: "ChannelState") -> None:
        self._log, buffer, joining = state.log, state.incoming_buffer, state.joining
        self._by_reference: tuple[tuple[State, dict[str, Any] | RecentIds | UnseenReferences], ...]
        self._by_reference = (
            (State.DELIVERED, state.referable_syncs),
            (State.PARKED, buffer.parked),
            (State.MISSING, buffer.missing),
            (State.PRESUMED, joining.presumed),
            (State.HISTORIC, joining.historic),
            (State.QUEUED, buffer.unseen),
            (State.LOST, buffer.lost),
        )
        """Where an id stands; the first place counts."""

    def of_reference(self, message_id: str) -> State:
        """The state of a message that neither is nor was in the log."""
        for state, ids in self._by_reference:
            if message_id in ids:
                return state
        return State.UNKNOWN

    def of(self, message_id: str) -> State:
        """The state of a message. May read the archive of the log."""
        if message_id in self._log.entries:
            return State.DELIVERED
        state = self.of_reference(message_id)
        if state.is_here or state is State.MISSING:
            return state
        if self._log.was_evicted(message_id):
            return State.EVICTED
        return State.DELIVERED if message_id in self._log else state

    def split(self, message_ids: KeysView[str]) -> tuple[set[str], set[str]]:
        """Those of the ids that are awaited, and those that are known otherwise, by reference.

        With operations on sets: a loop over the ids would cost more than reading the message did.
        """
        awaited, others = set[str](), set[str]()
        for state, ids in self._by_reference:
            known = message_ids & ids.keys() if isinstance(ids, dict) else ids.known(message_ids)
            (awaited if state.is_awaited else others).update(known)
        return awaited, others


class TransitionCheck:
    """Compares each step of one participant with the table."""

    def __init__(self, state: "ChannelState") -> None:
        self._core = state
        self._of = StatesOf(state).of
        self._states: dict[str, State] = {}
        """States after the last step; ids that are not here are unknown."""

    def __call__(self, message_id: str, event: Event) -> None:
        """Take note of a step of the core.

        Raises:
            IllegalTransition: the table has no such step, the tables of the core disagree with it,
                or messages are left that wait for what is not searched any more.
        """
        before, now = self._states.get(message_id, State.UNKNOWN), self._of(message_id)
        after = self._after(before, event, now)
        if after is None:
            allowed = TRANSITIONS.get((before, event))
            raise IllegalTransition(
                f"{message_id!r} was {before.value} and is {now.value} after {event.name} "
                f"({event.value}); the table has {allowed.value if allowed else 'no such step'}"
            )
        buffer = self._core.incoming_buffer
        if now is State.DELIVERED and (message_id in buffer.missing or message_id in buffer.parked):
            raise IllegalTransition(f"{message_id!r} is delivered, and still missing or parked")
        forgotten = before.is_awaited and after is State.UNKNOWN and event is not Event.FORGED
        if forgotten and buffer.waits_for(message_id):
            raise IllegalTransition(
                f"{message_id!r} was {before.value} and is forgotten ({event.value}), but a parked "
                "message waits for it"
            )
        self._states[message_id] = after

    def restored(self) -> None:
        """Begin with the states after a restart."""
        state = self._core
        buffer, joining = state.incoming_buffer, state.joining
        for ids in (buffer.parked, buffer.missing, buffer.lost, joining.presumed):
            self._states.update((message_id, self._of(message_id)) for message_id in ids)
        restored = (buffer.unseen, joining.historic, state.referable_syncs)
        self._states.update((i, self._of(i)) for ids in restored for i in ids)
        self._states.update((entry.message_id, State.DELIVERED) for entry in state.log)

    def _after(self, before: State, event: Event, now: State) -> State | None:
        """The state after an event by the table, if the tables of the core agree."""
        for state in self._silently(before):
            if (after := TRANSITIONS.get((state, event))) is None:
                continue
            if now in self._silently(after):
                return now
            if self._core.log.is_archived and {now, after} == {State.DELIVERED, State.UNKNOWN}:
                return after  # the archive sees a step after it was written
        return None

    def _silently(self, state: State) -> Iterable[State]:
        """The state, and those it may turn into inside of a bounded list."""
        yield state
        if state is State.DELIVERED and self._core.log.evicted:
            yield from (State.EVICTED, State.UNKNOWN)
        elif (state, Event.FORGOTTEN) in TRANSITIONS:
            yield State.UNKNOWN
