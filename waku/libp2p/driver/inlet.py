"""Receivers of streams on which only the peer sends. Each message is a function call, so a stream
needs no task."""

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
"""Size (bytes) that is added to each message when its price is computed."""


@dataclass(frozen=True, slots=True)
class MessageSink:
    """Receiver of a protocol's messages, used in place of a handler. The function `take` must
    return at once.

    A sink suits peers that open a stream for each message, as go-waku does for filter pushes. A
    stream of a sink costs a tenth of a stream with a task. A sink has no back-pressure, so `take`
    must limit what it keeps.
    """

    limit_bytes: int
    """Maximum length of a message (bytes). A stream with a longer message is reset."""
    take: Callable[[Carrier, bytes], None]
    """Function that is called with the link and each message. If the function raises a
    `Libp2pError`, the stream is reset."""
    refuse: Callable[[Carrier, Libp2pError], None] = lambda _, __: None
    """Function that is called with the link and the reason when a bad message resets a stream."""


class Inlet:
    """State of one stream of a message sink."""

    def __init__(self, link: Carrier, stream_id: int, sink: MessageSink) -> None:
        self._link = link
        self._id = stream_id
        self._sink = sink
        self._reader = MessageReader(sink.limit_bytes, "message_bytes")

    def take(self, data: bytes) -> None:
        """Pass on all messages that are complete."""
        self._link.consumed(self._id, len(data))
        self._reader.feed(data)
        self.go_on()

    def go_on(self) -> None:
        """Pass on messages until the turn of the connection ends. The link calls this method again
        in the next turn."""
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
        """End the sending half of the stream, too (T11)."""
        self._link.connection.end(self._id)
        self._link.forget(self._id)

    def take_credit(self, protocol: str | None = None) -> None:
        """Do nothing, because nothing is sent on the stream."""

    def fail(self, failure: Libp2pError) -> None:
        """Do nothing, because received bytes were passed on already."""
