"""State of each message in the tables of one participant, and the check of every transition."""

from collections.abc import Iterable, KeysView
from typing import Any

from .ids import RecentIds
from .log.log import MessageLog
from .references.incoming import IncomingBuffer
from .references.joining import Joining
from .references.queued import QueuedReferences
from .states import TRANSITIONS, State, Trigger


class IllegalTransition(AssertionError):
    """A transition of the core is not in the table, which is a defect of the core."""


class StatesOf:
    """States of messages, computed from the tables of one participant."""

    def __init__(
        self,
        log: MessageLog,
        buffer: IncomingBuffer,
        joining: Joining,
        referable_syncs: RecentIds,
    ) -> None:
        self.log, self.buffer, self.joining = log, buffer, joining
        self.referable_syncs = referable_syncs
        self._by_reference: tuple[tuple[State, dict[str, Any] | QueuedReferences], ...] = (
            (State.DELIVERED, referable_syncs),
            (State.PARKED, buffer.parked),
            (State.MISSING, buffer.missing),
            (State.PRESUMED, joining.presumed),
            (State.HISTORIC, joining.historic),
            (State.QUEUED, buffer.queued),
            (State.LOST, buffer.lost),
        )
        """Where an id stands; the first place counts."""

    def of_reference(self, message_id: str) -> State:
        """Return the state of a message that neither is nor was in the log."""
        for state, ids in self._by_reference:
            if message_id in ids:
                return state
        return State.UNKNOWN

    def of(self, message_id: str) -> State:
        """Return the state of a message. The method may read the archive of the log."""
        if message_id in self.log.entries:
            return State.DELIVERED
        state = self.of_reference(message_id)
        if state.is_here or state is State.MISSING:
            return state
        if self.log.was_evicted(message_id):
            return State.EVICTED
        return State.DELIVERED if message_id in self.log else state

    def split(self, message_ids: KeysView[str]) -> tuple[set[str], set[str]]:
        """Return those of the given ids that are awaited, and those that are known only by
        reference.

        The method uses set operations, because a loop over ids costs more than reading the message.
        """
        awaited, others = set[str](), set[str]()
        for state, ids in self._by_reference:
            known = message_ids & ids.keys() if isinstance(ids, dict) else ids.known(message_ids)
            (awaited if state.is_awaited else others).update(known)
        return awaited, others


class TransitionCheck:
    """Check that compares each transition of one participant with the table."""

    def __init__(self, states: StatesOf) -> None:
        self._core = states
        self._of = states.of
        self._states: dict[str, State] = {}
        """States after the last step; ids that are not here are unknown."""

    def __call__(self, message_id: str, event: Trigger) -> None:
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
                f"message {message_id!r} was {before.value} and is {now.value} after {event.name} "
                f"({event.value}); the table of states allows "
                f"{(allowed.value if allowed else 'no such step')}"
            )
        buffer = self._core.buffer
        if now is State.DELIVERED and (message_id in buffer.missing or message_id in buffer.parked):
            raise IllegalTransition(
                f"message {message_id!r} is delivered, but the buffer still lists it as missing "
                "or parked"
            )
        forgotten = before.is_awaited and after is State.UNKNOWN and event is not Trigger.FORGED
        if forgotten and buffer.waits_for(message_id):
            raise IllegalTransition(
                f"message {message_id!r} was {before.value} and is forgotten ({event.value}), "
                "although a parked message waits for it"
            )
        self._states[message_id] = after

    def restored(self) -> None:
        """Note the states of all messages again after a restart."""
        core, joining = self._core, self._core.joining
        buffer = core.buffer
        for ids in (buffer.parked, buffer.missing, buffer.lost, joining.presumed):
            self._states.update((message_id, self._of(message_id)) for message_id in ids)
        restored = (buffer.queued, joining.historic, core.referable_syncs)
        self._states.update((i, self._of(i)) for ids in restored for i in ids)
        self._states.update((entry.message_id, State.DELIVERED) for entry in core.log)

    def _after(self, before: State, event: Trigger, now: State) -> State | None:
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
        elif (state, Trigger.FORGOTTEN) in TRANSITIONS:
            yield State.UNKNOWN
