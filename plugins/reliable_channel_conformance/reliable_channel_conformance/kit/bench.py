"""Tools of a check, with a network, peers, and messages that the kit itself makes."""

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
"""Flags with short periods, which a peer may obey or ignore. If a peer ignores the flags, its own
periods decide how many beats it needs."""


class Broken(AssertionError):
    """Error that a peer broke the rule of a check. The text names the expectation and the peer's
    action."""


class NotApplicable(Exception):
    """Error that the peer lacks the feature that a rule is about. The text of the error names the
    missing feature."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Command that starts the peers, and the patience of the kit."""

    command: str
    """Command line of the program under test, as typed in a shell."""
    profile: WireProfile
    beats: int = 300
    """Number of questions that a peer answers before a missing action counts as not done."""
    silence_s: float = SILENCE_S
    """Maximum time until a peer must be ready, or must answer a question."""


class Given(TypedDict, total=False):
    """Arguments of `Harness.message` and `Harness.say`."""

    history: Iterable[str | HistoryEntry]
    lamport: int | None
    message_id: str | None
    requests: Iterable[HistoryEntry]
    held: Iterable[str]
    bloom_filter: bytes | None


class Harness:
    """Network, peers and trace of one check."""

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
        """Yield a bench, whose processes end with the context."""
        async with AsyncExitStack() as stack:
            yield cls(setting, folder, stack)

    def fresh_folder(self) -> str:
        """Return a new folder for a peer's state, which is removed with the bench."""
        return self._stack.enter_context(TemporaryDirectory(prefix="conformance-"))

    # -- peers ------------------------------------------------------------------------------------

    async def peer(self, name: str = "peer", *, flags: Iterable[str] = ()) -> Peer:
        """Start the program under test with a node of its own."""
        return await self.start(self.setting.command, name, await self.node(name), flags)

    async def node(self, name: str) -> str:
        """Start a node before its peer, and return the node's address."""
        return await self._stack.enter_async_context(self.network.node(name))

    async def start(self, command: str, name: str, address: str, flags: Iterable[str] = ()) -> Peer:
        """Start a program at a node that is already running."""
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
        """Wait until a condition is met. `what` describes the condition, as a text or as a function
        that is called at the end.

        Raises:
            Broken: it does not hold, though the peer had time.
        """
        if not await peer.until(met, self.setting.beats):
            raise Broken(what if isinstance(what, str) else what())

    # -- messages of the kit ----------------------------------------------------------------------

    def say(self, sender: str, content: bytes | None = None, **given: Unpack[Given]) -> str:
        """Publish a message of a participant that is not running, and return the message's id."""
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
        """Return a message as an honest participant would send it, except for the given fields.

        `history` lists message ids, whose sender is then `sender`. `held` lists the message ids in
        the bloom filter.
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
        """Return a causal history entry that refers to a message."""
        return HistoryEntry(message_id, sender_id=sender)

    def filter_of(self, held: Iterable[str]) -> bytes:
        """Return a bloom filter of the default size that contains the given ids."""
        layout = self.parameters.layout_in(self.profile.bloom)
        words = bytearray(layout.byte_count)
        for message_id in held:
            for byte, mask in layout.probes(message_id):
                words[byte] |= mask
        return self.profile.bloom.write(self.parameters, bytes(words))

    async def logged(self, peer: Peer, *message_ids: str) -> None:
        """Wait until the given messages are in the peer's log.

        Raises:
            Broken: they are not in the log, though the peer had time.
        """
        log = [entry["message_id"] for entry in await peer.log()]
        for _ in range(self.setting.beats):
            if set(message_ids) <= set(log):
                return
            await peer.until(lambda: False, beats=1)
            log = [entry["message_id"] for entry in await peer.log()]
        raise Broken(f"{list(message_ids)} must be in the log of the peer (got {log})")

    async def delivered(self, peer: Peer, sender: str = "sentinel") -> None:
        """Publish a message without references, and wait until it is in the peer's log.

        Messages reach a peer in order, so the peer has then processed all earlier messages.
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
