"""The turns of an engine: one input, then all that follows from it, in one order.

A channel drives its engine with this class, and so does a simulation. Each adds how it shows
events, how it wakes its tasks, and how it keeps time.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from enum import IntFlag
from typing import Generic, TypeVar

from ..events import AnyEvent
from ..sds.events import Outgoing
from .engine import Engine
from .logged import Logged
from .outbox import Item
from .requests import Accepted
from .steps import Step
from .sync_core import Arrival
from .translation import EncryptedDelivery

M = TypeVar("M")
"""A message of the transport, as it arrived."""


class Wake(IntFlag):
    """A task that a step gives something to do."""

    SEND = 1
    """Messages wait for the transport."""
    WRITE = 2
    """Steps wait for the disk."""
    DECRYPT = 4
    """Delivered contents wait to be decrypted."""
    FETCH = 8
    """There is something to ask Store for."""


class Driver(ABC, Generic[M]):
    """Hands an engine its inputs, and lets out what is due after each.

    No method waits, so that a step is whole between two awaits of any task, and between two moments
    of a simulation.
    """

    def __init__(self, engine: Engine, now_ns: Callable[[], int]) -> None:
        self.engine = engine
        self.now_ns = now_ns

    def now_ms(self) -> int:
        """Return the time in milliseconds."""
        return self.now_ns() // 1_000_000

    # -- from the application ----------------------------------------------------------------------

    def send(
        self, payload: bytes, segments: Sequence[bytes], idempotency_key: str | None = None
    ) -> Accepted:
        """Accept a message; `segments` is what `Engine.split` made of the payload."""
        now_ns = self.now_ns()
        accepted = self.engine.send(segments, now_ns, idempotency_key)
        self.note_sent(payload, accepted)
        self.finish(now_ns // 1_000_000)
        return accepted

    def send_ephemeral(self, content: bytes) -> str:
        """Accept an ephemeral message; return its id."""
        now_ns = self.now_ns()
        message_id = self.engine.send_ephemeral(content, now_ns)
        self.finish(now_ns // 1_000_000)
        return message_id

    def cancel(self, message_ids: Sequence[str]) -> bool:
        """Stop publishing and retrying a request; return True if it was pending."""
        was_pending = self.engine.cancel(message_ids)
        self.finish()
        return was_pending

    def confirm(self, event: AnyEvent) -> None:
        """The application has handled an event."""
        if self.engine.confirm(event):
            self.note_confirmed(event)
            self.finish()

    def emit(self, event: AnyEvent) -> None:
        """Emit an event of the owner, after those that wait to be written."""
        self.engine.emit(event)
        self.finish()

    # -- from the transport and from Store ---------------------------------------------------------

    def received(
        self,
        data: bytes,
        arrived: M,
        *,
        message_hash: bytes,
        timestamp_ns: int,
        from_store: bool,
    ) -> Arrival:
        """Take a message that arrived; `data` is its payload, decrypted."""
        now_ms = self.now_ms()
        arrival = self.engine.receive(
            data,
            now_ms,
            message_hash=message_hash,
            timestamp_ns=timestamp_ns,
            from_store=from_store,
        )
        self.note_received(data, arrived, arrival, now_ms, from_store=from_store)
        self.finish(now_ms)
        return arrival

    def decrypted(self, delivery: EncryptedDelivery, content: bytes) -> None:
        """The content of a delivered message is decrypted."""
        now_ms = self.now_ms()
        self.engine.decrypted(delivery, content, now_ms)
        self.finish(now_ms)

    def undecryptable(self, delivery: EncryptedDelivery, reason: str) -> None:
        """The content of a delivered message cannot be decrypted."""
        self.engine.undecryptable(delivery, reason)
        self.finish()

    def in_store(self, message_hashes: Iterable[bytes]) -> None:
        """Store was seen to have these messages."""
        for message_hash in message_hashes:
            self.engine.in_store(message_hash)
        self.finish()

    def store_checked(self, reached_ns: int) -> None:
        """A look for own messages went through what was stamped up to `reached_ns`."""
        now_ms = self.now_ms()
        self.engine.store_checked(reached_ns, now_ms)
        self.finish(now_ms)

    # -- to the transport --------------------------------------------------------------------------

    def dispatched(self, item: Item, message_hash: bytes, timestamp_ns: int) -> None:
        """The transport took a message."""
        now_ms = self.now_ms()
        self.engine.dispatched(item, message_hash, timestamp_ns, now_ms)
        self.finish(now_ms)

    def refused(self, outgoing: Outgoing, reason: str) -> None:
        """A message will never go out."""
        self.engine.refused(outgoing, reason)
        self.finish()

    # -- turns -------------------------------------------------------------------------------------

    def on_deadline(self, now_ms: int) -> None:
        """Do all that is due."""
        self.engine.on_deadline(now_ms)
        self.finish(now_ms)

    def finish(self, now_ms: int | None = None) -> None:
        """End a step: show what is due, wake what has something to do, plan the next deadline."""
        engine = self.engine
        if now_ms is None:
            now_ms = self.now_ms()
        if steps := engine.end_step(now_ms):
            self.release(steps, now_ms)
        if engine.unwritten and engine.unwritten.wakes_writer:
            self.wake(Wake.WRITE)
        if engine.to_decrypt:
            self.wake(Wake.DECRYPT)
        if (due_ms := engine.next_deadline_ms()) is not None:
            self.ring_at(due_ms, now_ms)
        if not engine.queries.is_idle:
            self.wake(Wake.FETCH)

    def release(self, steps: Iterable[Step], now_ms: int) -> None:
        """Show the events of steps that are due, and have their messages sent."""
        for step in steps:
            for event in step.events:
                self.show(event, now_ms)
            if step.outgoing:
                self.wake(Wake.SEND)

    # -- what a channel and a simulation add -------------------------------------------------------

    @abstractmethod
    def show(self, event: AnyEvent | Logged, now_ms: int) -> None:
        """Show an event to the journal, the observers and the readers, in this order."""

    @abstractmethod
    def wake(self, wake: Wake) -> None:
        """Wake a task."""

    @abstractmethod
    def ring_at(self, due_ms: int, now_ms: int) -> None:
        """See that `on_deadline` is called at `due_ms`."""

    def note_sent(self, payload: bytes, accepted: Accepted) -> None:
        """A message was accepted, and its step has not ended."""

    def note_confirmed(self, event: AnyEvent) -> None:
        """An event was confirmed, and its step has not ended."""

    @abstractmethod
    def note_received(
        self, data: bytes, arrived: M, arrival: Arrival, now_ms: int, *, from_store: bool
    ) -> None:
        """A message was received, and its step has not ended."""
