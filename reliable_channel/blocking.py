"""`ReliableChannel` without `async`, for scripts and notebooks, by means of AnyIO's portal.

All channels of a process run in one event loop, in another thread. Each call of this API waits for
the event loop. The thread does not keep the process alive, and open channels are closed when the
program ends.
"""

import atexit
import logging
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Final, Generic, Protocol, Self, TypeVar, Unpack

import anyio
from anyio.from_thread import BlockingPortal

from ._contracts.encryption import Encryption
from ._contracts.signing import Signing
from .channel import ReliableChannel
from .conversation import Answer, Codec, Message, Participant, Question, Request, TypedChannel
from .conversation.typed import Questions, Wait
from .engine.rate_limit import Budget
from .engine.statistics import ChannelStatistics
from .errors import ChannelClosed
from .events import AnyEvent
from .explanation import Explanation
from .health import ChannelHealth
from .options import ChannelOptions, OptionValues, PresetName
from .runtime import Follower, SyncStatus
from .sds.message import LogEntry
from .state import StateStore
from .transport import Transport

LOGGER: Final = logging.getLogger("reliable_channel")
T = TypeVar("T")
OtherT = TypeVar("OtherT")
T_co = TypeVar("T_co", covariant=True)


class _Loop:
    """The event loop of this process, and the channels that are open in it."""

    def __init__(self) -> None:
        self.channels: set[BlockingReliableChannel] = set()
        self._portal: BlockingPortal | None = None
        self._guard = Lock()

    def portal(self) -> BlockingPortal:
        """The way into the loop, which begins with the first channel."""
        with self._guard:
            if self._portal is None:
                begun: Future[BlockingPortal] = Future()
                run = partial(anyio.run, _live, begun)
                Thread(target=run, name="reliable_channel.blocking", daemon=True).start()
                self._portal = begun.result()
            return self._portal


_loop = _Loop()


async def _live(begun: "Future[BlockingPortal]") -> None:
    async with BlockingPortal() as portal:
        begun.set_result(portal)
        await portal.sleep_until_stopped()


def _close_left_open() -> None:
    for channel in tuple(_loop.channels):
        LOGGER.warning(
            "channel %r was left open, and is closed at the end of the program; use it in `with`, "
            "or call close()",
            channel.channel_id,
        )
        with suppress(Exception):  # the program is over: nothing is there to catch it
            channel.close()


def _begin_anew() -> None:
    """Forget the loop in a process that was forked, which has no thread to run it."""
    global _loop
    _loop = _Loop()


atexit.register(_close_left_open)
if sys.platform != "win32":  # which does not fork
    os.register_at_fork(after_in_child=_begin_anew)


class BlockingRequest:
    """Blocking form of `Request`, the request of one `send`."""

    def __init__(self, opened: Callable[[], BlockingPortal], request: Request) -> None:
        self._opened = opened
        self.request: Final = request
        """What `ReliableChannel` returned."""
        self.request_id: Final = request.request_id
        self.message_ids: Final = request.message_ids
        self.message_id: Final = request.message_id

    def acknowledged(self, *, within_s: float | None = None) -> None:
        """Wait until another participant is known to have the message.

        Raises:
            NotAcknowledged, ChannelClosed: as `Request.acknowledged`.
        """
        self._opened().call(partial(self.request.acknowledged, within_s=within_s))


class BlockingQuestion(Generic[T]):
    """Blocking form of `Question`, a question of another participant."""

    def __init__(self, opened: Callable[[], BlockingPortal], question: Question[T]) -> None:
        self._opened = opened
        self._question = question
        self.content: Final = question.content
        self.message_id: Final = question.message_id
        self.sender_id: Final = question.sender_id
        self.event: Final = question.event

    def answer(self, content: T) -> BlockingRequest:
        """Send the answer, once for each question, and confirm the question.

        Raises:
            ContentTooLong, OutgoingBufferFull, ChannelClosed, StateError: as `Question.answer`.
        """
        request = self._opened().call(self._question.answer, content)
        return BlockingRequest(self._opened, request)

    def ignore(self) -> None:
        """Confirm the question without an answer.

        Raises:
            ChannelClosed: the channel is not open.
        """
        self._opened().call(self._question.ignore)


class BlockingTypedChannel(Generic[T]):
    """Blocking form of `TypedChannel`, whose payloads are values of one type."""

    def __init__(self, opened: Callable[[], BlockingPortal], channel: TypedChannel[T]) -> None:
        self._opened = opened
        self._verbs = channel

    def send(
        self,
        payload: T,
        *,
        idempotency_key: str | None = None,
        wait: Wait | None = None,
        within_s: float | None = None,
    ) -> BlockingRequest:
        """Accept a message for every participant, once for each `idempotency_key`.

        Raises:
            EmptyContent, ContentTooLong, OutgoingBufferFull, NotAcknowledged, ChannelClosed: as
                `ReliableChannel.send`.
        """
        send = partial(
            self._verbs.send,
            payload,
            idempotency_key=idempotency_key,
            wait=wait,
            within_s=within_s,
        )
        return BlockingRequest(self._opened, self._opened().call(send))

    def messages(
        self, *, timeout_s: float | None = None, confirm: bool = True
    ) -> "BlockingReader[Message[T]]":
        """Iterate over messages, until no message came for `timeout_s` (s), or the channel closes.

        Raises:
            ChannelClosed: the channel is not open.
        """
        reader = self._opened().call(partial(self._verbs.messages, confirm=confirm))
        return BlockingReader(self._opened, reader, timeout_s)

    def ask(self, question: T, *, within_s: float, idempotency_key: str | None = None) -> Answer[T]:
        """Ask all participants, and return the first answer within `within_s` (s).

        Raises:
            NoAnswer, ContentTooLong, OutgoingBufferFull, ChannelClosed, StateError: as
                `ReliableChannel.ask`.
        """
        ask = partial(self._verbs.ask, question, within_s=within_s, idempotency_key=idempotency_key)
        return self._opened().call(ask)

    def ask_all(
        self, question: T, *, within_s: float, idempotency_key: str | None = None
    ) -> "BlockingReader[Answer[T]]":
        """Ask all participants, and iterate over their answers for `within_s` (s).

        Raises:
            ChannelClosed: the channel is not open.
        """
        ask = partial(
            self._verbs.ask_all, question, within_s=within_s, idempotency_key=idempotency_key
        )
        return BlockingReader(self._opened, self._opened().call(ask), None)

    def questions(self, *, timeout_s: float | None = None) -> "BlockingQuestions[T]":
        """Iterate over questions, until no question came for `timeout_s` (s), or the channel
        closes.

        Raises:
            ChannelClosed: the channel is not open.
        """
        reader = self._opened().call(self._verbs.questions)
        return BlockingQuestions(self._opened, reader, timeout_s)

    def typed(self, codec: Codec[OtherT]) -> "BlockingTypedChannel[OtherT]":
        """Return a channel for values of one type, like `ReliableChannel.typed`."""
        return BlockingTypedChannel(self._opened, self._verbs.typed(codec))


class BlockingReliableChannel(BlockingTypedChannel[bytes]):
    """Channel for code without an event loop. Use the channel in a `with` block. Any thread may
    call its methods.

        with BlockingReliableChannel(
            "http://127.0.0.1:8645", channel_id="ops", sender_id="script"
        ) as channel:
            channel.send(b"deploy done")
            for event in channel.events(timeout_s=10):
                print(event)

    The class has the arguments and methods of `ReliableChannel`, with blocking iterators and
    `close`.
    """

    def __init__(
        self,
        node: str | Sequence[str] | None = None,
        *,
        channel_id: str,
        sender_id: str,
        transport: Transport | None = None,
        encryption: Encryption | str | None = None,
        signing: Signing | None = None,
        sync: str = "sds",
        state: str | StateStore | None = None,
        journal: str | Path | None = None,
        plugins: Sequence[object] = (),
        now_ns: Callable[[], int] = time.time_ns,
        preset: PresetName = "documented",
        options: ChannelOptions | None = None,
        **values: Unpack[OptionValues],
    ) -> None:
        self._channel = ReliableChannel(
            node,
            channel_id=channel_id,
            sender_id=sender_id,
            transport=transport,
            encryption=encryption,
            signing=signing,
            sync=sync,
            state=state,
            journal=journal,
            plugins=plugins,
            now_ns=now_ns,
            preset=preset,
            options=options,
            **values,
        )
        super().__init__(self._opened, self._channel)
        self.channel_id = self._channel.channel_id
        self.sender_id = self._channel.sender_id
        self.content_topic = self._channel.content_topic
        self.options = self._channel.options
        self.seed = self._channel.seed
        self.has_node = self._channel.has_node
        self.invited_node = self._channel.invited_node

    @classmethod
    def from_config(cls, file: str | Path | None = None, **arguments: Any) -> Self:
        """Return a channel whose arguments come from the environment and a TOML file.

        Raises:
            SettingsError, TypeError, PluginError: as `ReliableChannel.from_config`.
        """
        from .config import settings_named, with_config

        with settings_named():
            return cls(**with_config(file, arguments))

    @classmethod
    def join(cls, invitation: str, *, sender_id: str, **arguments: Any) -> Self:
        """Return the channel that the text of an invitation describes.

        Raises:
            ValueError, PluginError: as `ReliableChannel.join`.
        """
        from .config import nested
        from .conversation.invitation import joined

        return cls(**nested(joined(invitation, sender_id, arguments)))

    def open(self) -> None:
        """Connect to the network, subscribe and start the channel. The `with` block calls `open`.

        Raises:
            ChannelUnavailable, StateError: as `ReliableChannel.open`.
        """
        _loop.portal().call(self._channel.open)
        _loop.channels.add(self)

    def close(self) -> None:
        """Stop the channel, like `ReliableChannel.aclose`. A second call of `close` does
        nothing."""
        if self in _loop.channels:
            _loop.channels.discard(self)
            _loop.portal().call(self._channel.aclose)

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def cancel(self, request: BlockingRequest) -> bool:
        """Stop publishing and retrying a request, and return True if it was pending.

        Raises:
            ChannelClosed: the channel is not open.
        """
        return self._opened().call(self._channel.cancel, request.request)

    def send_ephemeral(self, payload: bytes) -> str:
        """Send a message once without repair, and return its id.

        Raises:
            EmptyContent, ContentTooLong, ChannelClosed: as `ReliableChannel.send_ephemeral`.
        """
        return self._opened().call(self._channel.send_ephemeral, payload)

    def events(
        self, *, timeout_s: float | None = None, confirm: bool = True
    ) -> "BlockingReader[AnyEvent]":
        """Iterate over events, until no event came for `timeout_s` (s), or the channel closes.

            with channel.events() as events:
                for event in events:
                    ...

        The loop `for event in channel.events()` needs no `with` block. In a `with` block, the
        reader is closed even if you leave the loop early. Confirmation and slow readers work as in
        `ReliableChannel.events`.

        Raises:
            ChannelClosed: the channel is not open.
        """
        reader = self._opened().call(partial(self._channel.events, confirm=confirm))
        return BlockingReader(self._opened, reader, timeout_s)

    def follow(
        self, *, last: int | None = None, own: bool = False, timeout_s: float | None = None
    ) -> "BlockingFollower":
        """Read the log, or its newest `last` entries, then live events, like
        `ReliableChannel.follow`. Use the follower in a `with` block.

        Raises:
            ChannelClosed: the channel is not open.
        """
        follower = self._opened().call(partial(self._channel.follow, last=last, own=own))
        return BlockingFollower(self._opened, follower, timeout_s)

    def confirm(self, event: AnyEvent) -> None:
        """Confirm that an event was handled, like `ReliableChannel.confirm`."""
        self._opened().call(self._channel.confirm, event)

    def explain(self, message_id: str) -> Explanation:
        """Return the history of a message and the reason for its delay, like
        `ReliableChannel.explain`."""
        return self._opened().call(self._channel.explain, message_id)

    def explain_budget(self) -> Budget:
        """Return the state of the rate limit, like `ReliableChannel.explain_budget`."""
        return self._opened().call(self._channel.explain_budget)

    @property
    def sync_status(self) -> SyncStatus:
        """Sync status of this participant, which tells how complete its log is."""
        return self._opened().call(lambda: self._channel.sync_status)

    def sync_status_changes(
        self, *, timeout_s: float | None = None
    ) -> "BlockingIterator[SyncStatus]":
        """Iterate over the sync status and its changes, until no change came for `timeout_s` (s).

        Raises:
            ChannelClosed: the channel is not open.
        """
        changes = self._opened().call(self._channel.sync_status_changes)
        return BlockingIterator(self._opened, changes, timeout_s)

    def log(self, *, last: int | None = None) -> Sequence[LogEntry]:
        """Return the channel's log, or its newest `last` entries, in order."""
        return self._opened().call(partial(self._channel.log, last=last))

    def log_digest(self) -> str:
        """Hex sha256 of the log."""
        return self._opened().call(self._channel.log_digest)

    def statistics(self) -> ChannelStatistics:
        """Return the current counters and the sizes of the buffers."""
        return self._opened().call(self._channel.statistics)

    def participants(self) -> tuple[Participant, ...]:
        """Return the other participants that were heard, like `ReliableChannel.participants`."""
        return self._opened().call(self._channel.participants)

    def invite(self, *, key: bool = False, node: str | Sequence[str] | None = None) -> str:
        """Return a text with which other participants `join` this channel, like
        `ReliableChannel.invite`.

        Raises:
            ValueError: as `ReliableChannel.invite`.
        """
        return self._channel.invite(key=key, node=node)

    def health(self) -> ChannelHealth:
        """Return the health of the channel at this moment, with reasons. The call never raises an
        error."""
        if self in _loop.channels:
            return _loop.portal().call(self._channel.health)
        return self._channel.health()

    @property
    def dropped_incoming(self) -> int:
        """Number of messages that were dropped because of the option `drop_incoming`."""
        return self._channel.dropped_incoming

    def cut_off(self, cut_off: bool) -> None:
        """Disconnect this participant from the network, or connect it again, for tests."""
        self._opened().call(self._channel.cut_off, cut_off)

    def _opened(self) -> BlockingPortal:
        self._channel._check_process()
        if self not in _loop.channels:
            raise ChannelClosed("the channel is not open: use it inside `with`")
        return _loop.portal()


class BlockingIterator(Iterator[T]):
    """Iterator over an asynchronous iterator, for code without an event loop."""

    def __init__(
        self,
        opened: Callable[[], BlockingPortal],
        iterator: AsyncIterator[T],
        timeout_s: float | None,
    ) -> None:
        self._opened = opened
        self._iterator = iterator
        self._timeout_s = timeout_s

    def __next__(self) -> T:
        """Wait for the next one.

        Raises:
            ChannelClosed: the channel is not open.
        """
        following = self._opened().start_task_soon(self._following)
        try:
            found = following.result()
        except BaseException:
            following.cancel()  # otherwise a call that Ctrl-C has ended takes the next one
            raise
        if not found:
            raise StopIteration
        return found[0]

    async def _following(self) -> list[T]:
        with anyio.move_on_after(self._timeout_s):
            async for one in self._iterator:
                return [one]
        return []


class _Closable(Protocol[T_co]):
    """An asynchronous iterator that can be ended."""

    def __aiter__(self) -> AsyncIterator[T_co]: ...
    def __anext__(self) -> Awaitable[T_co]: ...
    async def aclose(self) -> None: ...


class BlockingReader(BlockingIterator[T]):
    """Blocking iterator over messages, answers or events of a channel.

    In a channel with `state`, reading the next message or event confirms the previous one read. If
    you leave the loop early, use the reader in `with`, or call `close`.
    """

    _iterator: "_Closable[T]"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the reader, so that the channel keeps no more events for it."""
        with suppress(ChannelClosed):
            self._opened().call(self._iterator.aclose)


class BlockingQuestions(Iterator[BlockingQuestion[T]]):
    """Blocking form of `Questions`, the questions of other participants. Use the object in a `with`
    block, or call `close`."""

    def __init__(
        self, opened: Callable[[], BlockingPortal], reader: Questions[T], timeout_s: float | None
    ) -> None:
        self._opened = opened
        self._reader = BlockingReader(opened, reader, timeout_s)
        self.close: Final = self._reader.close

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __next__(self) -> BlockingQuestion[T]:
        """Wait for the next question.

        Raises:
            ChannelClosed: the channel is not open.
        """
        return BlockingQuestion(self._opened, next(self._reader))


class BlockingFollower(BlockingReader[AnyEvent]):
    """Blocking form of `Follower`, with a snapshot of the log and the events after it."""

    def __init__(
        self, opened: Callable[[], BlockingPortal], follower: Follower, timeout_s: float | None
    ) -> None:
        super().__init__(opened, follower, timeout_s)
        self._follower = follower

    def __enter__(self) -> Self:
        """Make the snapshot."""
        self._opened().call(self._follower.__aenter__)
        return self

    @property
    def snapshot(self) -> Sequence[LogEntry]:
        """Own and delivered messages in log order, each with its whole payload."""
        return self._follower.snapshot
