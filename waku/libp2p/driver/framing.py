"""Framing between the socket and libp2p, which is WebSocket or empty.

This module does no I/O. The reader of a link removes frames, and its writer adds frames. Pongs and
the closing frame are sent by the writer, like all other data (T8).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Protocol

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidURI
from websockets.frames import Frame, Opcode
from websockets.http11 import Request, Response
from websockets.protocol import SEND_EOF, State
from websockets.server import ServerProtocol
from websockets.typing import Origin
from websockets.uri import parse_uri

from ..budget import NONSENSE, TURN
from ..errors import ConnectionClosed, InvalidInput, LimitExceeded, PeerViolation

__all__ = ["Framing", "Plain", "WebSocketClient", "WebSocketServer"]

PIECE_BYTES: Final = 64 * 1024
"""Maximum size of a sent WebSocket message (bytes, T7)."""
MAX_FRAME_BYTES: Final = 1024 * 1024
"""Maximum size of a received WebSocket message (bytes). go-libp2p and js-libp2p send smaller
messages."""

CONTROL_BYTES: Final = 64 * 1024
"""Maximum size of a peer's control frames (bytes) while it does not read the answers."""
FRAME: Final = 2
"""Price of a WebSocket frame without its content (tokens)."""
HEAD_END: Final = b"\r\n\r\n"
_CONTROL, _MASKED, _LENGTH = 0x08, 0x80, 0x7F
_LONGER: Final = {126: 2, 127: 8}
"""Bytes of the length of frames above 125 bytes."""


class Framing(Protocol):
    """Converter between bytes of the socket and bytes of libp2p."""

    cost: int
    """Price of the frames that the last `receive` read (tokens). The price is `TURN` or more if
    frames are left."""

    @property
    def has_data_to_send(self) -> bool:
        """True if `send` returns bytes even when it is given no data."""

    def receive(self, data: bytes) -> bytes:
        """Return the content of the frames in the peer's bytes.

        Raises:
            PeerViolation: the peer broke the framing's rules.
            ConnectionClosed: the peer closed it.
        """

    def send(self, data: bytes) -> bytes:
        """Return the bytes to write to the socket for the given data."""


class Plain:
    cost = 0
    has_data_to_send = False

    def receive(self, data: bytes) -> bytes:
        """Return the received bytes unchanged."""
        return data

    def send(self, data: bytes) -> bytes:
        """Return the data to send unchanged."""
        return data


class _WebSocket:
    """Frames; `opened` once the HTTP part is over."""

    def __init__(self, protocol: ClientProtocol | ServerProtocol) -> None:
        self.opened = False
        self.cost = 0
        self._protocol = protocol
        self._unread = bytearray()
        self._missing = 0
        """Bytes that still belong to the last frame that was taken off `_unread`."""
        self._control_bytes = 0
        """Control frames since the last answer was taken."""
        self._early = b""
        """Frames that came in one read with the answer (T2)."""

    @property
    def has_data_to_send(self) -> bool:
        """True if a pong, a closing frame or a part of the upgrade waits."""
        return bool(self._protocol.writes)

    def receive(self, data: bytes) -> bytes:
        """Return the payload of the frames of one turn; see `Framing`."""
        self._unread += data
        if piece := self._frames() if self.opened else self._head():
            self._protocol.receive_data(piece)
        received = [self._early]
        self._early = b""
        self._raise_failure()  # an upgrade with garbage behind it can no longer be answered
        for event in self._protocol.events_received():
            if isinstance(event, Frame):
                received.append(_payload(event))
            else:
                self._http(event)
        self._raise_failure()
        payload = b"".join(received)
        if self._protocol.state is not State.OPEN and self.opened and not payload:
            raise ConnectionClosed("the peer closed the WebSocket")
        return payload

    def _head(self) -> bytes:
        """Take off what belongs to the HTTP part."""
        end = self._unread.find(HEAD_END)
        size = end + len(HEAD_END) if end >= 0 else max(0, len(self._unread) + 1 - len(HEAD_END))
        return self._cut(size)

    def _frames(self) -> bytes:
        """Take off the frames of one turn, which are cheap to count and dear to read."""
        unread, size = self._unread, len(self._unread)
        self.cost = 0
        end = min(self._missing, size)
        self._missing -= end
        while not self._missing and self.cost < TURN and size - end >= 2:
            kind, length = unread[end], unread[end + 1] & _LENGTH
            longer = _LONGER.get(length, 0)
            begin = end + 2 + longer + 4 * bool(unread[end + 1] & _MASKED)
            if begin > size:
                break
            if longer:
                length = int.from_bytes(unread[end + 2 : end + 2 + longer], "big")
            if kind & _CONTROL:
                self._control_bytes += begin + length - end
            self.cost += NONSENSE if kind & _CONTROL else FRAME
            end = min(size, begin + length)
            self._missing = begin + length - end
        if self._control_bytes > CONTROL_BYTES:
            raise LimitExceeded("control_bytes", CONTROL_BYTES, "more, and reads no answers")
        return self._cut(end)

    def _cut(self, size: int) -> bytes:
        piece = bytes(self._unread[:size])
        del self._unread[:size]
        return piece

    def _raise_failure(self) -> None:
        if self._protocol.handshake_exc is not None:
            raise PeerViolation(
                f"the peer did not open a WebSocket: {self._protocol.handshake_exc}"
            )
        if self._protocol.parser_exc is not None:
            raise PeerViolation(f"broken WebSocket frames: {self._protocol.parser_exc}")

    def upgrade(self, data: bytes) -> None:
        """Take bytes of the HTTP part; frames behind it are kept for the first `receive`.

        Raises:
            PeerViolation: the peer does not speak WebSocket, or refuses.
            ConnectionClosed: it closed the WebSocket at once.
        """
        self._early = self.receive(data)

    def send(self, data: bytes) -> bytes:
        """Return frames with `data`, and what waits."""
        self._control_bytes = 0
        if self._protocol.state is State.OPEN:
            for start in range(0, len(data), PIECE_BYTES):
                self._protocol.send_binary(data[start : start + PIECE_BYTES])
        return b"".join(part for part in self._protocol.data_to_send() if part != SEND_EOF)

    def _http(self, event: Request | Response) -> None:
        if isinstance(self._protocol, ServerProtocol) and isinstance(event, Request):
            self._protocol.send_response(self._protocol.accept(event))
        self.opened = self._protocol.state is State.OPEN


class WebSocketClient(_WebSocket):
    def __init__(self, host: str, port: int, *, secure: bool) -> None:
        """Ask for an upgrade; `send(b"")` returns the request.

        Raises:
            InvalidInput: the host cannot stand in an address.
        """
        name = f"[{host}]" if ":" in host else host
        try:
            uri = parse_uri(f"{'wss' if secure else 'ws'}://{name}:{port}/")
        except InvalidURI as error:
            raise InvalidInput(str(error)) from error
        protocol = ClientProtocol(uri, max_size=MAX_FRAME_BYTES)
        protocol.send_request(protocol.connect())
        super().__init__(protocol)


class WebSocketServer(_WebSocket):
    """WebSocket framing of the listening side. The server accepts any path, as go-libp2p does."""

    def __init__(self, origins: Collection[str] = ()) -> None:
        """Args:
        origins: web pages that may connect, beside programs, which name none; any if empty.
        """
        allowed = [Origin(one) for one in origins]
        super().__init__(
            ServerProtocol(origins=[None, *allowed] if allowed else None, max_size=MAX_FRAME_BYTES)
        )


def _payload(frame: Frame) -> bytes:
    if frame.opcode in (Opcode.BINARY, Opcode.CONT):
        return bytes(frame.data)
    if frame.opcode is Opcode.TEXT:
        raise PeerViolation("the peer sent a WebSocket text message; libp2p uses binary messages")
    return b""
