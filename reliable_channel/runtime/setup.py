"""What a channel is made of, checked and complete, before it opens."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from .._contracts.signing import Signing
from .._monotonic_wall_clock import MonotonicWallClock
from ..engine.sync_core import CoreContext, Policies, SyncCore
from ..options import ChannelOptions
from .budget_file import BudgetFile
from .stages import ContentStages, Stages
from .unopened import Unopened


@dataclass(frozen=True, slots=True)
class ChannelSetup:
    """All that does not change while a channel is open; transport, state and journal come beside
    it, since they open and close."""

    channel_id: str
    sender_id: str
    content_topic: str
    options: ChannelOptions
    make_core: Callable[[CoreContext], SyncCore]
    random: Random
    stages: Stages
    """Between the core and the transport."""
    contents: ContentStages | None
    """Between the application and the core; None unless contents alone are encrypted."""
    policies: Policies
    unopened: Unopened | None = None
    """Messages that the key does not open; None without encryption."""
    signing: Signing | None = None
    budget_file: BudgetFile | None = None
    now_ns: Callable[[], int] = time.time_ns
    """Wall-clock time in nanoseconds, with which messages are stamped: a Store refuses others."""

    def clock(self) -> MonotonicWallClock:
        """Return the clock that work is planned with.

        A given clock, such as virtual time, need not keep pace with that of the computer.
        """
        is_real = self.now_ns is time.time_ns
        return MonotonicWallClock(self.now_ns, time.monotonic_ns if is_real else lambda: 0)
