"""What the journals of a group say about the promises: read after the dust has settled.

A journal is one participant's, over all its lives; `journal_opened` begins each.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from reliable_channel.sds.dialects import SpecCodec
from reliable_channel.sds.message import Message
from tests.journal_lines import json_lines


@dataclass
class Delivery:
    """A message as its participant's application was told it."""

    message_id: str
    redelivered: bool
    missing: frozenset[str]


@dataclass
class Story:
    name: str
    lives: list[list[Delivery]] = field(default_factory=list)
    """What was told in each life of the process, in order."""
    accepted: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    wire: dict[str, Message] = field(default_factory=dict)
    """Each message seen on the wire."""


def read(name: str, path: Path) -> Story:
    """Read a journal; a line that a killed process left half is passed over."""
    story = Story(name)
    for record in json_lines(path):
        match record["event"]:
            case "journal_opened":
                story.lives.append([])
            case "sending_message":
                story.accepted.append(record["message_id"])
            case "send_failed" | "delivery_failed" | "message_lost":
                story.failed.append(f"{record['event']} of {record['message_id']}")
            case "message_received":
                missing = frozenset(entry["message_id"] for entry in record["missing"])
                story.lives[-1].append(
                    Delivery(record["message_id"], record["redelivered"], missing)
                )
            case "wire_in" | "wire_out":
                message = SpecCodec().decode(b64decode(record["payload"]))
                story.wire[message.message_id] = message
    return story


def broken_promises(stories: Sequence[Story], logs: Mapping[str, Sequence[str]]) -> list[str]:
    """Each line names a promise that was broken; `logs` are the ids of each log in the end."""
    accepted = {message_id for story in stories for message_id in story.accepted}
    wire = {i: message for story in stories for i, message in story.wire.items()}
    found = []
    if len({tuple(log) for log in logs.values()}) > 1:
        found.append(f"logs differ: { {name: len(log) for name, log in logs.items()} }")
    for story in stories:
        log = logs[story.name]
        found += [f"{story.name}: {i} was accepted and is missing" for i in accepted - set(log)]
        found += [f"{story.name}: {failure}" for failure in story.failed]
        # Not those that were told to be accepted: the process may have died before it said so.
        own = {i for i in log if wire[i].sender_id == story.name}
        found += _told_once(story, set(log) - own)
        found += redelivered_last(story)
        found += _causal_order(story, own, wire)
    return found


def _told_once(story: Story, others: Set[str]) -> Iterator[str]:
    """Each message of others was told, and told as new at most once."""
    told = [each for life in story.lives for each in life]
    new = [each.message_id for each in told if not each.redelivered]
    for message_id in sorted({i for i in new if new.count(i) > 1}):
        yield f"{story.name}: {message_id} was told as new {new.count(message_id)} times"
    for message_id in sorted(others - {each.message_id for each in told}):
        yield f"{story.name}: {message_id} is in the log and was never told"


def redelivered_last(story: Story) -> Iterator[str]:
    """What is emitted again is the end of what was emitted before: all else was confirmed. A life
    that is killed within it has told a part of that end."""
    order: list[str] = []
    confirmed = 0  # so many of `order`, at least
    for number, life in enumerate(story.lives):
        again = [each.message_id for each in life if each.redelivered]
        if any(each.redelivered for each in life[len(again) :]):
            yield f"{story.name}: in life {number} something new came before what is emitted again"
        known = set(order)
        repeated = [message_id for message_id in again if message_id in known]
        if repeated:
            begins = order.index(repeated[0])
            ends = begins + len(repeated)
            whole = len(again) < len(life)
            if begins < confirmed or order[begins:ends] != repeated or (whole and order[ends:]):
                yield f"{story.name}: in life {number} something confirmed was emitted again"
            confirmed = max(confirmed, begins)
        order += [each.message_id for each in life if each.message_id not in known]


def _causal_order(story: Story, own: Set[str], wire: Mapping[str, Message]) -> Iterator[str]:
    known = set(own)
    for each in (each for life in story.lives for each in life):
        unmet = set(wire[each.message_id].causal_ids) - known - each.missing
        if unmet:
            yield f"{story.name}: {each.message_id} was told before {sorted(unmet)}"
        known.add(each.message_id)
