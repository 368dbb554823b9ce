"""What is true of a group whose run is known: says of its journals whether a promise was broken.

Written from the promises and not from the audit: it has what was really sent, in full, and looks at
the lines alone. It takes journals of which everything is due, of participants that keep their state
when they are killed.
"""

from __future__ import annotations

from base64 import b64decode
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from types import MappingProxyType
from typing import Any

from reliable_channel.sds.dialects import SpecCodec
from reliable_channel.sds.message import HistoryEntry, Message
from reliable_channel_lab.sim import Simulation

SETTLE_MS = 10_000
"""The audit's default, written down a second time."""

Lines = list[dict[str, Any]]


@dataclass(frozen=True)
class Ledger:
    """Every message that was sent, by id."""

    messages: Mapping[str, Message]
    logs: Mapping[str, frozenset[str]]
    """By participant the messages that its log had in the end."""
    settle_ms: int = SETTLE_MS
    """What happens so late before the end of a journal is not due."""

    @classmethod
    def of(cls, journals: Mapping[str, Lines]) -> Ledger:
        """From the journals as they were written, before anything happened to them."""
        sent = (
            _message(line["payload"])
            for lines in journals.values()
            for line in lines
            if line["event"] == "wire_out"
        )
        messages = {message.message_id: message for message in sent}
        return cls(messages, dict.fromkeys(journals, frozenset(messages)))

    @classmethod
    def of_run(cls, simulation: Simulation, settle_ms: int) -> Ledger:
        """From what the simulator knows, which asks no journal."""
        messages = {
            each.message_id: Message(
                each.sender_id,
                each.message_id,
                "",
                each.lamport_timestamp,
                tuple(HistoryEntry(message_id) for message_id in sorted(each.dependencies)),
                content=each.content,
            )
            for each in simulation.ledger
        }
        logs = {watch.name: frozenset(watch.window) for watch in simulation.watches}
        return cls(messages, logs, settle_ms)


def broken(
    ledger: Ledger,
    journals: Mapping[str, Lines],
    alone: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> list[str]:
    """Every promise that these lines show to be broken; of journals that were looked at before,
    `alone` has what `broken_alone` gave."""
    found: list[str] = []
    have = {name: set(_log(lines)) for name, lines in journals.items()}
    for name, lines in journals.items():
        found += alone[name] if name in alone else broken_alone(ledger, name, lines)
        for line in lines:
            if line["event"] == "message_acknowledged":
                message_id = line["message_id"]
                if not any(message_id in log for other, log in have.items() if other != name):
                    found.append(f"{name}: {message_id} is acknowledged and lost")
    return found


def broken_alone(ledger: Ledger, name: str, lines: Lines) -> list[str]:
    """Every promise that one participant's lines show to be broken, whatever others have."""
    return [f"{name}: {what}" for what in _of_one(ledger, name, lines)]


@lru_cache(10_000)  # of a journal that is changed in many ways most payloads stay as they are
def _message(payload: str) -> Message:
    return SpecCodec().decode(b64decode(payload))


def _log(lines: Lines) -> list[str]:
    """What entered the log, in order; what is in it after a restart stands there once more."""
    return [line["message_id"] for line in lines if line["event"] == "message_logged"]


def _is_new(line: Mapping[str, Any]) -> bool:
    return line["event"] == "message_logged" and line.get("outcome") != "restored"


def _of_one(ledger: Ledger, name: str, lines: Lines) -> Iterator[str]:
    log, new = _log(lines), [line["message_id"] for line in lines if _is_new(line)]
    if len(new) != len(set(new)) or set(log) != ledger.logs[name]:
        yield "the log has not every message once"
    yield from _in_order("logged", ledger, list(dict.fromkeys(log)), _lost(lines))
    keys: list[tuple[int, str]] = []
    arrived: dict[str, Message] = {}
    for line in lines:
        if line["event"] == "wire_in" and line["outcome"] in ("delivered", "parked"):
            arrived[line["message_hash"]] = _message(line["payload"])
        if line["event"] != "message_logged":
            continue
        message = ledger.messages.get(line["message_id"])
        key = line["lamport_timestamp"], line["message_id"]
        place = bisect_left(keys, key)
        is_known = key in keys[place : place + 1]
        if not (is_known and not _is_new(line)):
            keys.insert(place, key)
        if _is_new(line) and place != line["position"]:
            yield f"{line['message_id']} stands at another place"
        if message is None:
            continue
        if _said(message) != (
            line["sender_id"],
            line["lamport_timestamp"],
            line["content_sha256"],
        ):
            yield f"{line['message_id']} is logged as another message"
        if line["message_hash"] is not None:
            came = arrived.get(line["message_hash"])
            if came is None or (came.message_id, *_said(came)) != (
                message.message_id,
                *_said(message),
            ):
                yield f"{line['message_id']} did not arrive as it was sent"
    yield from _restored(lines)
    yield from _received(ledger, name, lines)
    yield from _acknowledged(name, ledger, lines)


def _restored(lines: Lines) -> Iterator[str]:
    """A restart brings back the log of before, but for the oldest of it."""
    log = dict[str, tuple[int, str]]()
    before, again = dict[str, tuple[int, str]](), set[str]()
    for line in [*lines, {"event": "journal_opened"}]:
        if line["event"] == "journal_opened":
            oldest = min((before[each] for each in again & before.keys()), default=None)
            for message_id, key in before.items():
                if oldest is not None and key > oldest and message_id not in again:
                    yield f"{message_id} was in the log before the restart"
            before, again = dict(log), set()
        elif line["event"] == "message_logged":
            log[line["message_id"]] = line["lamport_timestamp"], line["message_id"]
            if line.get("outcome") == "restored":
                again.add(line["message_id"])


def _lost(lines: Lines) -> set[tuple[str, str]]:
    """Messages, and what each was delivered without as it had been declared lost."""
    return {
        (line["message_id"], missing_id)
        for line in lines
        if line["event"] == "message_logged"
        for missing_id in line["missing"]
    }


def _acknowledged(name: str, ledger: Ledger, lines: Lines) -> Iterator[str]:
    """Once a reference of another participant arrived, and not before; unless its failure was
    emitted, or the participant was gone before it was due."""
    own = {each for each, message in ledger.messages.items() if message.sender_id == name}
    proven: dict[str, int] = {}
    told, sent, in_session = set[str](), set[str](), set[str]()
    for line in lines:
        if line["event"] == "journal_opened":
            in_session.clear()
        elif line["event"] == "wire_in":
            message = _message(line["payload"])
            if message.sender_id != name:
                for message_id in own & sent & set(message.causal_ids):
                    proven.setdefault(message_id, line["at_ms"])
        elif line["event"] == "message_logged":
            sent.add(line["message_id"])
        elif line["event"] == "delivery_failed":
            told.add(line["message_id"])
        elif line["event"] == "message_acknowledged":
            told.add(line["message_id"])
            if line["message_id"] in in_session:
                yield f"{line['message_id']} is acknowledged twice"
            in_session.add(line["message_id"])
            if line["message_id"] not in sent:
                yield f"{line['message_id']} is acknowledged before it is in the log"
            if line["source"] == "causal_history" and line["message_id"] not in proven:
                yield f"{line['message_id']} is acknowledged before its proof"
    due_ms = lines[-1]["at_ms"] - ledger.settle_ms
    for message_id in proven.keys() - told:
        if proven[message_id] <= due_ms:
            yield f"{message_id} is proven, and not acknowledged"


def _received(ledger: Ledger, name: str, lines: Lines) -> Iterator[str]:
    received = [line for line in lines if line["event"] == "message_received"]
    new = [line["message_id"] for line in received if not line["redelivered"]]
    others = {
        message_id
        for message_id in ledger.logs[name]
        if ledger.messages[message_id].sender_id != name
    }
    if len(new) != len(set(new)) or {line["message_id"] for line in received} != others:
        yield "the application did not receive every message of others once"
    every = list(dict.fromkeys(line["message_id"] for line in received))
    yield from _in_order("received", ledger, every, _lost(lines))
    for line in received:
        message = ledger.messages.get(line["message_id"])
        content = sha256(b64decode(line["payload"])).hexdigest()
        said = line["sender_id"], line["lamport_timestamp"], content
        if message is not None and said != _said(message):
            yield f"{line['message_id']} was received as another message"


def _in_order(
    what: str, ledger: Ledger, ids: list[str], lost: set[tuple[str, str]]
) -> Iterator[str]:
    place = {message_id: at for at, message_id in reversed(list(enumerate(ids)))}
    for message_id, at in place.items():
        message = ledger.messages.get(message_id)
        for reference in () if message is None else message.causal_ids:
            if place.get(reference, -1) > at and (message_id, reference) not in lost:
                yield f"{message_id} {what} before {reference}"


def _said(message: Message) -> tuple[str, int, str]:
    content = sha256(message.content or b"").hexdigest()
    return message.sender_id, message.lamport_timestamp or 0, content
