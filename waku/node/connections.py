"""Limits of the HTTP server for the number of connections, and the time for a request.

uvicorn waits forever for the rest of a request, and accepts connections without a limit. Without
these limits, 1,500 incomplete requests made a node unreachable.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from http import HTTPStatus
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from waku.node.open_files import files_allowed

if TYPE_CHECKING:
    from waku.node.options import NodeOptions

__all__ = ["HttpConnections"]

TOO_LONG: Final = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
REPORT_INTERVAL_S: Final = 60.0
"""Minimum interval (s) between two log lines about closed connections."""

_log = logging.getLogger("waku.node.server")


class HttpConnections:
    """Connections of one server, in order of their waiting time.

    If there are too many, the connection that waited longest for its first request is closed. If
    all connections had a request, the connection that waited longest since its last is closed. A
    connection with a running request stays open. If all connections have a running request, the
    newest connection is refused.
    """

    def __init__(self, options: NodeOptions) -> None:
        self.limit: Final = min(options.max_connections, files_allowed())
        self.timeout_s: Final = options.request_timeout_s
        self._open = 0
        self._new: dict[HttpConnection, None] = {}
        self._idle: dict[HttpConnection, None] = {}
        self._ended: dict[str, int] = {}
        self._reported_at_s: float | None = None

    def protocol(self, *arguments: Any, **named: Any) -> HttpConnection:
        """Return the protocol object of a new connection, for uvicorn."""
        return HttpConnection(self, *arguments, **named)

    def opened(self, connection: HttpConnection) -> None:
        """Count a new connection, and close another connection if there are too many."""
        self._open += 1
        if self._open > self.limit:
            next(chain(self._new, self._idle, (connection,))).end("too many connections")

    def closed(self, connection: HttpConnection) -> None:
        self._open -= 1
        self.works(connection)

    def waits(self, connection: HttpConnection, *, used: bool) -> None:
        """Note that a connection waits for its next request. `used` is True if the connection
        already had a request."""
        (self._idle if used else self._new)[connection] = None

    def works(self, connection: HttpConnection) -> None:
        """Note that a request of the connection is being answered."""
        self._new.pop(connection, None)
        self._idle.pop(connection, None)

    def note(self, reason: str, now_s: float) -> None:
        """Count a closed connection. At most one line a minute is logged."""
        self._ended[reason] = self._ended.get(reason, 0) + 1
        if self._reported_at_s is None or now_s - self._reported_at_s >= REPORT_INTERVAL_S:
            ended = ", ".join(f"{count} {why}" for why, count in self._ended.items())
            _log.warning("connections ended: %s", ended)
            self._ended.clear()
            self._reported_at_s = now_s


class HttpConnection(H11Protocol):
    """HTTP protocol of uvicorn with time limits for the head of a request and for reading an
    answer.

    While a request is handled, the time limits of the application apply.
    """

    def __init__(self, connections: HttpConnections, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.logger = _Quiet(self.logger, self._malformed)  # type: ignore[assignment]
        self._connections = connections
        self._timer: asyncio.TimerHandle | None = None
        self._unsent_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._connections.opened(self)
        if not transport.is_closing():
            self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._connections.closed(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        self._at_work()
        super().on_response_complete()
        self._watch()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that is not HTTP or whose head is too long (431), and close the
        connection."""
        error = sys.exception()
        if not isinstance(error, h11.RemoteProtocolError) or error.error_status_hint != TOO_LONG:
            return super().send_400_response(msg)
        headers = [(b"content-length", b"0"), (b"connection", b"close")]
        refusal = h11.Response(status_code=TOO_LONG, headers=headers, reason=TOO_LONG.phrase)
        self.transport.write(self.conn.send(refusal))
        self.transport.write(self.conn.send(h11.EndOfMessage()))
        self.transport.close()

    def end(self, reason: str) -> None:
        """Close the connection at once, without an answer."""
        self._connections.works(self)
        self._connections.note(reason, self.loop.time())
        self.transport.abort()

    def _watch(self) -> None:
        """Run the timer but for the time between the head of a request and its answer."""
        answered = self.cycle is not None and self.cycle.response_complete
        if self.conn.their_state is not h11.IDLE and not answered:
            self._at_work()
        elif self._timer is None:
            self._connections.waits(self, used=answered)
            self._start_timer()

    def _at_work(self) -> None:
        self._stop_timer()
        self._connections.works(self)

    def _start_timer(self) -> None:
        self._unsent_bytes = self.transport.get_write_buffer_size()
        self._timer = self.loop.call_later(self._connections.timeout_s, self._too_slow)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        unsent_bytes = self.transport.get_write_buffer_size()
        if 0 < unsent_bytes < self._unsent_bytes:
            self._start_timer()  # an answer is being taken, over a slow line
        else:
            self.end("too slow")

    def _malformed(self) -> None:
        self._connections.note("not HTTP", self.loop.time())


class _Quiet(logging.LoggerAdapter[logging.Logger]):
    """uvicorn's log without the warnings that callers can cause as often as they like."""

    def __init__(self, logger: logging.Logger, counted: Callable[[], None]) -> None:
        super().__init__(logger, {})
        self._counted = counted

    @property
    def level(self) -> int:
        return self.logger.level

    def warning(self, msg: object, *arguments: object, **named: Any) -> None:
        self._counted()
