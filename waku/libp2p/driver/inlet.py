"""Streams on which only the peer speaks: each message is a call, and no stream costs a task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ..budget import MESSAGE
from ..errors import Libp2pError
from ..varint import MessageReader
from .stream import Carrier

__all__ = ["Inlet", "MessageSink"]


BYTES: Final = 1_024
"""Length that adds a frame to a message's price."""


@dataclass(frozen=True, slots=True)
class MessageSink:
    """Serves a protocol in place of a handler; `take` returns at once.

    Peers that open a stream for each message, as go-waku does for filter pushes, cost a tenth of
    what a task for each stream would. There is no back-pressure: `take` bounds what it keeps.
    """

    limit_bytes: int
    """Longest message; the stream of a longer one is reset."""
    take: Callable[[Carrier, bytes], None]
    """Called with the link and each message. A `Libp2pError` resets the stream."""
    refuse: Callable[[Carrier, Libp2pError], None] = lambda _, __: None
    """Called with the link and the reason where a stream is reset for a message that `take` never
    gets: it is too long, or its length cannot be read."""


class Inlet:
    """One stream of a sink, as its link sees it."""

    def __init__(self, link: Carrier, stream_id: int, sink: MessageSink) -> None:
        self._link = link
        self._id = stream_id
        self._sink = sink
        self._reader = MessageReader(sink.limit_bytes, "message_bytes")

    def take(self, data: bytes) -> None:
        """Hand over the messages that are whole now."""
        self._link.consumed(self._id, len(data))
        self._reader.feed(data)
        self.go_on()

    def go_on(self) -> None:
        """Hand over messages until the turn ends; the link calls it again in the next one."""
        budget = self._link.connection.budget
        while self._link.is_open:
            if budget.is_spent:
                self._link.resume(self.go_on)
                return
            try:
                if (message := self._next_message()) is None:
                    return
                self._sink.take(self._link, message)
            except Libp2pError:  # the peer sent what it may not
                self._link.forget(self._id)
                return
            budget.charge(MESSAGE + len(message) // BYTES, "messages")

    def _next_message(self) -> bytes | None:
        try:
            return self._reader.next_message()
        except Libp2pError as error:
            self._sink.refuse(self._link, error)
            raise

    def take_end(self) -> None:
        """End this half, too (T11)."""
        self._link.connection.end(self._id)
        self._link.forget(self._id)

    def take_credit(self, protocol: str | None = None) -> None:
        """Nothing is sent here."""

    def fail(self, failure: Libp2pError) -> None:
        """What was received was handed over."""
