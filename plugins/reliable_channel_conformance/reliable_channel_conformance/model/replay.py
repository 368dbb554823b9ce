"""Replay of a model's trace by the core. Each step of the core must emit the same events and lead
to the same state as in the model.

The model gives the order of the actions, and the core performs them. Both clocks stand still until
healing, because a Lamport timestamp of the core is also a time.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeVar

from reliable_channel.sds import (
    SPEC,
    Behaviour,
    Message,
    RepairOptions,
    SdsOptions,
    SdsProtocol,
)
from reliable_channel.sds.bloom import BloomFilter, BloomParameters
from reliable_channel.sds.events import (
    MessageAcknowledged,
    MessageReceived,
    Outgoing,
    OutgoingKind,
)

from .group import Action, Group, Step, World
from .rules import Event, Packet, Participant, Rules, ids

T = TypeVar("T")

CHANNEL: Final = "model"
MINUTE_MS: Final = 60_000
LOST_AFTER_MS: Final = 1_000_000_000


class CountsSyncs(Rules):
    """Rules in which a sync message advances the clock, as in LIP 109 and in the core.

    Rules in which sync messages count have endless states, so they only check single traces.
    """

    def sync(self, me: Participant) -> tuple[Participant, Packet]:
        """Send a sync message (LIP 109, Periodic Sync Message)."""
        me, packet = super().sync(me)
        return me._replace(clock=me.clock + 1), packet


class Divergence(AssertionError):
    """Error that the core behaves differently than the model. The text of the error gives the
    actions and the difference."""


@dataclass(slots=True)
class Done:
    """Action of the cores, with the bytes that they sent and received."""

    action: Action
    at_ms: int
    sent: list[tuple[str, bytes]] = field(default_factory=list)
    received: list[tuple[str, bytes]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    logs: dict[str, tuple[str, ...]] = field(default_factory=dict)


class Player:
    """Cores of a group, which perform the actions of the model."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._now_ms = 0
        self._cores = {name: self._core(name) for name, _ in group.sends}
        self._content: dict[str, bytes] = {}
        self._syncs: dict[str, bytes] = {}
        self.done: list[Done] = []

    def replay(self, actions: Iterable[Action]) -> World:
        """Replay a trace with the model and the cores side by side. `replay` returns the last state
        of the model.

        Raises:
            Divergence: they differ.
        """
        world, done = self._group.initial(), list[Action]()
        for action in actions:
            step = next(each for each in self._group.steps(world) if each.action == action)
            done.append(action)
            self.done.append(Done(action, self._now_ms))
            events = self._do(action, world)
            self.done[-1].events = events
            self.done[-1].logs = {each.name: each.ids for each in step.world.participants}
            self._compare(step, events, done)
            world = step.world
        return world

    def _core(self, name: str) -> SdsProtocol:
        rules = self._group.rules
        counter = iter(range(1_000_000))
        return SdsProtocol(
            CHANNEL,
            name,
            now_ms=0,
            random=lambda: 0.5,
            listen_to=(SPEC,),
            id_function=lambda *_: f"{name}{next(counter)}",
            options=_options(rules),
        )

    def _do(self, action: Action, world: World) -> list[Event]:
        match action:
            case ("send", name):
                self._cores[name].send(b"content", self._now_ms)
                for sent in _taken(self._cores[name].outgoing):
                    self._content[sent.message_id] = sent.data
                    self.done[-1].sent.append((name, sent.data))
                    self._cores[name].dispatched(sent.message_id, self._now_ms)
            case ("sync", name):
                self._sync(name, broadcast=world.healed)
            case ("arrive", name, message_id):
                self._receive(name, self._packet(message_id, world))
            case ("give_up", name):
                # Alone, without what else would be due by then: it is one action of the model.
                self._cores[name]._sweeps.sweep_incoming(self._now_ms + 2 * LOST_AFTER_MS)
            case ("heal",):
                self._syncs.clear()
            case ("retry", name):
                for message_id in list(self._cores[name].unacknowledged):
                    self._cores[name].resend(message_id, self._now_ms)
                self._broadcast(name, _taken(self._cores[name].outgoing))
            case ("answer", name):
                self._now_ms += MINUTE_MS
                self._cores[name]._sweeps.sweep_repair(self._now_ms)
                self._broadcast(name, _taken(self._cores[name].outgoing))
            case _:
                raise ValueError(f"unknown action {action!r}")
        return list(self._events())

    def _sync(self, name: str, *, broadcast: bool) -> None:
        core = self._cores[name]
        if broadcast:
            self._now_ms += MINUTE_MS  # a request that was made before is due again
        core.send_sync(self._now_ms, message_id=f"{name}-sync")
        sent = [each for each in _taken(core.outgoing) if each.kind is not OutgoingKind.REPAIR]
        if broadcast:
            self._broadcast(name, sent)
        else:
            self._syncs[f"{name}-sync"] = sent[0].data
            self.done[-1].sent.append((name, sent[0].data))

    def _broadcast(self, name: str, packets: Iterable[Outgoing]) -> None:
        for packet in packets:
            self.done[-1].sent.append((name, packet.data))
            for other in self._cores:
                if other != name:
                    self._receive(other, packet.data)

    def _receive(self, name: str, data: bytes) -> None:
        self._cores[name].receive(data, self._now_ms)
        self.done[-1].received.append((name, data))

    def _packet(self, message_id: str, world: World) -> bytes:
        if message_id in self._content:
            return self._content[message_id]
        if message_id in self._syncs:
            return self._syncs[message_id]
        return self._lie(message_id)

    def _lie(self, message_id: str) -> bytes:
        bloom = BloomFilter(BloomParameters().layout)
        for each in self._content:
            bloom.insert(each)
        held = bytes(bloom)
        if self._group.lie == "everything":
            held = b"\xff" * len(held)
        sender = message_id.removesuffix("-sync")
        return SPEC.codec.encode(Message(sender, message_id, CHANNEL, 1, bloom_filter=held))

    def _events(self) -> Iterator[Event]:
        for name, core in self._cores.items():
            for event in _taken(core.events):
                if isinstance(event, MessageReceived):
                    yield Event("delivered", name, event.message_id)
                elif isinstance(event, MessageAcknowledged):
                    yield Event("acknowledged", name, event.message_id)

    def _compare(self, step: Step, events: list[Event], done: list[Action]) -> None:
        # Acknowledgements of one packet have no order.
        if sorted(events) != sorted(step.events) or _delivered(events) != _delivered(step.events):
            raise Divergence(
                f"{done}: the model emits {step.events}, but the core emits {tuple(events)}"
            )
        for model in step.world.participants:
            expected, found = _facts(model), self._facts(model.name)
            if expected != found:
                raise Divergence(
                    f"{done}: participant {model.name} is {expected} in the model, but {found} in "
                    "the core"
                )

    def _facts(self, name: str) -> dict[str, object]:
        core = self._cores[name]
        missing = (missing.entry.message_id for missing in core.missing())
        return {
            "log": tuple(entry.message_id for entry in core.log),
            "missing": ids(missing, core.incoming_buffer.queued),
            "parked": ids(core.incoming_buffer.parked),
            "unacknowledged": ids(core.unacknowledged),
        }


def _taken(told: list[T]) -> list[T]:
    taken = told.copy()
    told.clear()
    return taken


def _facts(me: Participant) -> dict[str, object]:
    return {
        "log": me.ids,
        "missing": ids(each for each in me.missing if each not in me.lost),
        "parked": ids(packet.message_id for packet in me.parked),
        "unacknowledged": ids(message_id for message_id, _ in me.unacknowledged),
    }


def _delivered(events: Iterable[Event]) -> dict[str, list[str]]:
    delivered: dict[str, list[str]] = {}
    for event in events:
        if event.kind == "delivered":
            delivered.setdefault(event.participant, []).append(event.message_id)
    return delivered


def _options(rules: Rules) -> SdsOptions:
    return SdsOptions(
        causal_history_size=rules.history,
        possible_acks_threshold=rules.threshold,
        timeout_for_lost_messages_ms=LOST_AFTER_MS,
        max_retry_attempts=1_000_000,
        behaviour=Behaviour(threshold_fits_group=False, compare_logs=False),
        repair=RepairOptions(
            t_min_ms=0, t_max_ms=1, max_request_attempts=1_000_000, max_requests_per_message=100
        ),
    )
