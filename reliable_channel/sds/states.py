"""States of a message, as one participant sees this message, and the transitions between them.

A participant knows a message by its id. The participant may have the message, or know it only
because a causal history lists its id. LIP 109 describes what a participant does with a message but
names no states. This module names the states in one table.

**Known by reference.** A message arrives whose causal history lists an unknown id. The unknown id
becomes *missing*. A missing message is searched in Store, and peers are asked for it (SDS-R). A
message that refers to a missing message is *parked*, because a message is delivered only after its
dependencies. A reference costs its sender a few bytes and a receiver much more. The receiver
therefore limits the number of missing ids. Further ids are *queued* and become missing later. A
missing message that is not found in time is *lost*. Messages that wait for a lost message are
delivered without the lost message, and name it.

**Joining.** A participant that joins a running channel cannot distinguish a lost message from an
earlier message. For a while, unknown ids are *presumed* historic, so they are searched, but no
message waits for them. A presumed message that is not found, or was sent before the join, becomes
*historic*.

**Here.** A message that arrives is *delivered* if each of its dependencies is delivered, lost or
historic. A message with any other dependency is *parked*. A full buffer drops a parked message,
which then is missing again. A delivered message stays in the log until the log's limits *evict* it.
The id of an evicted message is remembered, so that a reference does not make the message missing.

**Forgotten.** The lists of lost, historic and evicted ids have a maximum length. When an id leaves
its list, the message is *unknown* again.

The core decides by the table `TRANSITIONS`. For a reference, `search.py` looks up
`TRANSITIONS[state, event]`. The attributes of `State` determine which messages wait and which
messages are searched. The state of a message is not stored: the state follows from the core's table
that contains the message's id (`states_of.py`). With `check_transitions`, as in all tests and
simulations, every step is compared with `TRANSITIONS`. A step that is not in `TRANSITIONS` raises
`IllegalTransition`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Final

check_transitions = False
"""True if a new participant compares each of its steps with the table."""


@contextmanager
def checking() -> Iterator[None]:
    """Check all transitions of participants that are made inside the `with` block."""
    global check_transitions
    before, check_transitions = check_transitions, True
    try:
        yield
    finally:
        check_transitions = before


class State(Enum):
    """State of a message for one participant."""

    is_awaited: bool
    """True if messages that refer to the message are parked until it is delivered or lost."""
    is_searched: bool
    """True if the message is searched in Store, and may be requested from peers."""
    is_here: bool
    """True if the bytes of the message are here."""

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


class Trigger(Enum):
    """Event that changes the state of a message."""

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


_S, _E = State, Trigger
_ABSENT: Final = [each for each in State if not each.is_here and each is not _S.EVICTED]
_REFERRED: Final = {
    (_S.UNKNOWN, _E.REFERENCED): _S.MISSING,
    (_S.UNKNOWN, _E.REFERENCED_JOINING): _S.PRESUMED,
    (_S.UNKNOWN, _E.REFERENCE_QUEUED): _S.QUEUED,
    (_S.QUEUED, _E.REFERENCED): _S.MISSING,
    (_S.QUEUED, _E.REFERENCED_JOINING): _S.PRESUMED,
    (_S.LOST, _E.REFERENCED_JOINING): _S.PRESUMED,
    (_S.QUEUED, _E.SEARCH_BEGINS): _S.MISSING,
}
_ARRIVED: Final[dict[tuple[State, Trigger], State]] = {
    **{(state, _E.ARRIVES_EARLY): _S.PARKED for state in _ABSENT},
    **{
        (state, _E.COMPLETE): _S.DELIVERED
        for state in State
        if state not in (_S.DELIVERED, _S.EVICTED)
    },
    **{(state, _E.UNWANTED): _S.HISTORIC for state in _ABSENT},
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
TRANSITIONS: Final[dict[tuple[State, Trigger], State]] = {
    **_REFERRED,
    **_ARRIVED,
    **_ENDED,
    **_SILENT,
}
"""State of a message after an event. A reference to a message in any other state changes nothing.
Every other pair of state and event that is not listed is a defect of the core."""
for _state in State:
    for _event in (_E.REFERENCED, _E.REFERENCED_JOINING, _E.REFERENCE_QUEUED):
        TRANSITIONS.setdefault((_state, _event), _state)


OnTransition = Callable[[str, Trigger], None]
"""Function that is called at each transition of a message, `TransitionCheck` or `unchecked`."""


def unchecked(message_id: str, event: Trigger) -> None:
    """Do nothing at a transition of a message."""
