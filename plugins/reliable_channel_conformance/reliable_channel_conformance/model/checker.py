"""Checker of a model that visits all its states. States are visited breadth first, so that a trace
to a broken promise is a shortest trace."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import Final

from .group import Action, Group, Step, World

Invariant = Callable[[World, Step], str | None]
"""Function that returns the promise that a step breaks, or None."""


@dataclass(frozen=True, slots=True)
class Broken:
    """Broken promise, with the shortest trace to the state that breaks it."""

    promise: str
    detail: str
    trace: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class Report:
    states: int
    transitions: int
    complete: bool
    """True if the checker visited all states."""
    broken: Broken | None = None


def check(group: Group, *, max_states: int = 1_000_000) -> Report:
    """Visit all states of a group, and stop at the first broken promise.

    Delivery to all participants is checked at the end. Under fairness, a finite system reaches
    every state that always remains reachable. The promise of delivery therefore holds if each
    healed state can lead to full delivery.
    """
    seen: dict[World, World | None] = {group.initial(): None}
    queue, transitions = deque(seen), 0
    before_healed: dict[World, list[World]] = {}
    while queue:
        world = queue.popleft()
        for step in group.steps(world):
            transitions += 1
            for promise, invariant in INVARIANTS.items():
                if step.events and (detail := invariant(world, step)):
                    trace = (*trace_to(group, seen, world), step.action)
                    return Report(len(seen), transitions, False, Broken(promise, detail, trace))
            if step.world == world:
                continue
            after = _representative(group, step.world)
            if after.healed:
                before_healed.setdefault(after, []).append(world)
            if after not in seen:
                if len(seen) == max_states:
                    return Report(len(seen), transitions, False)
                seen[after] = world
                queue.append(after)
    return Report(len(seen), transitions, True, _stuck(group, seen, before_healed))


def _stuck(
    group: Group, seen: Mapping[World, World | None], before_healed: Mapping[World, list[World]]
) -> Broken | None:
    """The first healed state from which nothing leads to one where all have everything."""
    hopeful = {world for world in before_healed if group.is_done(world)}
    queue = deque(hopeful)
    while queue:
        for before in before_healed.get(queue.popleft(), ()):
            if before.healed and before not in hopeful:
                hopeful.add(before)
                queue.append(before)
    for world in seen:
        if world.healed and world not in hopeful:
            lacking = [
                f"{each.name} has {list(each.ids)}, misses {list(each.missing)}"
                for each in world.participants
            ]
            return Broken("delivery to all", "; ".join(lacking), trace_to(group, seen, world))
    return None


def trace_to(group: Group, seen: Mapping[World, World | None], world: World) -> tuple[Action, ...]:
    """Return the actions that lead to a state. `seen` maps each state to the state before it."""
    path = [world]
    while (before := seen[path[-1]]) is not None:
        path.append(before)
    actions, here = list[Action](), path[-1]
    for after in reversed(path[:-1]):
        step = next(s for s in group.steps(here) if _representative(group, s.world) == after)
        actions.append(step.action)
        here = step.world
    return tuple(actions)


def _representative(group: Group, world: World) -> World:
    """The least of all worlds that differ in the names of mere readers alone."""
    readers = [name for name, count in group.sends if not count]
    if len(readers) < 2:
        return world
    return min(
        _renamed(world, dict(zip(readers, names, strict=True))) for names in permutations(readers)
    )


def _renamed(world: World, names: Mapping[str, str]) -> World:
    renamed = []
    for each in world.participants:
        seen_by = tuple(
            (message_id, tuple(sorted(names.get(name, name) for name in by)))
            for message_id, by in each.unacknowledged
        )
        renamed.append(each._replace(name=names.get(each.name, each.name), unacknowledged=seen_by))
    syncs = []
    for packet in world.syncs:
        name = names.get(packet.sender, packet.sender)
        syncs.append(packet._replace(sender=name, message_id=f"{name}-sync"))
    return world._replace(participants=tuple(sorted(renamed)), syncs=tuple(sorted(syncs)))


def _exactly_once(world: World, step: Step) -> str | None:
    """A message is delivered once to each participant, and never to its sender."""
    for event in step.events:
        me = next(each for each in world.participants if each.name == event.participant)
        again = sum(other == event for other in step.events) > 1
        if event.kind == "delivered" and (again or event.message_id in me.ids):
            return f"{event.participant} delivers {event.message_id} again"
    return None


def _causal_order(world: World, step: Step) -> str | None:
    """What a message refers to is delivered before it, or given up with an event."""
    sent = {packet.message_id: packet for packet in step.world.content}
    for me in world.participants:
        there = {*me.ids, *me.lost}
        for event in step.events:
            if event.kind == "delivered" and event.participant == me.name:
                lacking = set(sent[event.message_id].history) - there
                if step.action[0] == "give_up":
                    lacking -= set(me.missing)
                if lacking:
                    return f"{me.name} delivers {event.message_id} before {sorted(lacking)}"
                there.add(event.message_id)
    return None


def _equal_logs(world: World, step: Step) -> str | None:
    """Logs have the messages that both have in one order, with references before referrers."""
    sent = {packet.message_id: packet for packet in step.world.content}
    positions = [{m: at for at, m in enumerate(each.ids)} for each in step.world.participants]
    for me, mine in zip(step.world.participants, positions, strict=True):
        for message_id, at in mine.items():
            history = sent[message_id].history if message_id in sent else ()
            late = [m for m in history if mine.get(m, -1) > at]
            if late:
                return f"{me.name} logs {message_id} before {late}"
        for theirs in positions:
            common = [m for m in mine if m in theirs]
            if common != sorted(common, key=theirs.__getitem__):
                return f"{me.name} has {common} , which another log has in another order"
    return None


def _true_acknowledgements(world: World, step: Step) -> str | None:
    """What is acknowledged was received by another participant."""
    for event in step.events:
        if event.kind == "acknowledged" and not any(
            event.message_id in each.received
            for each in step.world.participants
            if each.name != event.participant
        ):
            return f"{event.participant} takes {event.message_id} for received; no other has it"
    return None


INVARIANTS: Final[Mapping[str, Invariant]] = {
    "exactly once": _exactly_once,
    "causal order": _causal_order,
    "equal logs": _equal_logs,
    "true acknowledgements": _true_acknowledgements,
}
