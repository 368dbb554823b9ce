"""What simulated participants share: their world, and what makes their cores and sees them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, Protocol, TypeVar

from reliable_channel._contracts.repair_policies import RepairPolicy, both
from reliable_channel.engine.logged import Logged
from reliable_channel.engine.rate_limit import Spent
from reliable_channel.engine.requests import Accepted
from reliable_channel.engine.sync_core import SyncCore
from reliable_channel.events import AnyEvent
from reliable_channel.options import ChannelOptions
from reliable_channel.sds.changes import Recorder
from reliable_channel.sds.events import Outgoing
from reliable_channel.sds.log.archive import LogArchive
from reliable_channel.sds.receiving import Arrival, Outcome

from .network import Network, Packet
from .scenario import Habits
from .store import Store
from .timeline import Timeline
from .trace import Trace

CHANNEL: Final = "simulated"

C = TypeVar("C", bound=SyncCore)
C_co = TypeVar("C_co", bound=SyncCore, covariant=True)


class MakeCore(Protocol[C_co]):
    """Makes the core of a participant, at each start of its process."""

    def __call__(
        self,
        sender_id: str,
        *,
        now_ms: int,
        random: Callable[[], float],
        recorder: Recorder,
        archive: LogArchive,
    ) -> C_co:
        """Make one, as `CoreContext` describes it."""
        ...


class Observer(Generic[C]):
    """Sees what a participant does; by default nothing comes of it."""

    reads_log = False
    """True if `told` gets a `Logged` for each message that enters the log."""

    def started(self, core: C) -> None:
        """It begins with an empty log."""

    def restarted(self, core: C) -> None:
        """It begins again, with what it had on disk."""

    def rolled_back(self, core: C) -> None:
        """It begins again, with an older state than it had."""

    def lost_disk(self) -> None:
        """What it had on disk cannot be read: it begins with an empty log."""

    def left(self) -> None:
        """It is gone permanently."""

    def repeated(self) -> None:
        """All that was not confirmed before a restart was emitted again."""

    def sent(self, core: C, payload: bytes, accepted: Accepted) -> None:
        """A message of its application was taken."""

    def answered(self, accepted: Accepted) -> None:
        """The application learns that it is accepted."""

    def confirmed(self, event: AnyEvent) -> None:
        """That its application confirmed an event is on disk."""

    def received(self, core: C, data: bytes, arrival: Arrival) -> None:
        """The core was given a message."""

    def took(self, data: bytes, arrival: Arrival) -> None:
        """And what came of it is on disk."""

    def emitted(self, core: C, event: AnyEvent | Logged) -> str | None:
        """An event was emitted; return a line for the trace, or None."""
        return None

    def stepped(self, core: C, now_ms: int, is_waiting: Callable[[str], bool]) -> None:
        """A step is over; `is_waiting` says of an own message whether it waits for the
        transport."""

    def published(self, core: C, outgoing: Outgoing, message_hash: bytes, now_ms: int) -> None:
        """A message is out, at this time of the participant's clock."""


class JournalKeeper(Protocol):
    """Writes down what one process of a participant sees and emits, as a channel's journal does."""

    def opened(self, core: SyncCore, wanted_from_ms: int | None, now_ms: int) -> None:
        """The process begins; None where it goes on as before a restart."""

    def came(self, arrived: Packet, outcome: Outcome, now_ms: int, *, from_store: bool) -> None:
        """A message arrived, and this became of it."""

    def went(self, outgoing: Outgoing, sent: Packet, now_ms: int) -> None:
        """The own node took a message."""

    def emitted(self, event: AnyEvent | Logged, now_ms: int) -> None:
        """An event was emitted."""

    def ended(self, now_ms: int | None = None) -> None:
        """The process is over; killed, unless there is a time."""


@dataclass(slots=True)
class Node:
    """A participant's own node, which outlives its processes."""

    number: int
    is_away: bool = False
    spent: Spent | None = None
    """The spent budget of the rate limit, in a file beside the process."""


@dataclass(slots=True)
class World(Generic[C]):
    timeline: Timeline
    network: Network
    store: Store | None
    trace: Trace
    make_core: MakeCore[C]
    dialect: str
    commit_ms: int
    publish_ms: int
    """How long each own node takes to accept a message."""
    payload_bytes: int = 0
    """Messages of applications are filled up to this length."""
    habits: Habits = field(default_factory=Habits)
    """Of the applications."""
    policy: RepairPolicy = both
    options: ChannelOptions = field(default_factory=ChannelOptions)
    """What the engines obey; of those of the core `make_core` knows."""
    journals: Callable[[str], JournalKeeper] | None = None
    """Makes the journal of a participant, at each start of its process."""
