"""Causal graph (DAG) of a channel, with its messages, their references, and its shape."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from .journals import Participant, lived
from .lines import WIRE_IN, WIRE_OUT
from .replay import message_of

_TAKEN: Final = frozenset({"delivered", "parked"})


class Said(NamedTuple):
    """Message with its references, as a journal shows it."""

    channel_id: str
    participant_id: str
    """Participant whose journal has the message."""
    message_id: str
    sender_id: str
    lamport_timestamp: int
    at_ms: int
    """Time at which the message first appears in that journal."""
    references: Sequence[str]
    """Ids in the causal history of the message."""


class DagPosition(NamedTuple):
    """Position of a message in the causal graph of its channel."""

    channel_id: str
    message_id: str
    sender_id: str
    lamport_timestamp: int
    at_ms: int
    references: int
    orphaned: int
    """Number of the message's references to messages that no participant has."""
    depth: int | None
    """Length of the longest chain of messages that ends with this message. For a message in or
    after a cycle, which no honest member can make, `depth` is None."""
    branches: int
    """Number of parallel branches at this place of the log, which are messages without a reference
    so far."""
    is_head: bool
    """True if no message refers to this message."""


def said_by(participant: Participant) -> Iterator[Said]:
    """Yield the messages that one participant sent or received, each once."""
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
    """Yield the position of each message in the causal graph, in log order. `said` must contain
    each message of the channel exactly once."""
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
    """Messages and references of each channel, one row for each channel.

    Depth is the length of the longest chain of messages. Width is the largest number of messages at
    one depth, none of which can refer to each other. Branches are parallel chains, heads have no
    followers, and orphans refer to messages that no participant has.
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
    """Return each message of a channel once, in log order, as the first participant saw it."""
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
    """Return the shape of one channel's causal graph."""
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
