"""Runs of whole groups, with a real core at each participant and an unchanging network."""

from dataclasses import dataclass
from random import Random
from typing import Annotated, ClassVar, Final, Literal

from reliable_channel._contracts.repair_policies import REPAIR_POLICIES, RepairPolicy
from reliable_channel.config import nested
from reliable_channel.options import ChannelOptions
from reliable_channel.sds.declared import SHARE_BELOW_1, Bound, Doc, Unit
from reliable_channel.spi import Kind, make_function, process_registry

from ..sim.relay import RelayNetwork
from ..sim.scenario import (
    Conditions,
    Fault,
    Latency,
    Partition,
    Scenario,
    StoreConditions,
    Write,
)
from ..sim.sharing import sds_maker
from ..sim.trial import Terms, run_trial
from .runs import Run, Value

COMING_MS: Final = 60_000
"""Time before the first message, in which all participants arrive and send a sync message."""

_MEASURED: Final = (
    "delivery_probability",
    "different_logs",
    "latency_p50_ms",
    "latency_p95_ms",
    "latency_p99_ms",
    "notice_p50_ms",
    "notice_p95_ms",
    "acknowledgement_p50_ms",
    "acknowledgement_p95_ms",
    "lost",
    "failed",
    "busy_ms",
    "bytes_per_message",
    "idle_messages_per_minute",
    "idle_bytes_per_hour",
    "receives",
)
"""Of `sim.measures.Measures`, by its names."""
_KINDS: Final = ("content", "retry", "repair", "sync", "store_request")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRun(Run):
    """Group that exchanges messages for a while and then falls silent.

    The network conditions apply to the whole run. A message that has not arrived at the end of the
    run counts as lost.
    """

    kind: ClassVar = "group"
    measures: ClassVar = (*_MEASURED, *(f"{kind}_per_message" for kind in _KINDS))
    takes_options: ClassVar = True

    participants: Annotated[int, Bound(2), Unit("participants")] = 10
    messages: Annotated[int, Bound(1), Unit("messages")] = 50
    pause_ms: Annotated[
        int,
        Bound(1),
        Doc(
            "The mean time from one message to the next. The writer of each "
            "message is chosen at random."
        ),
    ] = 5_000
    loss: Annotated[
        float,
        SHARE_BELOW_1,
        Doc("""The share of copies that are lost on their way to each participant. Store receives
            all messages without loss. In a relay network, the loss applies to each hop."""),
    ] = 0.0
    latency_ms: Annotated[
        int,
        Bound(1),
        Doc("""The longest latency of a copy. The latency of each copy is random, from a tenth of
            the longest latency up to it. In a relay network, the latency applies to each hop."""),
    ] = 300
    topology: Annotated[
        Literal["broadcast", "relay", "islands"],
        Doc("""With `broadcast`, all participants hear each other. With `relay`, nodes of degree 6
            forward messages. With `islands`, two halves do not hear each other in the middle third
            of the talk."""),
    ] = "broadcast"
    drain_ms: Annotated[
        int,
        Bound(1),
        Doc("""The longest time that the run continues after the last message, until all
            participants have all messages."""),
    ] = 900_000
    idle_ms: Annotated[
        int,
        Bound(0),
        Doc("The time for which the silent group is observed after the last delivery."),
    ] = 0

    def __post_init__(self) -> None:
        Run.__post_init__(self)
        self._policy()

    def measure(self) -> dict[str, Value]:
        options = ChannelOptions(**nested(dict(self.options)))
        make_core = sds_maker(options.sds_options())
        terms = Terms(
            patience_ms=self.drain_ms,
            idle_ms=self.idle_ms,
            is_mended=False,
            policy=self._policy(),
            make_network=RelayNetwork if self.topology == "relay" else None,
        )
        measured = run_trial([self._scenario(options)], make_core, terms)
        row = measured.row()
        counts = {**row, "store_request_messages": measured.store_requests}
        return {name: row[name] for name in _MEASURED} | {
            f"{kind}_per_message": counts[f"{kind}_messages"] / self.messages for kind in _KINDS
        }

    def _policy(self) -> RepairPolicy:
        """The repair policy, one of ours or of an installed plugin.

        Raises:
            ValueError: its name is unknown.
        """
        name = dict(self.options).get("retrieval_strategy", "both")
        # Ours need no plugins, which each process would load.
        return REPAIR_POLICIES.get(name) or make_function(
            process_registry(), Kind.REPAIR_POLICY, name
        )

    def _scenario(self, options: ChannelOptions) -> Scenario:
        random = Random(f"{self.seed} talk").random
        writes = tuple(
            Write(
                COMING_MS + int((number + random()) * self.pause_ms),
                int(random() * self.participants),
            )
            for number in range(self.messages)
        )
        talk_ms = self.messages * self.pause_ms
        faults: tuple[Fault, ...] = ()
        if self.topology == "islands":
            island = tuple(range(self.participants // 2))
            faults = (Partition(COMING_MS + talk_ms // 3, COMING_MS + 2 * talk_ms // 3, island),)
        return Scenario(
            self.seed,
            self.participants,
            writes,
            faults,
            Conditions(Latency(self.latency_ms // 10, self.latency_ms), self.loss),
            StoreConditions() if options.asks_store else None,
        )
