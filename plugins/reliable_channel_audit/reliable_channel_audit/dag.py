"""Causal graph (DAG) of a channel, with its messages, their references, and its shape."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from .facts import message_in
from .journals import Participant, lived
from .reception import TAKEN


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
    depth: int
    """Length of the longest chain of earlier messages that ends with this message."""


def said_by(participant: Participant) -> Iterator[Said]:
    """Yield the messages that one participant sent or received, some several times."""
    whose = participant.channel_id, participant.participant_id
    for _, _, _, line in lived(*whose, participant.paths):
        is_new = line.outcome in TAKEN or line.source == "content"
        message = message_in(line) if is_new else None
        lamport = None if message is None else message.lamport_timestamp
        if message is not None and lamport is not None and lamport < 2**63:
            ids, at_ms = (message.message_id, message.sender_id), line.at_ms or 0
            yield Said(*whose, *ids, lamport, at_ms, message.causal_ids)


def places(said: Iterable[Said]) -> list[DagPosition]:
    """Return the position of each message in the causal graph, in log order. `said` must contain
    each message of the channel exactly once."""
    order = sorted(said, key=lambda each: (each.lamport_timestamp, each.message_id))
    there = {each.message_id for each in order}
    depths: dict[str, int] = {}
    found = []
    for each in order:
        own = set(each.references)
        # A reference to a later message, which no honest member makes, is no chain.
        depths[each.message_id] = depth = 1 + max((depths.get(one, 0) for one in own), default=0)
        orphaned = sum(one not in there for one in own)  # `own - there` looks at all of `there`
        found.append(DagPosition(each.channel_id, *each[2:6], len(own), orphaned, depth))
    return found


class Shape(NamedTuple):
    """Messages and references of each channel, one row for each channel. Depth is the length of the
    longest chain of messages. Orphans refer to messages that no participant has."""

    channel_id: str
    messages: int
    edges: int
    depth: int
    orphans: int


def union(said: Iterable[Said]) -> dict[str, list[Said]]:
    """Return each message of a channel once, as the first participant saw it."""
    firsts: dict[tuple[str, str], Said] = {}
    for each in said:
        known = firsts.setdefault((each.channel_id, each.message_id), each)
        if (each.at_ms, each.participant_id) < (known.at_ms, known.participant_id):
            firsts[each.channel_id, each.message_id] = each
    channels: defaultdict[str, list[Said]] = defaultdict(list)
    for each in firsts.values():
        channels[each.channel_id].append(each)
    return dict(sorted(channels.items()))


def shape(nodes: Sequence[DagPosition]) -> Shape:
    """Return the shape of one channel's causal graph."""
    return Shape(
        nodes[0].channel_id,
        len(nodes),
        sum(each.references for each in nodes),
        max(each.depth for each in nodes),
        sum(each.orphaned > 0 for each in nodes),
    )
