"""What simulated participants share: their world, who makes their cores, and who looks on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from reliable_channel.repair_policies import RepairPolicy, both
from reliable_channel.sds.archive import LogArchive
from reliable_channel.sds.changes import Recorder
from reliable_channel.sds.events import Outgoing, SdsEvent
from reliable_channel.sds.receiving import Arrival
from reliable_channel.sync_core import SyncCore

from .network import Network
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
        """Make one, as `SyncSetting` describes it."""
        ...


class Observer(Generic[C]):
    """Is told what a participant does; by default nothing comes of it."""

    def started(self, core: C) -> None:
        """It begins with an empty log."""

    def restarted(self, core: C) -> None:
        """It begins again, with what it had on disk."""

    def rolled_back(self, core: C) -> None:
        """It begins again, with an older state than it had."""

    def left(self) -> None:
        """It is gone for good."""

    def sent(self, core: C, message_id: str) -> None:
        """A message of its application was taken."""

    def accepted(self, core: C, message_id: str) -> None:
        """And is on disk."""

    def received(self, core: C, data: bytes, arrival: Arrival) -> None:
        """The core was given a message."""

    def took(self, data: bytes, arrival: Arrival) -> None:
        """And what came of it is on disk."""

    def told(self, core: C, event: SdsEvent) -> str | None:
        """The application was told; a line for the trace, or None."""
        return None

    def stepped(self, core: C, now_ms: int, is_waiting: Callable[[str], bool]) -> None:
        """A step is over; `is_waiting` says of an own message whether it waits for the
        transport."""

    def published(self, core: C, outgoing: Outgoing) -> None:
        """A message is out."""


@dataclass(slots=True)
class World(Generic[C]):
    """What all participants share."""

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
    policy: RepairPolicy = both
