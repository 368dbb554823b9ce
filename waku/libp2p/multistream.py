"""multistream-select 1.0, which negotiates the protocol of a connection or a stream.

The specification is https://github.com/multiformats/multistream-select.

Each side of the negotiation is an object without I/O. The method `receive` accepts bytes, and
`data_to_send` returns bytes. When `protocol` is known, `rest` has the bytes that the peer already
sent after the negotiation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from . import varint
from .errors import LimitExceeded, PeerViolation, ProtocolNotSupported
from .limits import Limits

__all__ = ["MULTISTREAM", "Dialler", "Listener"]

MULTISTREAM: Final = "/multistream/1.0.0"
_NOT_AVAILABLE: Final = "na"


@lru_cache(maxsize=64)
def line(text: str) -> bytes:
    """Encode a line as its length, the text and a newline."""
    return varint.prefixed(text.encode() + b"\n")


class _Side:
    """What both sides share: lines in, lines out."""

    protocol: str | None = None
    """The protocol that both sides agreed to."""

    def __init__(self, limits: Limits) -> None:
        self._reader = varint.MessageReader(limits.multistream_line_bytes, "multistream_line_bytes")
        self._out = bytearray()
        self._greeted = False

    def data_to_send(self) -> bytes:
        """Return and forget the bytes for the peer."""
        data = bytes(self._out)
        self._out.clear()
        return data

    @property
    def rest(self) -> bytes:
        """Bytes that the peer sent behind the negotiation."""
        return self._reader.rest

    def receive(self, data: bytes) -> None:
        """Take bytes of the peer, none after the protocol is known.

        Raises:
            PeerViolation: the bytes are not of multistream-select.
            ProtocolNotSupported: the peer refused the last protocol that was offered.
        """
        self._reader.feed(data)
        while self.protocol is None and (text := self._next_line()) is not None:
            if not self._greeted:
                if text != MULTISTREAM:
                    raise self._violation(
                        f"the peer sent the greeting {text[:60]!r} instead of the multistream "
                        "protocol id"
                    )
                self._greeted = True
            else:
                self._heard(text)

    def _next_line(self) -> str | None:
        try:
            message = self._reader.next_message()
        except LimitExceeded:
            raise
        except ValueError as error:
            raise self._violation(f"the peer sent no multistream line: {error}") from error
        if message is None:
            return None
        if message[-1:] != b"\n":
            raise self._violation("the peer sent a multistream line without a newline")
        return message[:-1].decode("utf-8", "replace")

    def _violation(self, what: str) -> PeerViolation:
        if self._greeted:
            return PeerViolation(f"not multistream-select: {what}")
        return PeerViolation(
            f"the other end does not greet with {MULTISTREAM}: {what}; it may be no libp2p peer, "
            "or this its port for HTTP"
        )

    def _heard(self, text: str) -> None:
        raise NotImplementedError


class Dialler(_Side):
    """Side of the negotiation that proposes one protocol after another.

    The greeting and the first proposal are sent together, which saves a round trip. go-libp2p,
    nim-libp2p and js-libp2p accept the greeting and a proposal together (T3).
    """

    def __init__(self, protocols: Sequence[str], limits: Limits) -> None:
        super().__init__(limits)
        self._offered = tuple(protocols)
        self._wishes = list(protocols)
        self._out += line(MULTISTREAM) + line(self._wishes[0])

    def _heard(self, text: str) -> None:
        wish = self._wishes[0]
        if text == wish:
            self.protocol = wish
        elif text == _NOT_AVAILABLE:
            del self._wishes[0]
            if not self._wishes:
                raise ProtocolNotSupported(self._offered)
            self._out += line(self._wishes[0])
        else:
            raise PeerViolation(f"asked for protocol {wish!r}, but the peer answered {text[:60]!r}")


class Listener(_Side):
    """Side of the negotiation that accepts or refuses the proposed protocols."""

    def __init__(self, supports: Callable[[str], bool], limits: Limits) -> None:
        super().__init__(limits)
        self._supports = supports
        self._lines_left = limits.multistream_lines
        self._max_lines = limits.multistream_lines
        self._out += line(MULTISTREAM)

    def _heard(self, text: str) -> None:
        self._lines_left -= 1
        if self._supports(text):
            self.protocol = text
            self._out += line(text)
        elif self._lines_left:
            self._out += line(_NOT_AVAILABLE)
        else:
            raise LimitExceeded("multistream_lines", self._max_lines, "one more wish")
