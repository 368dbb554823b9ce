"""What a channel asks of a sync protocol, and what a plugin needs to write one.

`SdsProtocol` is built in; `ReliableChannel(…, sync="name")` uses the core that a plugin registered
(`hooks.register_sync_cores`). A core is sans-I/O: it reads no clock, takes random numbers only from
the given function, and never waits. After each call its owner writes `changes()`, then emits
`events()` to the application and broadcasts `outgoing()`.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from .._contracts.repair_policies import RepairPolicy, both
from .._contracts.signing import Signing
from ..options import ChannelOptions
from ..sds.changes import CHANNEL, NO_RECORDER, Changes, Recorder, Row, Table, Tables, Value
from ..sds.events import Outgoing, OutgoingKind, SdsEvent
from ..sds.ids import IdFunction
from ..sds.log.archive import LogArchive
from ..sds.log.entry import LogEntry
from ..sds.log.log import MessageLog
from ..sds.outgoing import RetryPolicy, fixed
from ..sds.receiving import Arrival, Outcome
from ..sds.references.incoming import MissingEntry
from ..sds.statistics import Progress, SdsCounters, SdsStatistics

__all__ = [
    "CHANNEL",
    "NO_RECORDER",
    "Arrival",
    "Changes",
    "CoreContext",
    "LogArchive",
    "LogEntry",
    "MessageLog",
    "MissingEntry",
    "Outcome",
    "Outgoing",
    "OutgoingKind",
    "Progress",
    "Recorder",
    "Row",
    "SdsCounters",
    "SdsEvent",
    "SdsStatistics",
    "SyncCore",
    "Table",
    "Tables",
    "Value",
    "Withdrawing",
]


@dataclass(frozen=True, slots=True)
class Policies:
    """The policies of one channel, which are pure functions."""

    retry: RetryPolicy = fixed
    repair: RepairPolicy = both
    id_function: IdFunction | None = None
    """None: the id function of the wire profile."""


@dataclass(frozen=True, slots=True)
class CoreContext:
    """What a channel gives to the core that it opens."""

    channel_id: str
    sender_id: str
    options: ChannelOptions
    now_ms: int
    random: Callable[[], float]
    """Uniform in [0, 1)."""
    recorder: Recorder
    """Where to note what a restart needs; takes nothing where there is no state."""
    archive: LogArchive
    """Where what was noted of the log is found again, for `MessageLog`."""
    signing: Signing | None = None
    require_signatures: bool = False
    policies: Policies = field(default_factory=Policies)
    repair_on_demand: bool = False
    """True if repair requests wait until the channel calls `SyncCore.ask_participants`."""
    has_store: bool = True
    """True if there is a Store, and it is asked; else other participants are all there is."""


@runtime_checkable
class Withdrawing(Protocol):
    """A core that can take back what was accepted a moment ago.

    Where the state cannot be written, `ReliableChannel.send` raises, and the message must not go
    out. With a core without this, the message that found the failure is accepted in memory; later
    ones are refused before the core gets them.
    """

    def withdraw(self, message_id: str) -> None:
        """Forget an own message that no participant has seen or heard of: it was not handed out
        yet, nor was anything that refers to it."""
        ...


@runtime_checkable
class SyncCore(Protocol):
    """One participant of one channel, as the runtime sees it."""

    log: MessageLog
    """Own and delivered messages; open to read."""

    @property
    def unacknowledged(self) -> Collection[str]:
        """The ids of own messages that no participant is known to have."""
        ...

    @property
    def capacity_left(self) -> int:
        """How many more own messages may wait for an acknowledgement."""
        ...

    def send(self, content: bytes, now_ms: int, *, timestamp_ns: int | None = None) -> str:
        """Accept a message for all participants and return its id, which is unique in the channel.

        Raises:
            SdsError: it is refused; the text says why.
        """
        ...

    def send_ephemeral(
        self, content: bytes, now_ms: int, *, timestamp_ns: int | None = None
    ) -> str:
        """Broadcast a message without any promise and return its id; its bytes are all that
        `outgoing()` hands out then.

        Raises:
            SdsError: it is refused; the text says why.
        """
        ...

    def receive(
        self,
        data: bytes,
        now_ms: int,
        *,
        retrieval_hint: bytes | None = None,
        sent_at_ns: int | None = None,
    ) -> Arrival:
        """Take bytes from the transport or from Store; `retrieval_hint` is their Waku message
        hash, `sent_at_ns` their timestamp there. Never raises for what the bytes are."""
        ...

    def dispatched(self, message_id: str, now_ms: int, retrieval_hint: bytes | None = None) -> None:
        """Take note that an own message is out."""
        ...

    def resend_early(self, message_id: str, now_ms: int) -> bool:
        """Broadcast an own message again ahead of its time; return False where it is acknowledged,
        or was sent as often as may be."""
        ...

    def abandon(self, message_id: str) -> None:
        """Stop sending an own message that the transport refuses permanently."""
        ...

    def join(self, now_ms: int, *, wanted_from: int = 0, presume_ms: int) -> None:
        """Join a running conversation of which nothing before `wanted_from` (ms) is wanted."""
        ...

    def missing(self) -> Sequence[MissingEntry]:
        """What is known by reference alone: what to look for in Store."""
        ...

    def wanted(self) -> Sequence[MissingEntry]:
        """Hand out what participants might be asked for: what is newly missing, and again as often
        as it comes up. They are not asked before `ask_participants`. Without
        `repair_on_demand` it is empty, and the core asks them itself."""
        ...

    def ask_participants(self, missing: MissingEntry, now_ms: int) -> None:
        """From now on participants may be asked for a missing message, by the protocol's rules and
        in its own time. Where they are being asked, or it is not missing any more, nothing changes.
        """
        ...

    @property
    def is_missing_something(self) -> bool:
        """True if `missing()` names anything."""
        ...

    def is_awaited(self, message_id: str) -> bool:
        """Return True if other messages wait for a missing one."""
        ...

    def next_deadline_ms(self) -> int | None:
        """When `on_deadline` must be called next, or None while there is nothing to wait for."""
        ...

    def on_deadline(self, now_ms: int) -> None:
        """Do all that is due."""
        ...

    def events(self) -> Sequence[SdsEvent]:
        """Hand out all that happened since the last call. Each message is delivered once."""
        ...

    def outgoing(self) -> Sequence[Outgoing]:
        """Hand out all that must be broadcast, in order."""
        ...

    def changes(self) -> Changes:
        """Hand out what changed of what a restart needs."""
        ...

    def restore(self, tables: Tables, newest: Sequence[LogEntry], now_ms: int) -> None:
        """Begin as before a restart; called before anything else. Own messages that never went out
        wait in `outgoing()` again."""
        ...

    def progress(self) -> Progress:
        """How much of what it knows of it has."""
        ...

    def statistics(self) -> SdsStatistics:
        """A snapshot of counters and buffers; zero for what the protocol has not."""
        ...
