"""State machine of one node in one group for State Vector Sync, version 3.

The state machine does no I/O. The owner of the state machine calls `publish`, `receive` and, when
it is due, `on_deadline`. After each call, the owner writes the result of `changes()` and sends the
result of `outgoing()`. Last, the owner passes the result of `events()` to the application. Only
calls of its methods change the state of the state machine. The methods read no clock, never wait,
and draw random numbers only from `random`.

Paragraph numbers in comments refer to the specification (2025-01-04).
"""

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from .errors import InvalidName, SequenceExhausted, TlvError
from .events import (
    EventsDropped,
    IgnoredReason,
    Limit,
    LimitReached,
    OwnNameClaimed,
    PublicationsKnown,
    Rebootstrapped,
    SvsEvent,
    VectorIgnored,
    VectorSplit,
)
from .name import Name
from .options import SvsOptions
from .splitting import split
from .tlv import MAX_NUMBER
from .vector import StateVector


class State(Enum):
    """State of §4.5, which determines what happens when the timer ends."""

    STEADY = "steady"
    SUPPRESSION = "suppression"


@dataclass(frozen=True, slots=True)
class Publication:
    """Bootstrap time and sequence number of an own publication."""

    bootstrap_time: int
    seq: int


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes of the state that a restart needs. After a restart, `SvsProtocol` takes them as
    `bootstrap_time` and `vector`."""

    bootstrap_time: int
    numbers: dict[tuple[Name, int], int]
    """Sequence numbers by node name and bootstrap time."""


class SvsProtocol:
    """SVS state machine for a node of one group.

    After a restart, pass the earlier `bootstrap_time` and `vector`. Without a bootstrap time the
    node uses `now_ms`, as after lost state (§3, Bootstrap Time).

    The generator `random` returns floats in [0, 1).

    Raises:
        InvalidName: the name is empty, or longer than `limits.name_bytes`.
    """

    def __init__(
        self,
        name: Name,
        *,
        now_ms: int,
        random: Callable[[], float],
        bootstrap_time: int | None = None,
        vector: StateVector | None = None,
        options: SvsOptions | None = None,
    ) -> None:
        self.options = options or SvsOptions()
        size = len(name.encode())
        if not name.components or size > self.options.limits.name_bytes:
            raise InvalidName(
                f"the name of a node has {size} bytes; names of 3 to "
                f"{self.options.limits.name_bytes} bytes are allowed"
            )
        self._random = random
        self._merged = StateVector()
        self._updated_ms: dict[Name, int] = {}
        self._events: deque[SvsEvent] = deque()
        self._events_dropped = 0
        self._must_send = self._is_disputed = False
        self._parts = 1
        # Open to read; only the machine writes.
        self.name = name
        self.bootstrap_time = now_ms // 1000 if bootstrap_time is None else bootstrap_time
        self.vector = StateVector() if vector is None else vector.copy()
        self._changed: dict[tuple[Name, int], int] = {}
        self._seq = self.vector.seq(name, self.bootstrap_time)
        self.state = State.STEADY
        self.due_ms = 0
        self._enter_steady(now_ms)

    # -- inputs ------------------------------------------------------------------------------------

    def publish(self, now_ms: int, *, announce: bool = True) -> Publication:
        """Take the next sequence number, and announce the publication (§4.2).

        The Data must be available before `outgoing()` is sent, because members request it at once.
        A caller that sends the Data to all members itself may announce later (`announce=False`).

        Raises:
            SequenceExhausted: the last number of this bootstrap time is taken.
        """
        if self._is_disputed:
            self.rebootstrap(now_ms)
        if self._seq == MAX_NUMBER:
            raise SequenceExhausted(
                f"node {self.name} has used all sequence numbers of bootstrap time "
                f"{self.bootstrap_time}; call rebootstrap()"
            )
        self._seq += 1
        self._raise_to(self.name, self.bootstrap_time, self._seq)
        if announce:
            self._send_and_settle(now_ms)
        return Publication(self.bootstrap_time, self._seq)

    def announce(self, now_ms: int) -> None:
        """Send the state vector now, for example when the network is back."""
        self._send_and_settle(now_ms)

    def rebootstrap(self, now_ms: int) -> None:
        """Number further publications from 1 under a bootstrap time that this node has never
        used."""
        boot = max(now_ms // 1000, self.bootstrap_time + 1)
        while boot in self.vector.numbers(self.name):
            boot += 1
        self.bootstrap_time, self._seq, self._is_disputed = boot, 0, False
        self._tell(Rebootstrapped(self.bootstrap_time))

    def receive(self, data: bytes, now_ms: int) -> None:
        """Handle the encoded state vector of a Sync Interest (§4.5).

        `receive` raises no error, because a refused vector becomes a `VectorIgnored` event.
        """
        try:
            incoming = StateVector.decode(data)
        except TlvError as error:
            self._tell(VectorIgnored(IgnoredReason.MALFORMED, str(error)))
            return
        if ahead := self._ahead(incoming, now_ms):
            # §3: the entire state vector SHOULD be ignored.
            self._tell(VectorIgnored(IgnoredReason.BOOTSTRAP_TIME_AHEAD, ahead))
            return
        self._update(incoming, now_ms)
        outdated = list(incoming.outdated_names(self.vector))
        if self.state is State.SUPPRESSION:
            self._merged.merge(incoming)
            if not outdated and self.options.behaviour.leave_suppression_at_once:
                self._enter_steady(now_ms)
        elif not outdated:
            self._reset_periodic(now_ms)
        elif not self._all_just_updated(incoming, outdated, now_ms):
            self._enter_suppression(incoming, now_ms)

    def heard_of(self, name: Name, bootstrap_time: int, seq: int, now_ms: int) -> bool:
        """Note a publication that arrived before any state vector announced it.

        If a limit is reached or the bootstrap time is in the future, `heard_of` returns False.
        """
        single = StateVector({name: {bootstrap_time: seq}})
        if self._ahead(single, now_ms):
            return False
        self._update(single, now_ms)
        return self.vector.seq(name, bootstrap_time) >= seq

    # -- time --------------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int:
        """Return the time at which `on_deadline` must be called next."""
        return self.due_ms

    def on_deadline(self, now_ms: int) -> None:
        """Do everything that is due at this time (§4.5, on expiration of timer)."""
        if now_ms < self.due_ms:
            return
        if self.state is State.STEADY or self._merged.is_outdated_to(self.vector):
            self._must_send = True
        self._enter_steady(now_ms)

    # -- outputs -----------------------------------------------------------------------------------

    def outgoing(self) -> Iterator[bytes]:
        """Yield the encoded state vectors that must be sent as Sync Interests.

        A vector that became due several times since the last call is sent once.
        """
        if not self._must_send:
            return
        self._must_send = False
        parts = split(self.vector, self.name, self.options.vector_bytes)
        if len(parts) != self._parts:
            self._parts = len(parts)
            self._tell(VectorSplit(len(parts), sum(map(len, parts))))
        yield from parts

    def events(self) -> Iterator[SvsEvent]:
        """Yield all events since the last call of `events`."""
        if self._events_dropped:
            dropped, self._events_dropped = self._events_dropped, 0
            yield EventsDropped(dropped)
        while self._events:
            yield self._events.popleft()

    def changes(self) -> Changes:
        """Return the changes of the state since the last call, as a restart needs them."""
        changed, self._changed = self._changed, {}
        return Changes(self.bootstrap_time, changed)

    # -- inside ------------------------------------------------------------------------------------

    def _update(self, incoming: StateVector, now_ms: int) -> None:
        """§4.5: take over what is newer, and remember from which node and when."""
        for name in incoming:
            if not self._has_room_for(name):
                continue
            self.vector.add_name(name)
            # The newest bootstrap time first: it is what the application wants most.
            for boot, seq in sorted(incoming.numbers(name).items(), reverse=True):
                known = self.vector.seq(name, boot)
                if seq <= known or not self._has_room_for(name, boot):
                    continue
                self._raise_to(name, boot, seq)
                self._updated_ms[name] = now_ms
                self._tell(PublicationsKnown(name, boot, known + 1, seq))
                if name == self.name and boot >= self.bootstrap_time:
                    self._on_own_claim(boot, seq)

    def _on_own_claim(self, boot: int, seq: int) -> None:
        self._tell(OwnNameClaimed(boot, seq, self._seq))
        if boot != self.bootstrap_time:
            return
        # Numbers up to `seq` would not be fetched: others believe to know them. Changing the
        # bootstrap time waits for the next publication, so that claims alone do not use them up.
        own_times = len(self.vector.numbers(self.name))
        if (
            self.options.behaviour.own_future == "adopt"
            or own_times >= self.options.limits.bootstrap_times // 2
        ):
            self._seq = seq
        else:
            self._is_disputed = True

    def _has_room_for(self, name: Name, boot: int | None = None) -> bool:
        limits, limit = self.options.limits, None
        if boot is not None:
            numbers = self.vector.numbers(name)
            if boot not in numbers and len(numbers) >= limits.bootstrap_times:
                limit = Limit.BOOTSTRAP_TIMES
        elif name not in self.vector:
            if len(self.vector) >= limits.names:
                limit = Limit.NAMES
            elif len(name.encode()) > limits.name_bytes:
                limit = Limit.NAME_BYTES
        if limit is not None:
            self._tell(LimitReached(limit, name))
        return limit is None

    def _ahead(self, incoming: StateVector, now_ms: int) -> str | None:
        newest = now_ms // 1000 + self.options.max_bootstrap_ahead_s
        for name in incoming:
            for boot in incoming.numbers(name):
                if boot > newest:
                    return f"{name} says bootstrap time {boot}; at most {newest} is taken now"
        return None

    def _all_just_updated(self, incoming: StateVector, outdated: list[Name], now_ms: int) -> bool:
        """§4.5: whether what is outdated is so because news are still on their way."""
        since_ms = now_ms - self.options.suppression_period_ms
        missing_counts = self.options.behaviour.missing_names_may_be_recent
        return all(
            self._updated_ms.get(name, since_ms - 1) >= since_ms
            and (missing_counts or name in incoming)
            for name in outdated
        )

    def _raise_to(self, name: Name, boot: int, seq: int) -> None:
        self.vector.raise_to(name, boot, seq)
        self._changed[name, boot] = seq

    def _send_and_settle(self, now_ms: int) -> None:
        self._must_send = True
        self._enter_steady(now_ms)

    def _enter_steady(self, now_ms: int) -> None:
        self.state = State.STEADY
        self._merged = StateVector()
        self._reset_periodic(now_ms)

    def _reset_periodic(self, now_ms: int) -> None:
        timeout_ms, jitter = self.options.periodic_timeout_ms, self.options.periodic_jitter
        self.due_ms = now_ms + round(timeout_ms * (1 + jitter * (2 * self._random() - 1)))

    def _enter_suppression(self, trigger: StateVector, now_ms: int) -> None:
        self.state = State.SUPPRESSION
        self._merged = StateVector()
        if self.options.behaviour.merge_the_trigger:
            self._merged.merge(trigger)
        period_ms, factor = self.options.suppression_period_ms, self.options.decay_factor
        self.due_ms = now_ms + round(suppression_timeout_ms(period_ms, self._random(), factor))

    def _tell(self, event: SvsEvent) -> None:
        if len(self._events) >= self.options.limits.events:
            self._events.popleft()
            self._events_dropped += 1
        self._events.append(event)


def suppression_timeout_ms(period_ms: float, draw: float, decay_factor: float = 10.0) -> float:
    """Return a SuppressionTimeout (§4.1) from a random number in [0, 1). The formula gives most
    members a late answer, and a few an early answer."""
    return period_ms * (1 - math.exp((draw - 1) * decay_factor))
