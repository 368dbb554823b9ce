"""What a check works with: a network, peers, and messages that the kit makes itself."""

import json
import shlex
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Self, TypedDict, Unpack

from reliable_channel.spi import BloomParameters, HistoryEntry, Message, WireProfile

from .network import Network
from .peer import SILENCE_S, Peer, running

CHANNEL: Final = "conformance"
TOPIC: Final = "/conformance/1/kit/proto"
QUICK: Final = {
    "retry-interval-ms": 1_000,
    "possibly-acknowledged-retry-interval-ms": 1_500,
    "sync-min-interval-ms": 1_000,
    "sweep-in-buf-interval-ms": 200,
    "retrieve-frequency-ms": 500,
    "repair-t-min-ms": 200,
    "repair-t-max-ms": 1_000,
    "repair-sweep-interval-ms": 100,
}
"""Flags that a peer obeys, or ignores: then its own periods decide how many beats it needs."""


class Broken(AssertionError):
    """A peer broke the rule: what was expected, and what it did."""


class NotApplicable(Exception):
    """The peer does not have what the rule is about; the text says what."""


@dataclass(frozen=True, slots=True)
class Setting:
    """How peers are started, and how patient the kit is."""

    command: str
    """The program under test, as one would type it."""
    profile: WireProfile
    beats: int = 300
    """Questions that a peer answers before something that it should do counts as not done."""
    silence_s: float = SILENCE_S
    """How long a peer may take to be ready, or to answer a question."""


class Given(TypedDict, total=False):
    """What `Harness.message` may be given, and so `Harness.say`."""

    history: Iterable[str | HistoryEntry]
    lamport: int | None
    message_id: str | None
    requests: Iterable[HistoryEntry]
    held: Iterable[str]
    bloom_filter: bytes | None


class Harness:
    """One check's network, peers and trace."""

    def __init__(self, setting: Setting, folder: Path, stack: AsyncExitStack) -> None:
        self.setting = setting
        self.profile = setting.profile
        self.network = Network(setting.profile, TOPIC)
        self.network.observer = self._record
        self.parameters = BloomParameters()
        self._stack = stack
        folder.mkdir(parents=True, exist_ok=True)
        self._trace = stack.enter_context((folder / "trace.jsonl").open("w"))
        self._numbers = count(1)
        self._clock = setting.profile.clock(_now_ms())

    @classmethod
    @asynccontextmanager
    async def open(cls, setting: Setting, folder: Path) -> AsyncIterator[Self]:
        """A bench whose processes end with the context."""
        async with AsyncExitStack() as stack:
            yield cls(setting, folder, stack)

    def fresh_folder(self) -> str:
        """A folder for a peer's state, which ends with the bench: an older state would be known."""
        return self._stack.enter_context(TemporaryDirectory(prefix="conformance-"))

    # -- peers ------------------------------------------------------------------------------------

    async def peer(self, name: str = "peer", *, flags: Iterable[str] = ()) -> Peer:
        """Start the program under test with a separate node."""
        return await self.start(self.setting.command, name, await self.node(name), flags)

    async def node(self, name: str) -> str:
        """Start a peer's node before the peer; its address."""
        return await self._stack.enter_async_context(self.network.node(name))

    async def start(self, command: str, name: str, address: str, flags: Iterable[str] = ()) -> Peer:
        """Start a program at a node that is there already."""
        quick = [part for flag, value in QUICK.items() for part in (f"--{flag}", str(value))]
        arguments = [
            *("--node", address, "--channel-id", CHANNEL, "--sender-id", name),
            *("--content-topic", TOPIC),
            *quick,
            *([] if self.profile.name == "spec" else ["--wire-profile", self.profile.name]),
            *flags,
        ]
        line: Sequence[str] = [*shlex.split(command), *arguments]
        self._record({"at_ms": _now_ms(), "peer": name, "started": line})
        peer = running(name, line, self._record, self.setting.silence_s)
        return await self._stack.enter_async_context(peer)

    async def expect(
        self, peer: Peer, met: Callable[[], bool], what: str | Callable[[], str]
    ) -> None:
        """Wait until something is so; `what` says what is expected, and may be made at the end.

        Raises:
            Broken: it is not, though the peer had time.
        """
        if not await peer.until(met, self.setting.beats):
            raise Broken(what if isinstance(what, str) else what())

    # -- messages of the kit ----------------------------------------------------------------------

    def say(self, sender: str, content: bytes | None = None, **given: Unpack[Given]) -> str:
        """Publish a message of a participant that is not there; return its id."""
        message = self.message(sender, content, **given)
        self.network.publish(self.profile.codec.encode(message))
        return message.message_id

    def message(
        self,
        sender: str,
        content: bytes | None = None,
        *,
        history: Iterable[str | HistoryEntry] = (),
        lamport: int | None = None,
        message_id: str | None = None,
        requests: Iterable[HistoryEntry] = (),
        held: Iterable[str] = (),
        bloom_filter: bytes | None = None,
    ) -> Message:
        """A message as an honest participant would send it, but for what is given.

        `history` has ids, whose sender is then `sender`, and `held` the ids that its bloom filter
        has.
        """
        stamp = self._clock.tick(_now_ms())
        entries = [
            each if isinstance(each, HistoryEntry) else HistoryEntry(each, sender_id=sender)
            for each in history
        ]
        return Message(
            sender,
            message_id or f"{next(self._numbers):04x}{sender.encode().hex()}",
            CHANNEL,
            stamp if lamport is None else lamport,
            entries,
            self.filter_of(held) if bloom_filter is None else bloom_filter,
            list(requests),
            content,
        )

    def entry(self, message_id: str, sender: str) -> HistoryEntry:
        """A reference to a message."""
        return HistoryEntry(message_id, sender_id=sender)

    def filter_of(self, held: Iterable[str]) -> bytes:
        """A bloom filter of the default size in this dialect that has these ids."""
        layout = self.parameters.layout_in(self.profile.bloom)
        words = bytearray(layout.byte_count)
        for message_id in held:
            for byte, mask in layout.probes(message_id):
                words[byte] |= mask
        return self.profile.bloom.write(self.parameters, bytes(words))

    async def logged(self, peer: Peer, *message_ids: str) -> None:
        """Wait until messages are in the peer's log.

        Raises:
            Broken: they are not, though the peer had time.
        """
        log = [entry["message_id"] for entry in await peer.log()]
        for _ in range(self.setting.beats):
            if set(message_ids) <= set(log):
                return
            await peer.until(lambda: False, beats=1)
            log = [entry["message_id"] for entry in await peer.log()]
        raise Broken(f"{list(message_ids)} must be in its log (got {log})")

    async def delivered(self, peer: Peer, sender: str = "sentinel") -> None:
        """Publish a message that waits for nothing, and wait until the peer has it in its log.

        Messages reach a peer in order, so what was published before was processed by then.
        """
        content = f"sentinel {next(self._numbers)}".encode()
        message_id = self.say(sender, content)
        await self.expect(
            peer,
            lambda: content in peer.payloads(),
            "a message without dependencies must be delivered, and is not",
        )
        await self.logged(peer, message_id)

    def _record(self, record: dict[str, Any]) -> None:
        self._trace.write(json.dumps(record) + "\n")
        self._trace.flush()


Check = Callable[[Harness], Awaitable[None]]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
