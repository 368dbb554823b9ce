"""Parts of a channel, which are checked before the channel opens."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from .._contracts.signing import CheckedSigning
from ..engine.driver import MonotonicWallClock
from ..engine.sync_core import CoreContext, Policies, SyncCore
from ..options import ChannelOptions
from .budget_file import BudgetFile
from .event_log import Failures
from .stages import ContentStages, Stages
from .unopened import Unopened


@dataclass(frozen=True, slots=True)
class ChannelSetup:
    """Parts of a channel that do not change while the channel is open. Transport, state and journal
    are not among these parts, because they open and close."""

    channel_id: str
    sender_id: str
    content_topic: str
    options: ChannelOptions
    make_core: Callable[[CoreContext], SyncCore]
    random: Random
    stages: Stages
    """Stages that a message passes between the core and the transport."""
    contents: ContentStages | None
    """Encryption of contents between the application and the core. The value is None unless only
    contents are encrypted."""
    policies: Policies
    unopened: Unopened | None = None
    """Messages that the key cannot decrypt. The value is None in a channel without encryption."""
    signing: CheckedSigning | None = None
    budget_file: BudgetFile | None = None
    log_failures: Failures = field(default_factory=dict)
    """Failures of all channels by their cause, for `EventLog`."""
    now_ns: Callable[[], int] = time.time_ns
    """Function that returns the time for message timestamps (ns since 1970). A Store refuses
    messages with a wrong time."""

    def clock(self) -> MonotonicWallClock:
        """Return the clock for planned work.

        A clock that the program gave may run faster than real time, as in a simulation.
        """
        is_real = self.now_ns is time.time_ns
        return MonotonicWallClock(self.now_ns, time.monotonic_ns if is_real else lambda: 0)
