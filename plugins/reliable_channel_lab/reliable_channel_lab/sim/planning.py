"""Timeline of the writes and faults in a scenario."""

from collections.abc import Callable, Sequence
from typing import Any

from .network import Network
from .participant import Participant
from .scenario import (
    Attack,
    ClockJump,
    Crash,
    DiskDamage,
    DiskFull,
    Fault,
    Hostile,
    Join,
    Leave,
    Outage,
    Partition,
    Scenario,
    StoreAway,
)
from .store import Store
from .timeline import Timeline


class Planner:
    """Planner that plans the actions of a scenario. The timeline begins when the scenario
    begins."""

    def __init__(
        self,
        timeline: Timeline,
        network: Network,
        store: Store | None,
        participants: Sequence[Participant[Any]],
        attack: Callable[[Attack], None] | None = None,
    ) -> None:
        self._timeline, self._network, self._store = timeline, network, store
        self._participants, self._attack = participants, attack
        self._start_ms = timeline.now_ms

    def add(self, scenario: Scenario) -> None:
        """Plan all actions of the scenario, and start participants that are present from the
        beginning."""
        late = {fault.who for fault in scenario.faults if isinstance(fault, Join)}
        for fault in scenario.faults:
            if isinstance(fault, ClockJump) and fault.at_ms == 0:
                self._participants[fault.who].clock_skew_ms += fault.by_ms
            else:
                self._add(fault)
        for participant in self._participants:
            if participant.number not in late:
                participant.start()
        for write in scenario.writes:
            self._at(write.at_ms, self._participants[write.who].write)

    def _add(self, fault: Fault) -> None:
        network, store, participants = self._network, self._store, self._participants
        match fault:
            case Partition():
                self._at(fault.at_ms, network.partitions.append, fault)
                self._at(fault.until_ms, network.partitions.remove, fault)
            case Outage():
                self._at(fault.at_ms, participants[fault.who].set_node_away, True)
                self._at(fault.until_ms, participants[fault.who].set_node_away, False)
            case StoreAway() if store is not None:
                self._at(fault.at_ms, setattr, store, "is_away", True)
                self._at(fault.until_ms, setattr, store, "is_away", False)
            case ClockJump():
                self._at(fault.at_ms, participants[fault.who].set_clock, fault.by_ms)
            case Crash():
                self._at(fault.at_ms, participants[fault.who].stop)
                self._at(fault.until_ms, participants[fault.who].start)
            case DiskDamage():
                who = participants[fault.who]
                self._at(fault.at_ms, who.damage_disk, fault.damage, fault.writes)
                self._at(fault.until_ms, who.start)
            case DiskFull():
                self._at(fault.at_ms, participants[fault.who].fill_disk, True)
                self._at(fault.until_ms, participants[fault.who].fill_disk, False)
            case Join():
                self._at(fault.at_ms, participants[fault.who].start)
            case Leave():
                self._at(fault.at_ms, participants[fault.who].leave)
            case Hostile() if self._attack is not None:
                for number in range(fault.count):
                    self._at(fault.at_ms + 1_000 * number, self._attack, fault.attack)
            case _:
                pass

    def _at(self, at_ms: int, action: Callable[..., None], *arguments: object) -> None:
        self._timeline.at(self._start_ms + at_ms, action, *arguments)
