"""Participants of a channel in a test, and the actions of the test on them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from types import TracebackType
from typing import Any, Final, Self

import anyio
from anyio.abc import TaskGroup, TaskStatus

from reliable_channel import MessageReceived, ReliableChannel, Request
from reliable_channel.events import AnyEvent
from reliable_channel.spi import MemoryStateStore
from reliable_channel.transport import MemoryNetwork

EPOCH_NS: Final = 1_700_000_000_000_000_000
WITHIN_S: Final = 600.0
"""Maximum time that a test waits, by the clock of its event loop (s)."""


def now_ns() -> int:
    """Return the event loop's time as wall-clock time, so that channels also use virtual time."""
    return EPOCH_NS + int(anyio.current_time() * 1_000_000_000)


class Channels:
    """Participants of one channel that share one network."""

    def __init__(self) -> None:
        self._network = MemoryNetwork()
        self._participants: dict[str, Participant] = {}
        self._tasks: TaskGroup = anyio.create_task_group()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for participant in self._participants.values():
            await participant.stop()
        await self._tasks.__aexit__(kind, error, traceback)

    async def open(
        self,
        *names: str,
        channel_id: str = "test",
        loss: float = 0.0,
        seed: int = 0,
        **options: Any,
    ) -> "list[Participant]":
        """Open a channel for each of the given names. `loss` is the share of messages that each
        participant loses.

        Other arguments are passed to `ReliableChannel`.
        """
        opened = []
        for name in names:
            if name in self._participants:
                raise ValueError(
                    f"participant `{name}` is open already; each name can be open once"
                )
            number = len(self._participants)
            arguments = {"drop_incoming": loss, "seed": seed + number, "channel_id": channel_id}
            participant = Participant(name, self._network, self._tasks, {**arguments, **options})
            self._participants[name] = participant
            await participant.start()
            opened.append(participant)
        return opened

    @contextmanager
    def node_away(self) -> Iterator[None]:
        """Let every call to the network fail while the context is open."""
        self._network.away = True
        try:
            yield
        finally:
            self._network.away = False

    async def sleep(self, seconds: float) -> None:
        """Let time pass, which takes no real time with `virtual_time`."""
        await anyio.sleep(seconds)

    async def agree(self, within_s: float = WITHIN_S) -> None:
        """Wait until all open participants have the same message log.

        Raises:
            AssertionError: they do not in time. The text has all logs.
        """
        with anyio.move_on_after(within_s):
            while True:
                logs = [one.log for one in self._participants.values() if one.is_open]
                if all(log == logs[0] for log in logs):
                    return
                await anyio.sleep(0.05)
        raise AssertionError(
            f"the logs differ after {within_s:g} s: "
            + "; ".join(f"{one.name} {one.log}" for one in self._participants.values())
        )


class Participant:
    """Participant in a test, with its channel and its received messages."""

    def __init__(
        self, name: str, network: MemoryNetwork, tasks: TaskGroup, arguments: dict[str, Any]
    ) -> None:
        self.name = name
        self.events: list[AnyEvent] = []
        """All events, also those of before a restart."""
        self.received: list[bytes] = []
        """Payloads of messages, in the order of delivery."""
        self.on_open: Callable[[ReliableChannel], object] = lambda channel: None
        """Called with each opened channel before its events are read, for a program that must begin
        earlier, such as one that answers questions."""
        self._network = network
        self._tasks = tasks
        self._arguments = arguments
        self._state = MemoryStateStore()
        self._channel: ReliableChannel | None = None
        self._stop = self._stopped = anyio.Event()
        self._changed = anyio.Event()

    @property
    def is_open(self) -> bool:
        """True if the participant's channel is open."""
        return self._channel is not None

    @property
    def channel(self) -> ReliableChannel:
        """Open channel of the participant, to pass to the program under test."""
        assert self._channel is not None, f"{self.name} is stopped; call start()"
        return self._channel

    @property
    def log(self) -> list[bytes]:
        """Payloads in the message log, in order."""
        return [entry.content for entry in self.channel.log()]

    async def start(self) -> None:
        """Open the channel with the participant's previous state."""
        self._stop, self._stopped = anyio.Event(), anyio.Event()
        await self._tasks.start(self._live)

    async def stop(self) -> None:
        """Close the channel in good order. The state of a stopped participant is kept."""
        self._stop.set()
        if self._channel is not None:
            await self._stopped.wait()

    async def restart(self) -> None:
        """Stop the participant and start it again."""
        await self.stop()
        await self.start()

    async def crash(self) -> None:
        """End the channel as `kill -9` does, so that nothing more is sent or written. After a
        crash, `start` opens the channel again."""
        self.channel.cut_off(True)
        self._state = deepcopy(self._state)  # what is written from now on goes into another one
        await self.stop()

    @contextmanager
    def cut_off(self) -> Iterator[None]:
        """Cut the participant off from the network while the context is open."""
        self.channel.cut_off(True)
        try:
            yield
        finally:
            if self._channel is not None:
                self._channel.cut_off(False)

    async def send(self, payload: bytes | str, **arguments: Any) -> Request:
        """Send a message, given as bytes or text."""
        return await self.channel.send(_bytes(payload), **arguments)

    async def receives(self, payload: bytes | str, within_s: float = WITHIN_S) -> None:
        """Wait until the participant has received a message.

        Raises:
            AssertionError: it does not arrive in time. The text has what was received.
        """
        wanted = _bytes(payload)
        await self.until(lambda: wanted in self.received, f"receive {wanted!r}", within_s)

    async def until(
        self, holds: Callable[[], object], what: str = "do that", within_s: float = WITHIN_S
    ) -> None:
        """Wait until a condition is True, which is checked after each event.

        Raises:
            AssertionError: it does not in time.
        """
        with anyio.move_on_after(within_s):
            while not holds():
                await self._changed.wait()
            return
        raise AssertionError(
            f"{self.name} did not {what} within {within_s:g} s; received {self.received}, "
            f"health {self.channel.health().problems}"
        )

    async def _live(self, *, task_status: TaskStatus[None]) -> None:
        channel = ReliableChannel(
            sender_id=self.name,
            transport=self._network.transport(),
            state=self._state,
            now_ns=now_ns,
            **self._arguments,
        )
        async with channel, anyio.create_task_group() as tasks:
            self._channel = channel
            self.on_open(channel)
            tasks.start_soon(self._note_events, channel)
            task_status.started()
            await self._stop.wait()
            tasks.cancel_scope.cancel()
        self._channel = None
        self._stopped.set()

    async def _note_events(self, channel: ReliableChannel) -> None:
        async for event in channel.events():
            self.events.append(event)
            if isinstance(event, MessageReceived):
                self.received.append(event.content)
            self._changed.set()
            self._changed = anyio.Event()


def _bytes(payload: bytes | str) -> bytes:
    return payload.encode() if isinstance(payload, str) else payload
