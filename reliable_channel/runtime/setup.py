"""Parts of a channel, checked and complete before it opens."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from .._contracts.signing import Signing
from .._monotonic_wall_clock import MonotonicWallClock
from ..engine.sync_core import CoreContext, Policies, SyncCore
from ..options import ChannelOptions
from .budget_file import BudgetFile
from .event_log import Failures
from .stages import ContentStages, Stages
from .unopened import Unopened


@dataclass(frozen=True, slots=True)
class ChannelSetup:
    """Parts that do not change while a channel is open. Transport, state and journal are separate,
    because they open and close."""

    channel_id: str
    sender_id: str
    content_topic: str
    options: ChannelOptions
    make_core: Callable[[CoreContext], SyncCore]
    random: Random
    stages: Stages
    """Stages between the core and the transport."""
    contents: ContentStages | None
    """Encryption between the application and the core. None unless only contents are encrypted."""
    policies: Policies
    unopened: Unopened | None = None
    """Messages that the key does not open. None without encryption."""
    signing: Signing | None = None
    budget_file: BudgetFile | None = None
    log_failures: Failures = field(default_factory=dict)
    """Failures by cause, for `EventLog`."""
    now_ns: Callable[[], int] = time.time_ns
    """Wall-clock time (ns since 1970) that stamps messages. A Store refuses messages with another
    time."""

    def clock(self) -> MonotonicWallClock:
        """Return the clock for planning work.

        A given clock, such as virtual time, may run at another speed than the computer's.
        """
        is_real = self.now_ns is time.time_ns
        return MonotonicWallClock(self.now_ns, time.monotonic_ns if is_real else lambda: 0)
