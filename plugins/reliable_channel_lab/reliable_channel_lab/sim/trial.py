"""Measuring runs of any sync protocol, with the same network for all protocols.

In contrast to a trial, `Simulation` looks for broken promises of SDS after each step. A trial only
observes sent, delivered and requested messages, so it works with any protocol. Of the scenario's
parameters, a trial uses only the repair policy. The function that makes the cores knows all other
parameters. A lossy network loses copies until all participants have all messages, to measure
repair. A group that needs more than a quarter of an hour gets a network without loss.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final, TypeVar

from reliable_channel._contracts.repair_policies import REPAIR_POLICIES, WITHOUT_STORE, RepairPolicy
from reliable_channel.engine.store_queries import Query
from reliable_channel.engine.sync_core import SyncCore
from reliable_channel.options import ChannelOptions

from .measures import Measures
from .metering import Channel, Meter, Phase, Probe
from .network import STORE, Network, Packet, draw_ms
from .participant import Participant
from .planning import Planner
from .scenario import Conditions, Scenario, StoreConditions
from .store import Store, StoreAwayError
from .timeline import START_MS, Timeline
from .trace import Trace
from .world import MakeCore, World

LOOK_EVERY_MS: Final = 1_000
PATIENCE_MS: Final = 900_000
"""Time limit for all deliveries, first with the lossy network, then again with a good network."""
IDLE_MS: Final = 300_000
"""Time for which the group is observed after all deliveries."""

C = TypeVar("C", bound=SyncCore)


@dataclass(frozen=True, slots=True)
class Terms:
    """Settings of a trial in addition to its scenarios."""

    payload_bytes: int = 100
    patience_ms: int = PATIENCE_MS
    idle_ms: int = IDLE_MS
    max_receives: int | None = None
    is_mended: bool = True
    """True if a group that needs too long gets a network without loss."""
    options: ChannelOptions = field(default_factory=ChannelOptions)
    """Options of the participants' engines."""
    policy: RepairPolicy | None = None
    """Repair policy of the trial. Without a policy, the trial uses the scenario's repair policy."""
    make_network: Callable[[Timeline, Conditions, int], Network] | None = None
    """Function that makes the network from the timeline, the conditions and the seed. Without the
    function, the trial uses an `EqualNetwork`."""


def run_trial(
    scenarios: Sequence[Scenario], make_core: MakeCore[C], terms: Terms | None = None
) -> Measures:
    """Run the channels of a community, one scenario each, and return their measures together.

    Raises:
        TooMuchWork: the cores were given more than `terms.max_receives` messages.
    """
    return metered(scenarios, make_core, terms).measures()


def metered(
    scenarios: Sequence[Scenario], make_core: MakeCore[C], terms: Terms | None = None
) -> Meter:
    """Run the channels of a community, one scenario each, and return their meter.

    Raises:
        TooMuchWork: as `run_trial`.
    """
    terms = terms or Terms()
    meter = Meter(max_receives=terms.max_receives)
    for scenario in scenarios:
        # Channels share nothing but the network, which has room for all: one after the other.
        meter.phase = Phase.JOINING
        _Trial(scenario, make_core, meter, terms).run()
    return meter


class EqualNetwork(Network):
    """Network with the same losses and delays for all protocols.

    The fate of a copy depends on the seed, sender, receiver, and the kind and number of the
    broadcast. The first broadcast of a message has the same fate with each protocol, at any share
    of losses. Later broadcasts (retries, repairs, syncs) have numbers of their own in each
    protocol.

    Store receives all messages, because the proposal of SDS assumes high availability.
    """

    def __init__(self, timeline: Timeline, conditions: Conditions, seed: int) -> None:
        super().__init__(timeline, conditions, Random(seed))
        self._seed = seed
        self._numbers: Counter[tuple[int, str]] = Counter()

    def broadcast(self, sender: int, sent: Packet) -> None:
        """Pass a message to all participants except its sender."""
        kind, conditions = sent.kind.value, self.conditions
        number = self._numbers[sender, kind]
        self._numbers[sender, kind] += 1
        random = Random(f"{self._seed} {sender} {kind} {number}")
        in_reach = {station.number for station in self._in_reach(sender)}
        now_ms, at = self._timeline.now_ms, self._timeline.at
        for station in self.stations:
            share, delay_ms = random.random(), draw_ms(conditions.latency, random)
            arrives = share >= conditions.loss or station.number == STORE
            if arrives and station.number in in_reach:
                at(now_ms + delay_ms, station.hear, sent)


class _MeteredStore(Store):
    def __init__(
        self, timeline: Timeline, conditions: StoreConditions, random: Random, meter: Meter
    ) -> None:
        super().__init__(timeline, conditions, random)
        self._meter = meter

    def answer(self, query: Query) -> Sequence[Packet]:
        try:
            answer = super().answer(query)
        except StoreAwayError:
            self._meter.store_failed()
            raise
        self._meter.store_answered(query, answer)
        return answer


class _Trial:
    def __init__(
        self, scenario: Scenario, make_core: MakeCore[C], meter: Meter, terms: Terms
    ) -> None:
        self._scenario, self._meter, self._terms = scenario, meter, terms
        self._timeline = timeline = Timeline(START_MS)
        self._network = (terms.make_network or EqualNetwork)(
            timeline, scenario.conditions, scenario.seed
        )
        store = None
        if scenario.store is not None:
            random = Random(f"{scenario.seed} store")
            store = _MeteredStore(timeline, scenario.store, random, meter)
        self._channel = Channel(meter, lambda: timeline.now_ms)
        strategy = scenario.parameters.retrieval_strategy
        world: World[C] = World(
            timeline,
            self._network,
            None if strategy in WITHOUT_STORE else store,
            Trace(None),
            make_core,
            "spec",
            scenario.commit_ms,
            scenario.publish_ms,
            terms.payload_bytes,
            policy=terms.policy or REPAIR_POLICIES[strategy],
            # Looks for own messages in Store cost the same with all protocols.
            options=replace(terms.options, confirm_interval_ms=0),
        )
        everybody = range(scenario.participants)
        self._probes = [Probe(self._channel) for _ in everybody]
        self._participants = [
            Participant(
                *(number, f"p{number}", world, scenario.seed, self._probes[number]),
                is_durable=number in scenario.durable,
            )
            for number in everybody
        ]
        self._network.stations += self._participants
        if store is not None:
            self._network.stations.append(store)  # last: with and without it the draws are the same
        Planner(timeline, self._network, store, self._participants).add(scenario)

    def run(self) -> None:
        """From the first start to the end of the idle time."""
        timeline, meter, scenario = self._timeline, self._meter, self._scenario
        first_ms = START_MS + min((write.at_ms for write in scenario.writes), default=0)
        timeline.run_until(first_ms - 1)
        meter.phase = Phase.BUSY
        timeline.run_until(START_MS + scenario.faults_end_ms)
        if not self._settles() and self._terms.is_mended:
            self._network.conditions = replace(scenario.conditions, loss=0.0, duplication=0.0)
            self._settles()
        meter.busy_ms += timeline.now_ms - first_ms
        meter.phase = Phase.IDLE
        timeline.run_until(timeline.now_ms + self._terms.idle_ms)
        meter.idle_ms += self._terms.idle_ms
        self._count()

    def _settles(self) -> bool:
        """Let time pass until all is done; return whether that came in time."""
        ends_ms = self._timeline.now_ms + self._terms.patience_ms
        while not self._is_settled():
            if self._timeline.now_ms >= ends_ms:
                return False
            self._timeline.run_until(self._timeline.now_ms + LOOK_EVERY_MS)
        return True

    def _is_settled(self) -> bool:
        everything = (1 << len(self._channel.sent_ms)) - 1
        return all(
            probe.has | probe.own == everything
            and not participant.core.unacknowledged
            and not any(participant.core.missing_tables)
            for probe, participant in zip(self._probes, self._participants, strict=True)
            if participant.core is not None
        )

    def _count(self) -> None:
        """What was promised, and what became of it."""
        here = [
            (probe, participant.core)
            for probe, participant in zip(self._probes, self._participants, strict=True)
            if participant.core is not None
        ]
        messages = len(self._channel.sent_ms)
        due = sum(messages - probe.own.bit_count() for probe, _ in here)
        delivered = sum((probe.has & ~probe.own).bit_count() for probe, _ in here)
        self._meter.count_promises(messages, due, delivered)
        digests = [core.log.digest() for _, core in here]
        self._meter.different_logs += sum(digest != digests[0] for digest in digests)
