"""The causal DAG of a channel: messages, what they refer to, and its shape, over plain values."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from .journals import Participant, lived
from .lines import WIRE_IN, WIRE_OUT
from .replay import message_of

_TAKEN: Final = frozenset({"delivered", "parked"})


class Said(NamedTuple):
    """A message and what it refers to, as a journal has it."""

    channel_id: str
    participant_id: str
    """Whose journal that is."""
    message_id: str
    sender_id: str
    lamport_timestamp: int
    at_ms: int
    """When it was seen there first."""
    references: Sequence[str]
    """Message ids of its causal history."""


class DagPosition(NamedTuple):
    """Where a message stands in the DAG of its channel."""

    channel_id: str
    message_id: str
    sender_id: str
    lamport_timestamp: int
    at_ms: int
    references: int
    orphaned: int
    """References to messages that no participant has."""
    depth: int | None
    """Messages in the longest chain that ends here, this one counted; None in a circle or after
    one, which no honest member can make."""
    branches: int
    """Messages up to here, in log order, to which none of them refers: so many branches go on side
    by side."""
    is_head: bool
    """No message refers to it."""


def said_by(participant: Participant) -> Iterator[Said]:
    """The messages that one participant sent or took, each once."""
    whose = participant.channel_id, participant.participant_id
    seen = set()
    for _, _, _, line in lived(*whose, participant.paths):
        is_sent = line.event == WIRE_OUT and line.source == "content"
        if not is_sent and not (line.event == WIRE_IN and line.outcome in _TAKEN):
            continue
        message = message_of(line.payload)
        if message is None or message.message_id in seen:
            continue
        if message.lamport_timestamp is None or message.lamport_timestamp >= 2**63:
            continue
        seen.add(message.message_id)
        yield Said(
            *whose,
            message.message_id,
            message.sender_id,
            message.lamport_timestamp,
            line.at_ms or 0,
            message.causal_ids,
        )


def places(said: Sequence[Said]) -> list[DagPosition]:
    """The shape of a DAG, in log order; takes each message of one channel once."""
    order = sorted(said, key=lambda each: (each.lamport_timestamp, each.message_id))
    references = {each.message_id: set(each.references) for each in order}
    depths = _depths(references)
    referred = set[str]().union(*references.values())
    found, heads, named = [], set[str](), set[str]()
    for each in order:
        own = references[each.message_id]
        named |= own
        heads -= own
        if each.message_id not in named:
            heads.add(each.message_id)
        found.append(
            DagPosition(
                each.channel_id,
                *each[2:6],
                len(own),
                sum(each not in references for each in own),  # `own - keys` looks at all keys
                depths.get(each.message_id),
                len(heads),
                each.message_id not in referred,
            )
        )
    return found


class Shape(NamedTuple):
    """Messages and references, a channel a row.

    Depth is the longest chain, width the most messages whose chains have one length: they cannot
    know of each other. Branches went on side by side, heads were open at the end; orphans refer to
    messages that no participant has.
    """

    channel_id: str
    messages: int
    edges: int
    depth: int | None
    branches: float
    heads: int
    orphans: int
    in_circles: int
    width: int | None


def union(said: Iterable[Said]) -> dict[str, list[Said]]:
    """By channel each message once, as the first participant to see it has it, in log order."""
    firsts: dict[tuple[str, str], Said] = {}
    for each in said:
        known = firsts.setdefault((each.channel_id, each.message_id), each)
        if (each.at_ms, each.participant_id) < (known.at_ms, known.participant_id):
            firsts[each.channel_id, each.message_id] = each
    channels: defaultdict[str, list[Said]] = defaultdict(list)
    for each in sorted(firsts.values(), key=lambda each: (each.lamport_timestamp, each.message_id)):
        channels[each.channel_id].append(each)
    return dict(sorted(channels.items()))


def shape(nodes: Sequence[DagPosition]) -> Shape:
    """Sum up the places of one channel."""
    depths = Counter(each.depth for each in nodes if each.depth is not None)
    return Shape(
        nodes[0].channel_id,
        len(nodes),
        sum(each.references for each in nodes),
        max(depths, default=None),
        sum(each.branches for each in nodes) / len(nodes),
        sum(each.is_head for each in nodes),
        sum(each.orphaned > 0 for each in nodes),
        sum(each.depth is None for each in nodes),
        max(depths.values(), default=None),
    )


def _depths(references: Mapping[str, set[str]]) -> dict[str, int]:
    """The longest chain that ends at each message, first those that wait for none (Kahn)."""
    waits = {each: len(own & references.keys()) for each, own in references.items()}
    followers: defaultdict[str, list[str]] = defaultdict(list)
    for each, own in references.items():
        for reference in own:
            followers[reference].append(each)
    ready = deque(each for each, count in waits.items() if not count)
    deepest = dict.fromkeys(references, 1)
    done = {}
    while ready:
        each = ready.popleft()
        done[each] = deepest[each]
        for follower in followers[each]:
            deepest[follower] = max(deepest[follower], done[each] + 1)
            waits[follower] -= 1
            if not waits[follower]:
                ready.append(follower)
    return done
