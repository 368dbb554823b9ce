"""`ReliableChannel` without `async`, for scripts and notebooks: a thin layer over AnyIO's portal.

The channel runs in an event loop and a thread of its own; each call here waits for it. Channels
without a node share one, so that they meet.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

import anyio
from anyio.from_thread import BlockingPortal, BlockingPortalProvider, start_blocking_portal

from .channel import ReliableChannel, Request
from .engine.statistics import ChannelStatistics
from .errors import ChannelClosed
from .events import Event
from .runtime import EventReader, Follower
from .sds.log_entry import LogEntry

_SHARED_LOOP: Final = BlockingPortalProvider()
"""The event loop of all channels without a node, as long as there are any: they share a node, and a
node belongs to one loop."""


class BlockingReliableChannel:
    """A channel for code without an event loop. Use it in `with`; any thread may call.

        with BlockingReliableChannel(
            "http://127.0.0.1:8645", channel_id="ops", sender_id="script"
        ) as channel:
            channel.send(b"deploy done")
            for event in channel.events(timeout_s=10):
                print(event)

    Takes the arguments of `ReliableChannel`.
    """

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        self._channel = ReliableChannel(*arguments, **keywords)
        self._exit = ExitStack()
        self._portal: BlockingPortal | None = None

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            portal = start_blocking_portal() if self._channel.has_node else _SHARED_LOOP
            self._portal = stack.enter_context(portal)
            stack.enter_context(self._portal.wrap_async_context_manager(self._channel))
            self._exit = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._exit.close()
        self._portal = None

    def send(self, payload: bytes, *, idempotency_key: str | None = None) -> Request:
        """Accept a message for every participant; one for each `idempotency_key`.

        Raises:
            EmptyContent, ContentTooLong, OutgoingBufferFull, ChannelClosed: as
                `ReliableChannel.send`.
        """
        send = partial(self._channel.send, payload, idempotency_key=idempotency_key)
        return self._opened().call(send)

    def send_ephemeral(self, payload: bytes) -> str:
        """Send a message for which nothing is promised; return its message id.

        Raises:
            EmptyContent, ContentTooLong, ChannelClosed: as `ReliableChannel.send_ephemeral`.
        """
        return self._opened().call(self._channel.send_ephemeral, payload)

    def events(
        self, *, timeout_s: float | None = None, confirm: bool = True
    ) -> "BlockingEventReader":
        """Iterate over events; ends when nothing happened for `timeout_s`, or at close.

            with channel.events() as events:
                for event in events:
                    ...

        A plain `for event in channel.events()` does the same; `with` closes the reader also where
        you leave the loop early. Readers confirm and fall behind as `ReliableChannel.events` says.

        Raises:
            ChannelClosed: the channel is not open.
        """
        reader = self._opened().call(partial(self._channel.events, confirm=confirm))
        return BlockingEventReader(self._opened, reader, timeout_s)

    def follow(
        self, *, last: int | None = None, timeout_s: float | None = None
    ) -> "BlockingFollower":
        """Read the log, or its newest `last` entries, then live events, as
        `ReliableChannel.follow`. Use it in `with`.

        Raises:
            ChannelClosed: the channel is not open.
        """
        follower = self._opened().call(partial(self._channel.follow, last=last))
        return BlockingFollower(self._opened, follower, timeout_s)

    def confirm(self, event: Event) -> None:
        """Say that an event was handled, as `ReliableChannel.confirm`."""
        self._opened().call(self._channel.confirm, event)

    def log(self, *, last: int | None = None) -> Sequence[LogEntry]:
        """The channel's log, or its newest `last` entries, in order."""
        return self._opened().call(partial(self._channel.log, last=last))

    def log_digest(self) -> str:
        """Hex sha256 of the log."""
        return self._opened().call(self._channel.log_digest)

    def statistics(self) -> ChannelStatistics:
        """A snapshot of counters and buffers."""
        return self._opened().call(self._channel.statistics)

    def _opened(self) -> BlockingPortal:
        if self._portal is None:
            raise ChannelClosed("the channel is not open: use it inside `with`")
        return self._portal


class BlockingEventReader(Iterator[Event]):
    """Events of a channel for code without an event loop; as `EventReader`."""

    def __init__(
        self,
        opened: Callable[[], BlockingPortal],
        events: EventReader | Follower,
        timeout_s: float | None,
    ) -> None:
        self._opened = opened
        self._events = events
        self._timeout_s = timeout_s

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __next__(self) -> Event:
        """Confirm the event before, and wait for the next one.

        Raises:
            ChannelClosed: the channel is not open.
        """
        if (event := self._opened().call(self._following)) is None:
            raise StopIteration
        return event

    def close(self) -> None:
        """End the reader: the channel keeps no events for it."""
        with suppress(ChannelClosed):
            self._opened().call(self._events.aclose)

    async def _following(self) -> Event | None:
        with anyio.move_on_after(self._timeout_s):
            return await anext(self._events, None)
        return None


class BlockingFollower(BlockingEventReader):
    """A snapshot of the log, and the events after it; as `Follower`."""

    _events: Follower

    def __enter__(self) -> Self:
        """Make the snapshot."""
        self._opened().call(self._events.__aenter__)
        return self

    @property
    def snapshot(self) -> Sequence[LogEntry]:
        """Own and delivered messages in the order of the log, each with its whole payload."""
        return self._events.snapshot
