"""Faults planted in clean journals, one at a time, each with what an audit must find of it."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, Final

from reliable_channel.sds.wire import SpecCodec
from reliable_channel_audit.bloom_filters import EVERY_MS

Lines = list[dict[str, Any]]
Expected = set[tuple[str, str, str]]
"""Audit, participant and message of each finding."""
Plant = Callable[[Path, Lines, Random], Expected]
"""Spoils the journal of one participant."""


def plant(fault: str, path: Path, seed: int) -> Expected:
    """Plant a fault in a journal and return what is to be found of it."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return FAULTS[fault](path, lines, Random(seed))


def _missing(path: Path, lines: Lines, random: Random) -> Expected:
    """A message of others never came."""
    gone = random.choice(_middle(_of_others(lines)))
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
    return {("equal_logs", path.stem, other["message_id"])}


def _forged_id(path: Path, lines: Lines, random: Random) -> Expected:
    """Another message was delivered under an id."""
    forged = random.choice(_middle(_of_others(lines)))
    forged["content_sha256"] = random.randbytes(32).hex()
    _write(path, lines)
    return {("ids", path.stem, forged["message_id"])}


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
    message = SpecCodec().decode(b64decode(came["payload"]))
    return {("clock", path.stem, ""), ("clock", path.stem, message.message_id)}


def _torn_last_line(path: Path, lines: Lines, random: Random) -> Expected:
    """The process was killed in the middle of a line."""
    text = path.read_bytes()
    path.write_bytes(text[: -random.randint(5, 20)])
    return set()


def _two_journals(path: Path, lines: Lines, random: Random) -> Expected:
    """A second process took part under one name at the same time."""
    path.with_name(f"{path.stem}-again.jsonl").write_bytes(path.read_bytes())
    return {("journals", path.stem, "")}


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
        return {("members", path.stem, refused["message_id"])}

    return plant


def _full_bloom_filter(path: Path, lines: Lines, random: Random) -> Expected:
    """A bloom filter with all bits set acknowledges whatever was sent."""
    came = random.choice(_middle([line for line in lines if line["event"] == "wire_in"]))
    message = SpecCodec().decode(b64decode(came["payload"]))
    full = SpecCodec().encode(replace(message, bloom_filter=b"\xff" * 100))
    came["payload"] = b64encode(full).decode()
    _write(path, lines)
    return {("members", path.stem, message.message_id)}


def _empty_bloom_filters(path: Path, lines: Lines, random: Random) -> Expected:
    """Nothing was ever put into the own bloom filter."""
    expected: Expected = set()
    next_ms = 0
    for line in (line for line in lines if line["event"] == "wire_out"):
        message = SpecCodec().decode(b64decode(line["payload"]))
        empty = replace(message, bloom_filter=bytes(len(message.bloom_filter or b"")))
        line["payload"] = b64encode(SpecCodec().encode(empty)).decode()
        if line["at_ms"] >= next_ms:
            next_ms = line["at_ms"] // EVERY_MS * EVERY_MS + EVERY_MS
            if message.causal_ids and not expected:
                expected = {("bloom_filters", path.stem, message.message_id)}
    _write(path, lines)
    return expected


def _wrong_clock(path: Path, lines: Lines, random: Random) -> Expected:
    """The clock was 15 seconds ahead all the time, and what it stamped with it."""
    ahead_ms = 15_000
    own = {line["message_hash"] for line in lines if line["event"] == "wire_out"}
    for line in lines:
        line["at_ms"] += ahead_ms
    _write(path, lines)
    for other in path.parent.glob("*.jsonl"):
        theirs = other.read_text().splitlines(keepends=True)
        other.write_text("".join(_stamped(line, own, ahead_ms) for line in theirs))
    return {("clock", path.stem, "")}


def _stamped(text: str, message_hashes: set[str], ahead_ms: int) -> str:
    """A line of a journal, with another stamp if it is about one of these messages."""
    if '"event":"wire_' not in text:
        return text
    line = json.loads(text)
    if line["message_hash"] in message_hashes:
        line["timestamp_ns"] += ahead_ms * 1_000_000
    return json.dumps(line, separators=(",", ":")) + "\n"


FAULTS: Final[dict[str, Plant]] = {
    "missing": _missing,
    "duplicate": _duplicate,
    "swapped causal pair": _swapped_causal_pair,
    "swapped concurrent pair": _swapped_concurrent_pair,
    "forged id": _forged_id,
    "lost ack": _lost_ack,
    "never-ending repair": _endless_repair,
    "clock jump": _clock_jump,
    "torn last line": _torn_last_line,
    "two journals of one participant": _two_journals,
    "Lamport timestamp far ahead": _rejected("lamport_too_far_ahead"),
    "garbage": _rejected("malformed"),
    "stolen id": _rejected("forged_id"),
    "full bloom filter": _full_bloom_filter,
    "wrong clock": _wrong_clock,
    "empty bloom filters": _empty_bloom_filters,
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
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    path.write_text(text)
