"""Group over a network that loses, repeats and reorders packets until it is healed.

Until healing, a sent packet may arrive at any time, any number of times, or never. Loss, delay,
duplication and reordering therefore need no separate actions. The network contains only the newest
sync message of each participant. Healing removes all packets from the network. After healing, a
broadcast reaches all other participants at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from .rules import Event, Packet, Participant, Rules, ids

Action = tuple[str, ...]
"""Name of an action, its participant, and its object."""
EVERYTHING: Final = "*"
"""Single member that stands for a filter in which all bits are set."""


class World(NamedTuple):
    """State of a group and its network."""

    participants: tuple[Participant, ...]
    content: tuple[Packet, ...] = ()
    """Packets of all messages that were ever sent."""
    syncs: tuple[Packet, ...] = ()
    healed: bool = False


class Step(NamedTuple):
    action: Action
    world: World
    events: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """Group whose transitions between states a checker explores."""

    sends: tuple[tuple[str, int], ...]
    """Participants, each with the number of messages that it sends."""
    rules: Rules = Rules()
    syncs_early: bool = True
    """True if sync messages are also sent before healing."""
    gives_up: bool = False
    liars: tuple[str, ...] = ()
    """Names of strangers whose filters contain messages that they never received."""
    lie: str = "plausible"
    """Kind of the false filter, with all bits set or with all ids and room for more
    (`plausible`)."""

    def initial(self) -> World:
        """Return the state in which no message has been sent."""
        return World(tuple(Participant(name) for name, _ in self.sends))

    def steps(self, world: World) -> Iterator[Step]:
        """Yield all possible next states of a state."""
        yield from self._healed(world) if world.healed else self._wild(world)

    def is_done(self, world: World) -> bool:
        """Return True if all participants have all messages in the same order and wait for
        nothing."""
        everything = ids(packet.message_id for packet in world.content)
        return all(
            ids(each.ids) == everything and not each.missing and not each.parked
            for each in world.participants
        )

    def _wild(self, world: World) -> Iterator[Step]:
        for at, me in enumerate(world.participants):
            sent = sum(packet.sender == me.name for packet in world.content)
            if sent < dict(self.sends)[me.name]:
                changed, packet = self.rules.send(me, f"{me.name}{sent}")
                after = _put(world, at, changed)
                content = tuple(sorted((*world.content, packet)))
                yield Step(("send", me.name), after._replace(content=content))
            if self.syncs_early:
                changed, packet = self.rules.sync(me)
                others = tuple(each for each in world.syncs if each.sender != me.name)
                after = _put(world, at, changed)._replace(syncs=tuple(sorted((*others, packet))))
                yield Step(("sync", me.name), after)
            for packet in (*world.content, *world.syncs, *self._lies(world)):
                changed, events = self.rules.receive(me, packet)
                action = ("arrive", me.name, packet.message_id)
                yield Step(action, _put(world, at, changed), tuple(events))
            if self.gives_up and me.missing:
                changed, events = self.rules.give_up(me)
                yield Step(("give_up", me.name), _put(world, at, changed), tuple(events))
        yield Step(("heal",), world._replace(healed=True, syncs=()))

    def _healed(self, world: World) -> Iterator[Step]:
        sent = {packet.message_id: packet for packet in world.content}
        for at, me in enumerate(world.participants):
            changed, packet = self.rules.sync(me)
            yield self._broadcast(("sync", me.name), _put(world, at, changed), [packet])
            if me.unacknowledged:
                again = [sent[message_id] for message_id, _ in me.unacknowledged]
                yield self._broadcast(("retry", me.name), world, again)
            if me.answers:
                answers = [sent[message_id] for message_id in me.answers]
                after = _put(world, at, me._replace(answers=()))
                yield self._broadcast(("answer", me.name), after, answers)

    def _broadcast(self, action: Action, world: World, packets: list[Packet]) -> Step:
        events = list[Event]()
        for packet in packets:
            for at, other in enumerate(world.participants):
                changed, more = self.rules.receive(other, packet)
                world = _put(world, at, changed)
                events += more
        return Step(action, world, tuple(events))

    def _lies(self, world: World) -> Iterator[Packet]:
        everything = ids(packet.message_id for packet in world.content)
        held = (EVERYTHING,) if self.lie == "everything" else everything
        for liar in self.liars:
            yield Packet(f"{liar}-sync", liar, 0, (), held, (), is_sync=True)


def _put(world: World, at: int, participant: Participant) -> World:
    before = world.participants
    return world._replace(participants=(*before[:at], participant, *before[at + 1 :]))
