"""Faults planted in clean journals, one at a time, each with what an audit must find of it."""

from __future__ import annotations

import gzip
from base64 import b64decode, b64encode
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, Final

from reliable_channel.sds.dialects import SpecCodec
from reliable_channel.sds.message import HistoryEntry, Message
from tests.journal_lines import journal_text, json_lines

Lines = list[dict[str, Any]]
Expected = set[tuple[str, str, str]]
"""Audit, participant and message of each finding."""
Plant = Callable[[Path, Lines, Random], Expected]
"""Spoils the journal of one participant."""


def plant(fault: str, path: Path, seed: int) -> Expected:
    """Plant a fault in a journal and return what is to be found of it."""
    lines = json_lines(path)
    return FAULTS[fault](path, lines, Random(seed))


def _missing(path: Path, lines: Lines, random: Random) -> Expected:
    """A message of others never came, which acknowledged none."""
    acknowledging = _acknowledging(lines)
    others = _middle(_of_others(lines))
    gone = random.choice([line for line in others if line["message_hash"] not in acknowledging])
    left = (
        line
        for line in lines
        if gone["message_hash"] not in (line.get("message_hash"), line.get("retrieval_hint"))
    )
    _write(path, _landing(left))
    return {("delivery", path.stem, gone["message_id"])}


def _duplicate(path: Path, lines: Lines, random: Random) -> Expected:
    """A message was delivered twice."""
    again = random.choice(_middle(_of_others(lines)))
    lines.insert(lines.index(again) + 1, again)
    _write(path, lines)
    return {("exactly_once", path.stem, again["message_id"])}


def _swapped_causal_pair(path: Path, lines: Lines, random: Random) -> Expected:
    """A message was delivered before one that it refers to."""
    histories = _histories(lines)
    pairs = [
        (one, other)
        for one, other in pairwise(_middle(_of_others(lines)))
        if one["message_id"] in histories[other["message_hash"]]
        and _landed_next_to_each_other(lines, one, other)
    ]
    one, other = random.choice(pairs)
    lines.remove(one)
    lines.insert(lines.index(other) + 1, one | {"at_ms": other["at_ms"]})
    _write(path, _landing(lines))
    return {("causal_order", path.stem, other["message_id"])}


def _swapped_concurrent_pair(path: Path, lines: Lines, random: Random) -> Expected:
    """Two messages that do not know of each other stand in the log in the wrong order."""
    histories = _histories(lines)
    order = sorted(_logged(lines), key=_key)
    pairs = [
        (one, other)
        for one, other in pairwise(_middle(order))
        if one["message_hash"]
        and other["message_hash"]
        and one["message_id"] not in histories[other["message_hash"]]
    ]
    one, other = random.choice(pairs)
    keys = {one["message_id"]: _key(other), other["message_id"]: _key(one)}
    _write(path, _landing(lines, keys))
    return {(audit, path.stem, other["message_id"]) for audit in ("equal_logs", "log_order")}


def _forged_id(path: Path, lines: Lines, random: Random) -> Expected:
    """Another message was delivered under an id."""
    forged = random.choice(_middle(_of_others(lines)))
    forged["content_sha256"] = random.randbytes(32).hex()
    _write(path, lines)
    return {(audit, path.stem, forged["message_id"]) for audit in ("ids", "arrived")}


def _lost_ack(path: Path, lines: Lines, random: Random) -> Expected:
    """An acknowledgement that was proven was not told."""
    told = [line for line in lines if line["event"] == "message_acknowledged"]
    lost = random.choice(_middle(told))
    lines.remove(lost)
    _write(path, lines)
    return {("acknowledgements", path.stem, lost["message_id"])}


def _endless_repair(path: Path, lines: Lines, random: Random) -> Expected:
    """A message is asked for again and again, without a rest."""
    at = random.randrange(len(lines) // 3, len(lines) // 2)
    wanted = _of_others(lines)[-1]["message_id"]
    asking = {"event": "repair_requested", "message_ids": [wanted], "carrier_id": "some"}
    lines[at:at] = [asking | {"at_ms": lines[at]["at_ms"]}] * 40
    _write(path, lines)
    return {("repair", path.stem, wanted)}


def _clock_jump(path: Path, lines: Lines, random: Random) -> Expected:
    """The clock was an hour behind for a moment."""
    begin = random.randrange(len(lines) // 3, len(lines) // 2)
    while lines[begin]["event"] != "wire_in":
        begin += 1
    came = lines[begin]
    came["at_ms"] -= 3_600_000
    _write(path, lines)
    return {("clock", path.stem, "")}


def _torn_last_line(path: Path, lines: Lines, random: Random) -> Expected:
    """The process was killed in the middle of a line."""
    text = path.read_bytes()
    path.write_bytes(text[: -random.randint(5, 20)])
    return set()


def _two_journals(path: Path, lines: Lines, random: Random) -> Expected:
    """A second process took part under one name at the same time."""
    lines[1] |= {"at_ms": lines[1]["at_ms"] + 1}
    _write(path.with_name(f"{path.stem}-again.jsonl"), lines)
    return {("journals", path.stem, "")}


def _copied(path: Path, lines: Lines, random: Random) -> Expected:
    """A backup of the journal lies beside it, and an older one packed."""
    path.with_name(f"{path.stem}-copy.jsonl").write_bytes(path.read_bytes())
    older = b"".join(path.read_bytes().splitlines(keepends=True)[: len(lines) // 2])
    path.with_name(f"{path.stem}-older.jsonl.gz").write_bytes(gzip.compress(older))
    return set()


def _rejected(reason: str) -> Plant:
    """Something was refused that no honest member sends."""

    def plant(path: Path, lines: Lines, random: Random) -> Expected:
        at = random.randrange(len(lines) // 3, len(lines) // 2)
        refused = {
            "event": "message_rejected",
            "at_ms": lines[at]["at_ms"],
            "reason": reason,
            "detail": "as an attacker sends it",
            "message_id": "" if reason == "malformed" else "ab" * 32,
            "sender_id": "" if reason == "malformed" else "mallory",
        }
        lines[at:at] = [refused, refused]
        _write(path, lines)
        return set()

    return plant


def _arrived(lines: Lines, came: dict[str, Any], payload: bytes) -> None:
    """Another payload arrived, under the hash of its own that it has on the network."""
    before, after = came["message_hash"], sha256(payload).hexdigest()
    came["payload"] = b64encode(payload).decode()
    for line in lines:
        for name in ("message_hash", "retrieval_hint"):
            if line.get(name) == before:
                line[name] = after


def _full_bloom_filter(path: Path, lines: Lines, random: Random) -> Expected:
    """A bloom filter with all bits set acknowledges whatever was sent."""
    came = random.choice(_middle([line for line in lines if line["event"] == "wire_in"]))
    message = SpecCodec().decode(b64decode(came["payload"]))
    full = SpecCodec().encode(replace(message, bloom_filter=b"\xff" * 100))
    _arrived(lines, came, full)
    _write(path, lines)
    return set()


def _wrong_clock(ahead_ms: int, *before: Plant) -> Plant:
    """The clock was ahead all the time, and what it stamped with it; whatever else befell it."""

    def plant(path: Path, lines: Lines, random: Random) -> Expected:
        expected = {("clock", path.stem, "")}
        for fault in before:
            expected |= fault(path, lines, random)
            lines = json_lines(path)
        own = {line["message_hash"] for line in lines if line["event"] == "wire_out"}
        for line in lines:
            line["at_ms"] += ahead_ms
        _write(path, lines)
        for other in path.parent.glob("*.jsonl"):
            _write(other, (_stamped(line, own, ahead_ms) for line in json_lines(other)))
        return expected

    return plant


def _repairs_with_a_wrong_clock(path: Path, lines: Lines, random: Random) -> Expected:
    """Copies of others' messages came first from one that stamps them three hours ahead."""
    for came in _middle([line for line in lines if line["event"] == "wire_in"])[::2]:
        message_hash = random.randbytes(32).hex()
        for line in lines:
            for name in ("message_hash", "retrieval_hint"):
                if line is not came and line.get(name) == came["message_hash"]:
                    line[name] = message_hash
        came["message_hash"] = message_hash
        came["timestamp_ns"] += 3 * 3_600_000_000_000
    _write(path, lines)
    return set()


def _stamped(line: dict[str, Any], message_hashes: set[str], ahead_ms: int) -> dict[str, Any]:
    """A line of a journal, with another stamp if it is about one of these messages."""
    if line["event"].startswith("wire_") and line["message_hash"] in message_hashes:
        line["timestamp_ns"] += ahead_ms * 1_000_000
    return line


def _received(lines: Lines) -> Lines:
    return [line for line in lines if line["event"] == "message_received"]


def _not_received(path: Path, lines: Lines, random: Random) -> Expected:
    """A message is in the log, and the application did not receive it."""
    gone = random.choice(_middle(_received(lines)))
    lines.remove(gone)
    _write(path, lines)
    return {("received", path.stem, gone["message_id"])}


def _received_twice(path: Path, lines: Lines, random: Random) -> Expected:
    again = random.choice(_middle(_received(lines)))
    lines.insert(lines.index(again) + 3, again)
    _write(path, lines)
    return {("received", path.stem, again["message_id"])}


def _received_again_after_a_restart(path: Path, lines: Lines, random: Random) -> Expected:
    """What the application had not confirmed: that breaks nothing."""
    again = random.choice(_middle(_received(lines)))
    lines.insert(lines.index(again) + 3, again | {"redelivered": True})
    _write(path, lines)
    return set()


def _redelivered_and_never_logged(path: Path, lines: Lines, random: Random) -> Expected:
    """What was emitted again after a restart had never been in the log."""
    again = random.choice(_middle(_received(lines)))
    message_id = random.randbytes(32).hex()
    unknown = again | {"message_id": message_id, "redelivered": True}
    lines.insert(lines.index(again) + 3, unknown)
    _write(path, lines)
    return {("received", path.stem, message_id)}


def _received_out_of_order(path: Path, lines: Lines, random: Random) -> Expected:
    """The application received a message before one that it refers to."""
    histories = _histories(lines)
    pairs = [
        (one, other)
        for one, other in pairwise(_middle(_received(lines)))
        if one["message_id"] in histories[other["retrieval_hint"]]
    ]
    one, other = random.choice(pairs)
    lines.remove(one)
    lines.insert(lines.index(other) + 1, one)
    _write(path, lines)
    return {("received", path.stem, other["message_id"])}


def _received_another(**values: str) -> Plant:
    """The application received something else than what arrived."""

    def plant(path: Path, lines: Lines, random: Random) -> Expected:
        other = random.choice(_middle(_received(lines)))
        other |= values
        _write(path, lines)
        return {("received", path.stem, other["message_id"])}

    return plant


def _logged_sender(path: Path, lines: Lines, random: Random) -> Expected:
    """The log has another sender than the message that arrived."""
    other = random.choice(_middle(_of_others(lines)))
    other["sender_id"] = "mallory"
    _write(path, lines)
    return {(audit, path.stem, other["message_id"]) for audit in ("ids", "arrived")}


def _never_arrived(path: Path, lines: Lines, random: Random) -> Expected:
    """A message is in the log, and nothing arrived that it could be."""
    logged = random.choice(_middle(_of_others(lines)))
    acknowledging = _acknowledging(lines)
    while logged["message_hash"] in acknowledging:
        logged = random.choice(_middle(_of_others(lines)))
    came = ("wire_in", logged["message_hash"])
    _write(path, [line for line in lines if (line["event"], line.get("message_hash")) != came])
    return {("arrived", path.stem, logged["message_id"])}


def _acknowledging(lines: Lines) -> set[str]:
    """Hashes of messages that acknowledge own ones."""
    return {
        one["message_hash"]
        for one, other in pairwise(lines)
        if one["event"] == "wire_in" and other["event"] == "message_acknowledged"
    }


def _too_early_ack(path: Path, lines: Lines, random: Random) -> Expected:
    """A message was acknowledged before anything that refers to it arrived."""
    told = random.choice(_middle([x for x in lines if x["event"] == "message_acknowledged"]))
    sent = [x["message_id"] if x["event"] == "message_sent" else "" for x in lines]
    lines.remove(told)
    at = sent.index(told["message_id"]) + 1
    lines.insert(at, told | {"at_ms": lines[at - 1]["at_ms"]})
    _write(path, lines)
    return {("acknowledgements", path.stem, told["message_id"])}


def _acknowledged_before_it_was_sent(path: Path, lines: Lines, random: Random) -> Expected:
    """The acknowledgement of a message came before the message was in the log."""
    told = random.choice(_middle([x for x in lines if x["event"] == "message_acknowledged"]))
    own = next(x for x in _logged(lines) if x["message_id"] == told["message_id"])
    lines.remove(told)
    lines.insert(lines.index(own), told | {"at_ms": own["at_ms"]})
    _write(path, lines)
    return {("acknowledgements", path.stem, told["message_id"])}


def _acknowledged_and_lost(path: Path, lines: Lines, random: Random) -> Expected:
    """A message was acknowledged, and nobody has it."""
    own = [line for line in _logged(lines) if line["first_segment_id"] is not None]
    early = _middle(own)[: len(own) // 4 + 1]  # it must be due everywhere
    like, message_id = random.choice(early), random.randbytes(32).hex()
    at = lines.index(like) - 1
    logged = like | {
        "message_id": message_id,
        "first_segment_id": message_id,
        "content_sha256": random.randbytes(32).hex(),
        "lamport_timestamp": like["lamport_timestamp"] - 1,
    }
    about = {"at_ms": like["at_ms"], "message_id": message_id}
    lines[at:at] = [
        {"event": "sending_message", "request_id": "r", **about},
        logged,
        {"event": "message_acknowledged", "source": "bloom_filter", **about},
    ]
    _write(path, _landing(lines))
    others = {("delivery", each.stem, message_id) for each in _others(path)}
    return {("acknowledgements", path.stem, message_id), *others}


def _others(path: Path) -> list[Path]:
    return [each for each in sorted(path.parent.glob("p???.jsonl")) if each != path]


def _arriving(lines: Lines, random: Random) -> tuple[dict[str, Any], Message]:
    came = [line for line in lines if line["event"] == "wire_in"]
    line = random.choice(_middle([each for each in came if each["outcome"] == "delivered"]))
    return line, SpecCodec().decode(b64decode(line["payload"]))


def _unknown_reference(path: Path, lines: Lines, random: Random) -> Expected:
    """A message refers to one that nobody has."""
    line, message = _arriving(lines, random)
    entry = HistoryEntry(random.randbytes(32).hex())
    changed = replace(message, causal_history=(*message.causal_history, entry))
    _arrived(lines, line, SpecCodec().encode(changed))
    _write(path, lines)
    return {("references", path.stem, entry.message_id)}


def _wrong_hint(path: Path, lines: Lines, random: Random) -> Expected:
    """A message gives the hash of one message as the retrieval hint of another."""
    for line in (line for line in lines if line["event"] == "wire_in"):
        message = SpecCodec().decode(b64decode(line["payload"]))
        if message.causal_ids and line["outcome"] != "duplicate":
            one, *others = message.causal_history
            hint = bytes.fromhex(line["message_hash"])
            history = (HistoryEntry(one.message_id, hint), *others)
            changed = replace(message, causal_history=history)
            _arrived(lines, line, SpecCodec().encode(changed))
            break
    _write(path, lines)
    return set()


def _lamport_of_the_past(path: Path, lines: Lines, random: Random) -> Expected:
    """The Lamport timestamp of a message is that of a message to which it refers."""
    histories = _histories(lines)
    order = sorted(_logged(lines), key=_key)
    pairs = [
        (one, other)
        for one, other in pairwise(_middle(order))
        if other["message_hash"] is not None
        and one["message_id"] in histories[other["message_hash"]]
        and one["message_id"] < other["message_id"]
    ]
    one, other = random.choice(pairs)
    past = one["lamport_timestamp"]
    for line in lines:
        if line["event"] == "wire_in" and line["message_hash"] == other["message_hash"]:
            message = SpecCodec().decode(b64decode(line["payload"]))
            changed = SpecCodec().encode(replace(message, lamport_timestamp=past))
            line["payload"] = b64encode(changed).decode()
        elif line.get("message_id") == other["message_id"] and "lamport_timestamp" in line:
            line["lamport_timestamp"] = past
    _write(path, _landing(lines))
    return {("ids", path.stem, other["message_id"])}


def _invented(path: Path, lines: Lines, random: Random) -> Expected:
    """A participant has a message of another one, who did not send it."""
    like = random.choice(_middle(_of_others(lines)))
    at = lines.index(like) + 2
    message_id = random.randbytes(32).hex()
    invented = like | {
        "message_id": message_id,
        "message_hash": random.randbytes(32).hex(),
        "lamport_timestamp": like["lamport_timestamp"] + 1,
    }
    event = {"event": "message_received", "position": 0, "missing": [], "redelivered": False}
    names = ("at_ms", "message_id", "sender_id", "lamport_timestamp")
    lines[at:at] = [invented, event | {name: invented[name] for name in names}]
    _write(path, _landing(lines))
    return {(audit, path.stem, message_id) for audit in ("ids", "arrived")}


def _sent_in_anothers_name(path: Path, lines: Lines, random: Random) -> Expected:
    """A participant sends a message in the name of another one, and all others receive it."""
    victim, *others = random.sample(_others(path), len(_others(path)))
    sent = random.choice(_middle([line for line in lines if line["event"] == "wire_out"]))
    message_id, content = random.randbytes(32).hex(), random.randbytes(40)
    lamport_timestamp = sent["at_ms"] + 1
    (channel_id,) = (line["channel_id"] for line in lines[:1])
    message = Message(victim.stem, message_id, channel_id, lamport_timestamp, (), None, (), content)
    payload = SpecCodec().encode(message)
    wire = {
        "message_hash": sha256(payload).hexdigest(),
        "timestamp_ns": sent["timestamp_ns"],
        "payload": b64encode(payload).decode(),
    }
    lines.insert(lines.index(sent) + 1, sent | wire)
    _write(path, lines)
    about = {
        "message_id": message_id,
        "sender_id": victim.stem,
        "lamport_timestamp": lamport_timestamp,
        "missing": [],
        "position": 0,
    }
    for other in others:
        theirs = json_lines(other)
        at = len(theirs) - 1
        at_ms = {"at_ms": theirs[at - 1]["at_ms"]}
        logged = {
            "event": "message_logged",
            "evicted": 0,
            "content_sha256": sha256(content).hexdigest(),
            "first_segment_id": None,
            "message_hash": wire["message_hash"],
        }
        received = {"event": "message_received", "payload": b64encode(content).decode()}
        came = {"event": "wire_in", "source": "live", "outcome": "delivered"}
        theirs[at:at] = [came | wire | at_ms, logged | about | at_ms, received | about | at_ms]
        _write(other, _landing(theirs))
    return {("ids", path.stem, message_id)}


FAULTS: Final[dict[str, Plant]] = {
    "sent in another's name": _sent_in_anothers_name,
    "missing": _missing,
    "duplicate": _duplicate,
    "swapped causal pair": _swapped_causal_pair,
    "swapped concurrent pair": _swapped_concurrent_pair,
    "forged id": _forged_id,
    "a lost acknowledgement": _lost_ack,
    "never-ending repair": _endless_repair,
    "clock jump": _clock_jump,
    "torn last line": _torn_last_line,
    "two journals of one participant": _two_journals,
    "a copy of a journal": _copied,
    "Lamport timestamp far ahead": _rejected("lamport_too_far_ahead"),
    "garbage": _rejected("malformed"),
    "stolen id": _rejected("forged_id"),
    "full bloom filter": _full_bloom_filter,
    "a clock 15 s ahead": _wrong_clock(15_000),
    "a clock 15 s behind": _wrong_clock(-15_000),
    "loss under a clock three hours ahead": _wrong_clock(3 * 3_600_000, _missing),
    "loss under a clock three hours behind": _wrong_clock(-3 * 3_600_000, _missing),
    "repairs with a wrong clock": _repairs_with_a_wrong_clock,
    "not received by the application": _not_received,
    "received twice": _received_twice,
    "received again after a restart": _received_again_after_a_restart,
    "received again, and never logged": _redelivered_and_never_logged,
    "received out of order": _received_out_of_order,
    "received another content": _received_another(payload="YW5vdGhlcg=="),
    "received from another sender": _received_another(sender_id="mallory"),
    "logged another sender": _logged_sender,
    "logged without arrival": _never_arrived,
    "acknowledged too early": _too_early_ack,
    "acknowledged before it was sent": _acknowledged_before_it_was_sent,
    "acknowledged and lost": _acknowledged_and_lost,
    "unknown reference": _unknown_reference,
    "wrong retrieval hint": _wrong_hint,
    "an invented message": _invented,
    "Lamport timestamp of the past": _lamport_of_the_past,
}


def _logged(lines: Lines) -> Lines:
    return [line for line in lines if line["event"] == "message_logged"]


def _of_others(lines: Lines) -> Lines:
    return [line for line in _logged(lines) if line["message_hash"] is not None]


def _middle(lines: Lines) -> Lines:
    """Faults at the very ends may be excused."""
    return lines[len(lines) // 5 : -len(lines) // 5]


def _key(line: dict[str, Any]) -> tuple[int, str]:
    return line["lamport_timestamp"], line["message_id"]


def _histories(lines: Lines) -> dict[str, set[str]]:
    """Causal histories by message hash."""
    codec = SpecCodec()
    return {
        line["message_hash"]: set(codec.decode(b64decode(line["payload"])).causal_ids)
        for line in lines
        if line["event"] == "wire_in"
    }


def _landed_next_to_each_other(lines: Lines, one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether nothing that was delivered between two messages refers to the first."""
    logged = _logged(lines)
    return logged.index(other) == logged.index(one) + 1


def _landing(
    lines: Iterator[dict[str, Any]] | Lines, keys: dict[str, tuple[int, str]] | None = None
) -> Iterator[dict[str, Any]]:
    """Positions as a participant with just these messages tells them, which takes some messages for
    having other keys."""
    order: list[tuple[int, str]] = []
    for line in lines:
        if line["event"] == "message_logged":
            key = (keys or {}).get(line["message_id"], _key(line))
            position = bisect_left(order, key)
            order.insert(position, key)
            yield line | {"position": position}
        else:
            yield line


def _write(path: Path, lines: Iterator[dict[str, Any]] | Lines) -> None:
    path.write_bytes(journal_text(lines))
