"""Run of one scenario with all participants and faults, until all message logs are equal."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from reliable_channel._contracts.repair_policies import (
    REPAIR_POLICIES,
    WITHOUT_OTHERS,
    WITHOUT_STORE,
)
from reliable_channel.options import BloomParameters, ChannelOptions, Limits, RateLimitOptions
from reliable_channel.sds import RepairOptions, SdsOptions, SdsProtocol
from reliable_channel.sds.agenda import Slot
from reliable_channel.sds.options import CoreLimits

from .hostile import Attacker
from .invariants import Watch, Watched
from .ledger import InvariantViolated, Ledger
from .liveness import Majority
from .network import Network
from .payloads import Payloads
from .planning import Planner
from .scenario import Conditions, Habits, Hostile, Parameters, Scenario, StoreConditions
from .self_tuning import self_tuning
from .sharing import checked, sds_maker, sharing
from .store import Store
from .timeline import START_MS, Timeline
from .trace import Trace
from .world import CHANNEL, JournalKeeper, World

CHECK_EVERY_MS: Final = 60_000
"""Interval at which whole logs are compared during the faults."""
OFTEN_CHECKED: Final = 100
"""Group size above which whole logs are compared only at the end."""
LOOK_EVERY_MS: Final = 5_000
"""Polling interval for a quiet group after the faults."""
MAX_BYTES: Final = 1_000_000
"""Limit of `payload_bytes` for the simulated channels."""
EQUAL: Final = "in the end all logs are equal"
NOTICED: Final = "a log that differs is noticed"
AGREED: Final = "equal logs are not called different"
AFTERMATH_MS: Final = 120_000
"""Time for which a quiet group must stay unchanged, if all logs are equal."""
DIFFERENT_AFTERMATH_MS: Final = 600_000
"""Time for which a quiet group must stay unchanged, if logs differ. Root hashes leave out the
newest five minutes of a log, so a full comparison takes longer."""


@dataclass(frozen=True, slots=True)
class Violation:
    """Broken promise with its details."""

    invariant: str
    participant: str
    at_ms: int
    """Time since the run began."""
    message_id: str
    detail: str

    def __str__(self) -> str:
        about = f", message {self.message_id}" if self.message_id else ""
        return f"{self.invariant} ({self.participant}, {self.at_ms} ms{about}): {self.detail}"


@dataclass(frozen=True, slots=True)
class Result:
    scenario: Scenario
    violation: Violation | None
    digest: str
    """Hash of all events of the run, equal for equal scenarios on any machine."""
    steps: int
    """Number of messages that cores received."""
    delivered: int
    settled_after_ms: int
    """Time from the end of the faults until all logs were equal."""
    reached: frozenset[str] = frozenset()
    """Situations of `sometimes.SITUATIONS` that the run reached."""


class Simulation:
    """Simulated group with its network and its Store."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        show: Callable[[str], None] | None = None,
        journals: Callable[[str], JournalKeeper] | None = None,
    ) -> None:
        self.scenario = scenario
        self.trace = Trace(show)
        self.timeline = timeline = Timeline(START_MS)
        seed, profile, options = scenario.seed, sharing(), core_options(scenario.parameters)
        self.network = Network(timeline, scenario.conditions, Random(f"{seed} network"))
        self.store = None
        if scenario.store is not None:
            self.store = Store(timeline, scenario.store, Random(f"{seed} store"))
            self.network.stations.append(self.store)
        self.ledger = Ledger(lambda: timeline.now_ms - START_MS)
        self._options = channel_options(scenario.habits)
        strategy = scenario.parameters.retrieval_strategy
        make, tuned = sds_maker(options, profile), {name_of(n) for n in scenario.self_tuning}
        make_tuned = sds_maker(self_tuning(options), profile)

        def make_core(sender_id: str, **setting: Any) -> SdsProtocol:
            return (make_tuned if sender_id in tuned else make)(sender_id, **setting)

        world = World(
            timeline,
            self.network,
            None if strategy in WITHOUT_STORE else self.store,
            self.trace,
            checked(make_core),
            profile.name,
            scenario.commit_ms,
            scenario.publish_ms,
            policy=REPAIR_POLICIES[strategy],
            options=self._options,
            habits=scenario.habits,
            journals=journals,
        )
        numbers = range(scenario.participants)
        common = self.ledger, profile, options.bloom, self._options, Payloads(), self._in_store
        self.watches = [Watch(n, name_of(n), *common) for n in numbers]
        for watch in self.watches:
            watch.introduce(self.watches)
        self.participants = [
            Watched(w.number, w.name, world, seed, w, is_durable=w.number in scenario.durable)
            for w in self.watches
        ]
        self.network.stations += self.participants
        self._attacker: Attacker | None = None
        if any(isinstance(fault, Hostile) for fault in scenario.faults):
            self._attacker = Attacker(
                scenario.participants,
                timeline,
                self.network,
                self.ledger,
                profile,
                options,
                CHANNEL,
                Random(f"{seed} attacker"),
            )
            self.network.stations.append(self._attacker)

    def run(self) -> Result:
        """Play the scenario until its end, or until a promise is broken."""
        violation, settled_after_ms = None, 0
        try:
            self._plan()
            self._play_faults()
            if self.scenario.majority:
                majority = Majority(self.scenario, self.participants, self.timeline, self.ledger)
                settled_after_ms = majority.demand_progress(self.check)
            else:
                settled_after_ms = self._settle()
                self.check()
                self._check_end()
        except InvariantViolated as broken:
            violation = Violation(*broken.args)
        except Exception:
            where = traceback.format_exc(limit=-3)
            violation = Violation("no step raises", "", self.ledger.now_ms(), "", where)
        steps, delivered = self._count()
        for participant in self._present():
            assert participant.core is not None and participant.process is not None
            participant.process.close_journal()
            if participant.core.bloom_filter.rollovers:
                self.ledger.reached.add("the bloom filter rolled over")
        return Result(
            self.scenario,
            violation,
            self.trace.digest(),
            steps,
            delivered,
            settled_after_ms,
            frozenset(self.ledger.reached.names),
        )

    # -- the course of a run -----------------------------------------------------------------------

    def _plan(self) -> None:
        attack = self._attacker.attack if self._attacker is not None else None
        planner = Planner(self.timeline, self.network, self.store, self.participants, attack)
        planner.add(self.scenario)

    def _play_faults(self) -> None:
        end_ms = START_MS + self.scenario.faults_end_ms
        while self.timeline.now_ms < end_ms:
            self.timeline.run_until(min(self.timeline.now_ms + CHECK_EVERY_MS, end_ms))
            if len(self.participants) <= OFTEN_CHECKED:
                self.check()
        self.network.conditions = Conditions()
        if self.store is not None:
            refuses_hashes = self.store.conditions.refuses_hashes
            self.store.conditions = StoreConditions(refuses_hashes=refuses_hashes)

    def _settle(self) -> int:
        """Wait until all is quiet and stays so; return how long it took until it was.

        Equal logs stay quiet from the first time. Participants whose logs differ may go on finding
        messages, and what they know of the others then begins anew.
        """
        began_ms = self.timeline.now_ms
        self._run(self.scenario.conditions.latency.max_ms)  # what is on its way may disturb yet
        while True:
            self._wait_until_quiet(began_ms + self._settle_within_ms)
            took_ms = self.timeline.now_ms - began_ms
            if self._are_equal():
                self._run(AFTERMATH_MS)
                return took_ms
            if self._stays_quiet(DIFFERENT_AFTERMATH_MS):
                return took_ms

    def _wait_until_quiet(self, until_ms: int) -> None:
        while not self.is_quiet():
            if self.timeline.now_ms > until_ms:
                hours = self._settle_within_ms / 3_600_000
                detail = f"not {hours:g} hours after the last fault: {self._differences()}"
                raise InvariantViolated(self._end(), "all", self.ledger.now_ms(), "", detail)
            self._run(LOOK_EVERY_MS)

    def _stays_quiet(self, duration_ms: int) -> bool:
        until_ms = self.timeline.now_ms + duration_ms
        while self.timeline.now_ms < until_ms and self.is_quiet():
            self._run(LOOK_EVERY_MS)
        return self.is_quiet()

    @property
    def _settle_within_ms(self) -> int:
        """How long the group may take: more where messages refer to few, or few can be asked for.

        A latecomer learns of the others' messages a causal history at a time and asks for as many
        as its buffer takes; each time it asks by T_max, and is answered within T_max of that. A
        rate limit doubles it, since answers wait for their epochs.
        """
        scenario, parameters = self.scenario, self.scenario.parameters
        a_round = min(parameters.causal_history_size, parameters.repair_buffer_size)
        rounds = len(self.ledger) // a_round
        settle_ms = scenario.settle_within_ms + rounds * 2 * RepairOptions().t_max_ms
        return 2 * settle_ms if scenario.habits.budget else settle_ms

    def _run(self, duration_ms: int) -> None:
        self.timeline.run_until(self.timeline.now_ms + duration_ms)

    # -- looks at the whole group ------------------------------------------------------------------

    def is_quiet(self) -> bool:
        """Return True if nothing is pending, and all message logs are equal. If equal logs are not
        promised, participants must know of every difference between their logs."""
        return self._is_at_rest() and (
            self._are_equal() or not (self._must_be_equal() or self._unnoticed())
        )

    def _is_at_rest(self) -> bool:
        """Return True if nothing is pending.

        What a core delivered and has not on disk yet is not known to its watch: a log that is
        longer than the watch's is not at rest. Nor is a participant that Store has not answered.
        """
        for participant in self._present():
            core, watch = participant.core, participant.watch
            assert core is not None
            if (
                participant.is_searching
                or len(watch.window) != len(core.log)
                or core.outgoing_buffer.entries
                or any(core.missing_tables)
                or core.incoming_buffer.parked
            ):
                return False
        return True

    def _are_equal(self) -> bool:
        return len({(p.watch.knowledge, len(p.watch.window)) for p in self._present()}) <= 1

    def _must_be_equal(self) -> bool:
        """Return True if each message refers to all before it, so that none can be lost
        unnoticed."""
        return self.scenario.parameters.causal_history_size >= Parameters().causal_history_size

    def _unnoticed(self) -> list[str]:
        """Participants whose log differs from another one, and that do not name one whose log
        does."""
        present, unnoticed = self._present(), []
        knowledge = {participant.name: participant.watch.knowledge for participant in present}
        for participant in present:
            assert participant.core is not None
            own = participant.watch.knowledge
            named = participant.core.progress().different_from
            if any(other != own for other in knowledge.values()) and not any(
                knowledge.get(name, own) != own for name in named
            ):
                unnoticed.append(participant.name)
        return unnoticed

    def _mistaken(self) -> list[str]:
        """Participants that take an equal log for a different one."""
        present = self._present()
        knowledge = {participant.name: participant.watch.knowledge for participant in present}
        return [
            participant.name
            for participant in present
            if participant.core is not None
            and any(
                knowledge.get(name) == participant.watch.knowledge
                for name in participant.core.progress().different_from
            )
        ]

    def check(self) -> None:
        """Check whole logs against the events of each participant and against each other."""
        seen: dict[tuple[int, int], Watched] = {}
        for participant in self._present():
            watch, core = participant.watch, participant.core
            assert core is not None
            if participant.process is None or participant.process.is_behind:
                continue
            watch.check_log(core)
            agenda = participant.process.driver.engine.agenda
            watch.check_segments(agenda.is_planned(Slot.SEGMENTS))
            first = seen.setdefault((watch.knowledge, len(watch.window)), participant)
            assert first.core is not None
            if first is not participant and (
                # In a large group the ledger has each entry compared, and this takes minutes.
                watch.window != first.watch.window
                or (
                    len(self.participants) <= OFTEN_CHECKED
                    and core.log.digest() != first.core.log.digest()
                )
            ):
                raise InvariantViolated(
                    "equal knowledge makes equal logs",
                    watch.name,
                    self.ledger.now_ms(),
                    "",
                    f"it has the messages of {first.name} and another log",
                )

    def _check_end(self) -> None:
        present = self._present()
        if not self.is_quiet():
            raise InvariantViolated(self._end(), "all", self.ledger.now_ms(), "", "not for long")
        self._check_mistakes()
        somewhere = {i for participant in present for i in participant.watch.window}
        for participant in present:
            participant.watch.check_settled()
        for participant in self.participants:
            for message_id in participant.watch.acknowledged():
                core = participant.core
                entry = core.log.get(message_id) if core else None
                record = entry and self.ledger.get(message_id, entry.content)
                if record and record.holders and message_id not in somewhere:
                    raise InvariantViolated(
                        "what is acknowledged stays",
                        participant.name,
                        self.ledger.now_ms(),
                        message_id,
                        "the logs do not have it",
                    )

    def _end(self) -> str:
        """What must hold in the end."""
        return EQUAL if self._must_be_equal() else NOTICED

    def _check_mistakes(self) -> None:
        """No participant takes an equal log for a different one for long: one that was different
        sends its present root at its next turn."""
        began_ms = self.timeline.now_ms
        while mistaken := self._mistaken():
            if self.timeline.now_ms - began_ms > 2 * self.scenario.settle_within_ms:
                detail = "it says that an equal log is different"
                raise InvariantViolated(AGREED, mistaken[0], self.ledger.now_ms(), "", detail)
            self._run(LOOK_EVERY_MS)

    def _present(self) -> list[Watched]:
        return [participant for participant in self.participants if participant.core is not None]

    def _differences(self) -> str:
        lines = []
        for participant in self._present():
            core = participant.core
            assert core is not None
            waits = core.statistics()
            lines.append(
                f"{participant.name} has {waits.log_length}, misses {waits.missing}, parks "
                f"{waits.incoming}, unacknowledged {waits.outgoing}"
                + (", and says that logs differ" if core.progress().different_from else "")
            )
        return "; ".join(lines[:20])

    def _in_store(self, message_hash: bytes) -> bool:
        return self.store is not None and self.store.has(message_hash)

    def _count(self) -> tuple[int, int]:
        steps = sum(watch.steps for watch in self.watches)
        return steps, sum(watch.delivered for watch in self.watches)


def name_of(number: int) -> str:
    """Return the name of the participant with a number."""
    return f"p{number}"


def channel_options(habits: Habits) -> ChannelOptions:
    """Return the options of the engine for a scenario's habits."""
    return ChannelOptions(
        segmentation=habits.segmentation,
        segment_size_bytes=habits.segment_bytes,
        limits=Limits(payload_bytes=MAX_BYTES),
        rate_limit=RateLimitOptions(habits.budget > 0, habits.budget, habits.epoch_s),
        confirm_interval_ms=habits.confirm_interval_ms,
    )


def core_options(parameters: Parameters) -> SdsOptions:
    """Return the options of the core for a scenario's parameters."""
    return SdsOptions(
        causal_history_size=parameters.causal_history_size,
        retry_interval_ms=parameters.retry_interval_ms,
        max_retry_attempts=parameters.max_retry_attempts,
        sync_min_interval_ms=parameters.sync_min_interval_ms,
        timeout_for_lost_messages_ms=parameters.timeout_for_lost_messages_ms,
        bloom=BloomParameters(parameters.bloom_capacity, parameters.bloom_error_rate),
        limits=CoreLimits(
            incoming_messages=parameters.incoming_messages,
            log_window_entries=parameters.log_window_entries,
        ),
        repair=RepairOptions(
            enabled=parameters.retrieval_strategy not in WITHOUT_OTHERS,
            buffer_size=parameters.repair_buffer_size,
            cache_bytes=parameters.repair_cache_bytes,
            # No simulated Store is so good that nobody need be asked after a restart.
            cache_durably=True,
            repair_on_demand=True,
        ),
    )
