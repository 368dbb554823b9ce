"""Runs of quiet groups, which measure the cost of sync and the time to notice a missing message."""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, Literal

from reliable_channel.sds import SdsOptions, SdsProtocol
from reliable_channel.sds.declared import SHARE_BELOW_1, Bound, Doc, Unit

from ..sim.measures import percentile
from ..sim.quiet import MakeMember, QuietGroup, QuietSimulation, TimedMember
from ..sim.scenario import Conditions, Latency
from . import tuned_member
from .runs import Run, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class QuietRun(Run):
    """Group in which messages are rare, simulated by the participants' sync timers alone
    (`sim/quiet.py`)."""

    kind: ClassVar = "quiet"
    measures: ClassVar = (
        "syncs_per_second",
        "missed",
        "noticed_share",
        "notice_p50_ms",
        "notice_p90_ms",
        "notice_p99_ms",
        "sync_bytes",
        "received_bytes_per_second",
    )

    participants: Annotated[int, Bound(2), Unit("participants")] = 10
    sync_schedule: Annotated[
        Literal["suppressed", "js-waku", "svs", "auto"],
        Doc(
            "The schedule `svs` needs the plugin reliable-channel-svs. The schedule `auto` is "
            "that of a channel that tunes itself."
        ),
    ] = "suppressed"
    sync_min_interval_ms: Annotated[
        int,
        Bound(1),
        Doc("With the schedule `svs`, this interval is the PeriodicTimeout."),
    ] = 30_000
    loss: Annotated[
        float,
        SHARE_BELOW_1,
        Doc("The share of copies that are lost, of messages and of sync messages."),
    ] = 0.1
    latency_ms: Annotated[
        int,
        Bound(1),
        Doc(
            "The longest latency of a copy. The latency of each copy is random, from a tenth "
            "of the longest latency up to it."
        ),
    ] = 200
    rounds: Annotated[
        int, Bound(1), Unit("rounds"), Doc("The number of messages, one in each round.")
    ] = 5
    round_ms: Annotated[int, Bound(1)] = 120_000
    warm_up_ms: Annotated[
        int,
        Bound(2),
        Doc("The time before the first message, long enough for the sync schedule to settle."),
    ] = 60_000

    def measure(self) -> dict[str, Value]:
        """Simulate all rounds, and return the counts of messages."""
        group = QuietGroup(
            self.seed,
            self.participants,
            Conditions(Latency(self.latency_ms // 10, self.latency_ms), self.loss),
            self.warm_up_ms,
            self.rounds,
            self.round_ms,
        )
        result = QuietSimulation(group, self._make_member()).run()
        missed = result.missed
        # Who did not notice in time did not do so before the round was over.
        noticed = [*result.noticed_after_ms]
        noticed += [self.round_ms] * (missed - len(noticed))
        per_second, size = 1000 * result.syncs / result.span_ms, self._sync_bytes()
        return {
            "syncs_per_second": per_second,
            "missed": missed,
            "noticed_share": len(result.noticed_after_ms) / missed if missed else None,
            "notice_p50_ms": percentile(noticed, 50),
            "notice_p90_ms": percentile(noticed, 90),
            "notice_p99_ms": percentile(noticed, 99),
            "sync_bytes": size,
            "received_bytes_per_second": per_second * size * (1 - self.loss),
        }

    def _sync_bytes(self) -> int:
        """Size of a sync message where all participants have written."""
        if self.sync_schedule == "svs":
            from .svs_member import vector_bytes

            return vector_bytes(self.participants)
        if self.sync_schedule == "auto":
            return tuned_member.sync_bytes()
        options = SdsOptions()
        core = SdsProtocol("quiet", "p0", now_ms=0, random=lambda: 0.5, options=options)
        for count in range(options.causal_history_size):
            core.send(b"a message", now_ms=count)
        core.send_sync(now_ms=options.causal_history_size)
        *_, sync = core.outgoing
        return len(sync.data)

    def _make_member(self) -> MakeMember:
        schedule, interval_ms = self.sync_schedule, self.sync_min_interval_ms
        if schedule == "svs":
            from .svs_member import SvsMember

            return partial(SvsMember, interval_ms)
        if schedule == "auto":
            return partial(tuned_member.TunedMember, interval_ms)
        return partial(TimedMember, schedule, interval_ms)
