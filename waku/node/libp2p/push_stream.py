"""Filter pushes to one peer, with a limited queue and the streams of the messages."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import anyio

from waku.libp2p import ConnectionClosed, PeerViolation, StreamClosed
from waku.libp2p.driver import Carrier, Stream
from waku.libp2p.varint import prefixed
from waku.node.envelope import Envelope
from waku.node.libp2p.options import ListenLimits
from waku.p2p.protocols import FILTER_PUSH
from waku.p2p.serving_codec import encode_push

__all__ = ["PushEncoder", "Pusher"]

END_WAIT_S: Final = 0.25
"""Time (s) after the first message in which the peer may end the stream, as go-waku does (T9)."""
BATCH_BYTES: Final = 64 * 1024
"""Maximum size of the messages in one write (bytes), if the peer reads several on one stream."""
UNREAD_STREAMS: Final = 16
"""Maximum number of open streams with a message that the peer has not read yet."""
ATTEMPTS: Final = 3
"""Number of refused streams in a row after which the peer no longer counts as a subscriber."""


class PushEncoder:
    """Cache that encodes each pushed message once for all peers."""

    def __init__(self) -> None:
        self._last: tuple[Envelope | None, bytes] = (None, b"")

    def encoded(self, envelope: Envelope) -> bytes:
        """Return the encoded message with its length prefix."""
        envelope_before, data = self._last
        if envelope_before is not envelope:
            data = prefixed(encode_push(envelope.pubsub_topic, envelope.message))
            self._last = envelope, data
        return data


class Pusher:
    """Task that pushes messages to one peer.

    nwaku and js-waku read all messages on one stream. go-waku reads one message and ends the
    stream, so each message to go-waku gets its own stream (T9).
    """

    def __init__(
        self,
        limits: ListenLimits,
        link: Callable[[], Carrier],
        encoder: PushEncoder,
        dropped: Callable[[], None],
    ) -> None:
        """Args:
        limits: bounds of the queue and of time.
        link: the peer's connection; raises `ConnectionClosed` where there is none.
        encoder: shared by all peers.
        dropped: called when there is no room, once until the queue is empty again.
        """
        self._limits = limits
        self._link = link
        self._encoder = encoder
        self._dropped = dropped
        self._queue: deque[bytes] = deque()
        self.queued_bytes = 0
        """Messages that wait."""
        self._wake = anyio.Event()
        self._stream: Stream | None = None
        """The stream of all messages; None until it is open, and where each has its own."""
        self._decided_s = 0.0
        """When the peer would have ended the stream."""
        self._one_by_one = False
        self._unread: deque[Stream] = deque()
        self._drops = False
        """True if messages were dropped since the queue was empty."""

    def put(self, envelope: Envelope) -> None:
        """Queue a message until the peer reads it. If the queue is full, the oldest message is
        dropped."""
        data = self._encoder.encoded(envelope)
        self._queue.append(data)
        self.queued_bytes += len(data)
        limits = self._limits
        while len(self._queue) > limits.push_messages or self.queued_bytes > limits.push_bytes:
            self.queued_bytes -= len(self._queue.popleft())
            if not self._drops:
                self._drops = True
                self._dropped()
        self._wake.set()

    async def run(self) -> None:
        """Push messages until the peer refuses them.

        Raises:
            ConnectionClosed: the peer has no connection any more.
            StreamClosed: it refuses every stream.
        """
        refused = 0
        try:
            while True:
                await self._wake.wait()
                self._wake = anyio.Event()
                while self._queue:
                    try:
                        with anyio.fail_after(self._limits.push_ms / 1000):
                            await self._push()
                        refused = 0
                    except StreamClosed:
                        self._forget_stream()
                        refused += 1
                        if refused == ATTEMPTS:
                            raise
                    except TimeoutError:
                        self._link().close(
                            PeerViolation(
                                f"took no pushed message for {self._limits.push_ms} ms (`push_ms`)"
                            )
                        )
                        raise ConnectionClosed("the peer read pushed messages too slowly") from None
                self._drops = False
        finally:
            self._forget_stream()
            while self._unread:
                self._unread.popleft().reset()

    async def _push(self) -> None:
        if self._stream is not None and self._stream.is_ended:
            self._forget_stream()
            self._one_by_one = True
        if self._one_by_one:
            await self._push_alone()
        elif self._stream is None:
            self._stream = self._link().open([FILTER_PUSH])
            self._decided_s = anyio.current_time() + END_WAIT_S
            await self._stream.send(self._take(1))
            await self._stream.agreed()  # otherwise a peer that refuses all would stay
        elif (left_s := self._decided_s - anyio.current_time()) <= 0:
            await self._stream.send(self._take(BATCH_BYTES))
        elif len(self._queue) == 1:
            await self._push_alone()  # at once: one more stream is as good to either kind
        else:
            with anyio.move_on_after(left_s):
                await self._stream.readable()

    async def _push_alone(self) -> None:
        while self._unread and (self._unread[0].is_ended or len(self._unread) >= UNREAD_STREAMS):
            with suppress(StreamClosed):
                await self._unread[0].readable()
            self._unread.popleft().reset()
        stream = self._link().open([FILTER_PUSH])
        self._unread.append(stream)
        await stream.send(self._take(1))
        stream.end()

    def _take(self, max_bytes: int) -> bytes:
        """The oldest message, and those behind it that fit."""
        taken = [self._queue.popleft()]
        size_bytes = len(taken[0])
        while self._queue and size_bytes + len(self._queue[0]) <= max_bytes:
            taken.append(self._queue.popleft())
            size_bytes += len(taken[-1])
        self.queued_bytes -= size_bytes
        return b"".join(taken)

    def _forget_stream(self) -> None:
        if self._stream is not None:
            self._stream.reset()
            self._stream = None
