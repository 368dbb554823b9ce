"""Connection over a byte stream, with one task each for reading, writing and deadlines.

Only the writing task sends on the socket. If both peers sent from their reading tasks, they would
wait for each other on full sockets (T19). If a sending call were cancelled, it would leave half a
frame behind.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

import anyio
from anyio.abc import ByteStream, TaskGroup
from anyio.lowlevel import checkpoint

from ..budget import TURN
from ..connection import (
    Connected,
    Connection,
    GoneAway,
    Received,
    RemoteEnded,
    StreamAgreed,
    StreamReset,
    StreamWritable,
)
from ..errors import ConnectionClosed, Libp2pError, LimitExceeded, PeerViolation, StreamClosed
from ..keys import PeerId
from .framing import Framing
from .inlet import Inlet, MessageSink
from .sockets import pump
from .stream import Stream

__all__ = ["Handler", "Link", "now_ms"]

Handler = Callable[[Stream], Awaitable[None]]
"""Function that serves a stream that the peer opened. The stream ends when the function returns."""

PIECE_BYTES: Final = 16 * 1024
"""Maximum size of one write (bytes). The size is small, because even a slow peer must read it
within `write_ms`."""
LINGER_S: Final = 10.0
"""Time (s) for which a served stream waits for the peer's end before it is reset."""

_SOCKET_FAILURES: Final = (
    anyio.EndOfStream,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    ssl.SSLError,  # T8: closing TLS is not orderly everywhere
    OSError,
)


def now_ms() -> int:
    """Return the time of the event loop (ms), even inside a callback of asyncio's loop. Tests
    replace this function."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return int(anyio.current_time() * 1000)
    return int(loop.time() * 1000)


class Signal:
    """Reusable wake-up signal of one task. An event of anyio can be used only once, and costs
    more."""

    def __init__(self) -> None:
        self._is_set = False
        self._event: anyio.Event | None = None

    def set(self) -> None:
        """Wake the task now, or when it next calls `wait`."""
        self._is_set = True
        if self._event is not None:
            self._event.set()

    async def wait(self) -> None:
        """Return at the next `set`, or at once if `set` was called since the last return."""
        if not self._is_set:
            self._event = anyio.Event()
            try:
                await self._event.wait()
            finally:
                self._event = None
        self._is_set = False


class Link:
    """Connection to a peer, whose task is the method `run`."""

    def __init__(
        self,
        pipe: ByteStream,
        connection: Connection,
        framing: Framing,
        handlers: Mapping[str, Handler | MessageSink],
    ) -> None:
        self.connection = connection
        """The state machine; `Stream` shares it."""
        self.failure: Libp2pError | None = None
        """Why the connection is over; None while it lives."""
        self.closed = anyio.Event()
        """Set when the connection is over and its socket closed."""
        self._pipe = pipe
        self._framing = framing
        self._handlers = handlers
        self._streams: dict[int, Stream | Inlet] = {}
        self._tasks: TaskGroup | None = None
        self._ready = anyio.Event()
        self._wake = Signal()
        self._is_behind = False
        """True if the last turn ended before `connection` was through with its bytes."""
        self._resumed: list[Callable[[], None]] = []
        """Inlets that have messages left for the next turn."""
        self._writing_since_ms: int | None = None
        """When the socket got the bytes that it has not taken; None where there are none."""
        self._written: anyio.Event | None = None
        """Set after the next write; None while no task waits for it."""
        self._sooner = anyio.Event()
        self._next_look_ms = 0

    @property
    def is_open(self) -> bool:
        return self.failure is None

    @property
    def is_ready(self) -> bool:
        """True if streams can be opened."""
        return self._ready.is_set() and self.failure is None

    @property
    def peer_id(self) -> PeerId:
        """Peer id with a proven identity."""
        assert self.connection.remote is not None, "known once the link is `ready`"
        return self.connection.remote.peer_id

    async def ready(self) -> None:
        """Wait until streams can be opened.

        Raises:
            ConnectionClosed: the handshake failed, or the socket is closed.
        """
        await self._ready.wait()
        self._raise_failure()

    def open(self, protocols: Sequence[str]) -> Stream:
        """Open a stream that speaks the first of `protocols` that the peer supports.

        With several protocols, wait for `agreed` before you send.

        Raises:
            ConnectionClosed: the connection is over.
        """
        self._raise_failure()
        stream_id = self.connection.open_stream(protocols, now_ms())
        stream = self._streams[stream_id] = Stream(self, stream_id)
        self._look_again()
        self.wake_writer()
        return stream

    def close(self, reason: Libp2pError | None = None) -> None:
        """End the connection now, with a reason. The task of the link closes the socket."""
        if self.failure is None:
            self.failure = reason or ConnectionClosed("this side closed the connection")
        if self._tasks is not None:
            self._tasks.cancel_scope.cancel()

    async def flush(self) -> None:
        """Wait until the socket has accepted everything sent so far.

        Raises:
            ConnectionClosed: the connection is over.
        """
        self._raise_failure()
        if self._written is None:
            self._written = anyio.Event()
        written = self._written
        self._wake.set()
        await written.wait()
        self._raise_failure()

    # What streams need

    def charge(self, price: int, what: str) -> None:
        """Charge the price of a peer's action to the budget of the connection.

        Raises:
            LimitExceeded: it may not send as much; the connection is closed.
        """
        try:
            self.connection.budget.charge(price, what)
        except LimitExceeded as error:
            self.close(error)
            raise

    def resume(self, go_on: Callable[[], None]) -> None:
        """Schedule a function of an inlet for the next turn."""
        self._resumed.append(go_on)

    def wake_writer(self) -> None:
        """Wake the writing task, which looks for bytes to send."""
        self._wake.set()

    def consumed(self, stream_id: int, size_bytes: int) -> None:
        """Give the peer credit for received bytes that were read."""
        self.connection.consumed(stream_id, size_bytes)
        if self.connection.has_data_to_send:
            self._wake.set()

    def forget(self, stream_id: int) -> None:
        """Reset a stream that is not used any more. If the stream is over, the call does
        nothing."""
        self._streams.pop(stream_id, None)
        self.connection.reset(stream_id)
        if self.connection.has_data_to_send:
            self._wake.set()

    # Tasks

    async def run(self) -> None:
        """Serve the connection until it ends. No action of the peer makes `run` raise an error."""
        try:
            async with anyio.create_task_group() as self._tasks:
                for task in (self._read, self._write, self._watch_deadlines):
                    self._tasks.start_soon(self._until_failure, task)
                if self.failure is not None:  # closed before it began
                    self._tasks.cancel_scope.cancel()
        finally:
            self.close()
            assert self.failure is not None
            self.failure.__traceback__ = None  # its frames have the peer's bytes
            self._fail_all()
            self.connection.close()
            with anyio.CancelScope(shield=True):
                await anyio.aclose_forcefully(self._pipe)
            self.closed.set()

    async def _until_failure(self, task: Callable[[], Awaitable[None]]) -> None:
        try:
            await task()
        except Libp2pError as error:
            self.close(error)
        except _SOCKET_FAILURES as error:
            self.close(ConnectionClosed(f"the socket is closed ({type(error).__name__})"))

    async def _read(self) -> None:
        while self._take(b""):  # frames behind the upgrade (T2)
            await checkpoint()
        await pump(self._pipe, self._take)

    def _take(self, data: bytes) -> bool:
        """Handle what came, as far as one turn goes; return whether more is left: see `pump`."""
        connection, framing = self.connection, self._framing
        budget, cost, received = connection.budget, 0, b""
        if data or not self._is_behind:
            received = framing.receive(data)
            cost = framing.cost
        connection.receive(received, now_ms())
        self._is_behind = budget.is_spent
        if cost:
            budget.charge(cost, "WebSocket frames")
        self._take_events()
        resumed, self._resumed = self._resumed, []
        for go_on in resumed:
            go_on()
        if connection.has_data_to_send or framing.has_data_to_send:
            self._wake.set()
        return budget.is_spent or framing.cost >= TURN

    async def _write(self) -> None:
        self._wake.set()  # the handshake
        while True:
            await self._wake.wait()
            written, self._written = self._written, None
            try:
                data = self._framing.send(self.connection.data_to_send())
                for begin in range(0, len(data), PIECE_BYTES):
                    self._writing_since_ms = now_ms()
                    self._look_again()
                    await self._pipe.send(data[begin : begin + PIECE_BYTES])
                self._writing_since_ms = None
            finally:
                if written is not None:
                    written.set()

    async def _watch_deadlines(self) -> None:
        while True:
            self._next_look_ms = self._next_deadline_ms
            delay_ms = self._next_look_ms - now_ms()
            if delay_ms <= 0:
                self._end_if_stuck()
                self.connection.on_deadline(now_ms())
                self._take_events()
                self._wake.set()
                continue
            with anyio.move_on_after(delay_ms / 1000):
                await self._sooner.wait()
            self._sooner = anyio.Event()

    @property
    def _next_deadline_ms(self) -> int:
        due_ms = self.connection.next_deadline_ms
        if self._writing_since_ms is None:
            return due_ms
        return min(due_ms, self._writing_since_ms + self.connection.limits.write_ms)

    def _end_if_stuck(self) -> None:
        write_ms, since_ms = self.connection.limits.write_ms, self._writing_since_ms
        if since_ms is not None and now_ms() >= since_ms + write_ms:
            raise PeerViolation(
                f"the socket took less than {PIECE_BYTES} bytes in {write_ms} ms (`write_ms`)"
            )

    def _look_again(self) -> None:
        """Wake the watch if something is due before it would look."""
        if self._next_deadline_ms < self._next_look_ms:
            self._sooner.set()

    def _take_events(self) -> None:
        while (event := self.connection.next_event()) is not None:
            match event:
                case Received(stream_id, data):
                    if (stream := self._streams.get(stream_id)) is not None:
                        stream.take(data)
                    else:
                        self.connection.consumed(stream_id, len(data))
                case StreamAgreed(stream_id, protocol, by_peer):
                    if by_peer:
                        self._serve(stream_id, protocol)
                    elif (stream := self._streams.get(stream_id)) is not None:
                        stream.take_credit(protocol)
                case RemoteEnded(stream_id):
                    if (stream := self._streams.get(stream_id)) is not None:
                        stream.take_end()
                case StreamWritable(stream_id):
                    if (stream := self._streams.get(stream_id)) is not None:
                        stream.take_credit()
                case StreamReset(stream_id, reason):
                    if (stream := self._streams.pop(stream_id, None)) is not None:
                        stream.fail(StreamClosed(reason))
                        if isinstance(stream, Stream) and stream.serving is not None:
                            stream.serving.cancel()
                case Connected():
                    self._ready.set()
                case GoneAway():
                    pass  # streams that are open go on
        self._look_again()

    def _serve(self, stream_id: int, protocol: str) -> None:
        handler = self._handlers[protocol]
        if isinstance(handler, MessageSink):
            self._streams[stream_id] = Inlet(self, stream_id, handler)
            return
        assert self._tasks is not None
        stream = self._streams[stream_id] = Stream(self, stream_id, protocol)
        stream.serving = anyio.CancelScope()
        self._tasks.start_soon(self._handle, stream, stream.serving, handler)

    async def _handle(self, stream: Stream, serving: anyio.CancelScope, handler: Handler) -> None:
        """Serve a stream until it ends. If the peer resets it, nothing waits for it any longer."""
        with serving:
            async with stream:
                try:
                    await handler(stream)
                    stream.end()
                    with anyio.move_on_after(LINGER_S):
                        while await stream.receive():
                            pass
                except Libp2pError:
                    pass  # the peer abandoned its stream (T10), or sent what it may not

    def _raise_failure(self) -> None:
        if self.failure is not None:
            raise ConnectionClosed(str(self.failure)) from self.failure

    def _fail_all(self) -> None:
        for stream in self._streams.values():
            stream.fail(ConnectionClosed(str(self.failure)))
        self._streams.clear()
        self._ready.set()
        if self._written is not None:
            self._written.set()
