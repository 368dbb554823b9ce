"""Random changes of journals: by columns they say what they say by rows, or are left to the rows.

Of whole journals one line, one value, one SDS message or some bytes are changed, once or twice.
For as long as you like: `python -m audit_tests.on_spark.columns_fuzzed --seconds 600`.
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

from reliable_channel.sds.dialects import SpecCodec
from reliable_channel.sds.message import HistoryEntry, Message
from reliable_channel_audit.columns.arrays import NeedsRowReader
from reliable_channel_audit.columns.copies import Copies
from reliable_channel_audit.columns.fast_facts import facts_of_parts
from reliable_channel_audit.columns.gathered import joined
from reliable_channel_audit.columns.reading import gathered_part
from reliable_channel_audit.facts import Acknowledgement, Delivery, Dispatch, facts_of
from reliable_channel_audit.journals import DAMAGE, Participant, group_of, journal_files
from reliable_channel_audit.lines import KNOWN
from tests.journal_lines import journal_text, json_lines

from ..generated import SMALL_BLOOM, write_group

Table = dict[str, list[dict[str, Any]]]
Lines = list[dict[str, Any]]
CODEC: Final = SpecCodec()
CHANGES_A_JOURNAL: Final = 200
ODD_VALUES: Final[tuple[Any, ...]] = (
    *(None, "", "\x00", "é", 0, 1, -1, 2**63 - 1, 2**63, -(2**63), True, False, 0.5, [], {}),
    *("own", "sync", "duplicate", "parked", "live", "store", "content", "retry", "restored"),
    *("00" * 32, "ff" * 32, "AA" * 32, " " * 64, "causal_history", "bloom_filter", ["m"]),
)


def by_rows(participant: Participant) -> Table:
    """The facts, as the judges of rows give them."""
    facts: Table = defaultdict(list)
    for fact in facts_of(participant):
        if not isinstance(fact, (Delivery, Acknowledgement, Dispatch)):  # these are in the tables
            facts[type(fact).__name__].append(fact._asdict())
    return facts


def by_columns(participant: Participant) -> Table | None:
    """None where they are left to the rows."""
    try:
        known = Copies()
        parts = [gathered_part(Path(path), known) for path in participant.paths]
        few = facts_of_parts(participant, *joined(participant, parts))
    except (NeedsRowReader, *DAMAGE):
        return None
    facts: Table = defaultdict(list)
    for fact in few:
        facts[type(fact).__name__].append(fact._asdict())
    return {kind: rows for kind, rows in facts.items() if rows}


def compared(*paths: Path) -> list[bool]:
    """Whether each participant's journals were read by columns; then as they are by rows."""
    group = group_of(journal_files(paths)).participants
    taken = []
    for participant in group:
        found = by_columns(participant)
        taken.append(found is not None)
        if found is not None:
            expected = by_rows(participant)
            for table in (found, expected):
                table.get("Repair", []).sort(key=lambda row: str(row["message_id"]))
            assert found == expected, participant.participant_id
    return taken


def changed(whole: bytes, unpacked: Lines, random: Random) -> tuple[str, bytes]:
    """A journal with a change or two, and what was changed."""
    if random.random() < 0.3:
        return "bytes", spoilt(whole, random)
    packed = random.random() < 0.5
    lines = [json.loads(line) for line in whole.splitlines()] if packed else unpacked
    lines = [dict(line) for line in lines]
    kinds = _message, _message, _message, _move, _value, _value, _event
    places = sorted(random.randrange(len(kinds)) for _ in range(random.choice((1, 1, 1, 2))))
    # Messages are changed first, while all lines are whole.
    what = [f"{kinds[place].__name__}: {kinds[place](lines, random)}" for place in places]
    return "; ".join(what), journal_text(lines)


def spoilt(whole: bytes, random: Random) -> bytes:
    """Bytes are changed, left out and doubled, and lines cut, doubled and moved."""
    at = random.randrange(len(whole))
    lines = whole.splitlines(keepends=True)
    one, other = random.randrange(1, len(lines)), random.randrange(1, len(lines))
    match random.randrange(7):
        case 0:
            return whole[:at] + random.randbytes(1) + whole[at + 1 :]
        case 1:
            return whole[:at] + whole[at + random.randrange(1, 30) :]
        case 2:
            return whole[:at] + whole[max(0, at - random.randrange(1, 30)) :]
        case 3:
            digit = random.choice(b"0123456789abcdef=~^- ")
            return whole[:at] + bytes([digit]) + whole[at + 1 :]
        case 4:
            lines[one], lines[other] = lines[other], lines[one]
        case 5:
            lines.insert(one, lines[other])
        case 6:
            del lines[one]
    return b"".join(lines)


def _move(lines: Lines, random: Random) -> str:
    """A line is left out, doubled or moved, with its time or that of where it goes."""
    at, there = random.randrange(1, len(lines)), random.randrange(1, len(lines))
    line = lines[at]
    if random.random() < 0.5:
        line = line | {"at_ms": lines[there]["at_ms"]}
    how = random.choice(("leave out", "double", "move"))
    if how != "double":
        del lines[at]
    if how != "leave out":
        lines.insert(there, line)
    return f"{how} {line['event']}"


def _value(lines: Lines, random: Random) -> str:
    """A line has another value, that of another line or an odd one, or lacks it."""
    line = random.choice(lines[1:] if random.random() < 0.9 else lines[:1])
    name = random.choice(list(line))
    others = [each[name] for each in lines if name in each]
    match random.randrange(4):
        case 0:
            del line[name]
            line.setdefault("event", "wire_in")
            line.setdefault("at_ms", 0)
        case 1:
            line[name] = random.choice(ODD_VALUES)
        case 2 if isinstance(line[name], int):
            line[name] += random.choice((-1, 1, -2_000, 2_000, 10**6))
        case _:
            line[name] = random.choice(others)
    return f"{name} of {line['event']}"


def _event(lines: Lines, random: Random) -> str:
    """A line is of another event, or has a value that its event has not."""
    line = random.choice(lines[1:])
    if random.random() < 0.5:
        line["event"] = random.choice(sorted(KNOWN))
        return str(line["event"])
    other = random.choice(lines[1:])
    name = random.choice(list(other))
    line[name] = other[name]
    return f"{name} of {other['event']} at {line['event']}"


def _message(lines: Lines, random: Random) -> str:
    """An SDS message says something else; where it is packed, it is written as it is."""
    places = [at for at, line in enumerate(lines) if "payload" in line and "source" in line]
    if not places:
        return "none"
    line = lines[random.choice(places)]
    message = CODEC.decode(base64.b64decode(line["payload"]))
    ids = [each["message_id"] for each in lines if each.get("message_id")]
    hashes = [bytes.fromhex(each["message_hash"]) for each in lines if each.get("message_hash")]
    name, change = random.choice(CHANGES)
    line["payload"] = base64.b64encode(CODEC.encode(change(message, random, ids, hashes))).decode()
    return f"{name} at {line['event']}"


Change = Callable[[Message, Random, list[str], list[bytes]], Message]


def _history(message: Message, random: Random, ids: list[str], hashes: list[bytes]) -> Message:
    entries = list(message.causal_history)
    place = random.randrange(len(entries) + 1)
    hint = random.choice([None, random.choice(hashes), b"hint"])
    entries.insert(place, HistoryEntry(random.choice([*ids, "unheard", ""]), hint))
    return replace(message, causal_history=tuple(entries))


def _shorter(message: Message, random: Random, ids: list[str], hashes: list[bytes]) -> Message:
    entries = list(message.causal_history)
    return replace(message, causal_history=tuple(entries[: random.randrange(len(entries) + 1)]))


def _asked(message: Message, random: Random, ids: list[str], hashes: list[bytes]) -> Message:
    entry = HistoryEntry(random.choice([*ids, "unheard"]), None, random.choice(["p000", "é", None]))
    return replace(message, repair_request=(*message.repair_request, entry))


CHANGES: Final[tuple[tuple[str, Change], ...]] = (
    ("history", _history),
    ("shorter history", _shorter),
    ("repair request", _asked),
    ("sender", lambda each, random, ids, hashes: replace(each, sender_id="mallory")),
    ("id", lambda each, random, ids, hashes: replace(each, message_id=random.choice(ids))),
    (
        "Lamport timestamp",
        lambda each, random, ids, hashes: replace(
            each,
            lamport_timestamp=max(
                0, (each.lamport_timestamp or 0) + random.choice((-(10**5), -1, 1, 2**62, 2**63))
            ),
        ),
    ),
    ("content", lambda each, random, ids, hashes: replace(each, content=b"another")),
    ("no content", lambda each, random, ids, hashes: replace(each, content=None)),
    (
        "filter",
        lambda each, random, ids, hashes: replace(
            each, bloom_filter=random.choice((b"\xff" * 60, b"", b"\0" * 75, b"filter"))
        ),
    ),
)


def fuzzed(seed: int, directory: Path, changes: int = CHANGES_A_JOURNAL) -> Counter[bool]:
    """Change the journals of one seed; how often they were read by columns all the same.

    Raises:
        AssertionError: columns say something else than rows; with a note that names the change.
    """
    random = Random(seed)
    paths = write_group(
        directory,
        participants=random.choice((2, 3)),
        messages=random.choice((6, 12, 30)),
        seed=seed,
        loss=random.choice((0.0, 0.4)),
        bloom=random.choice((None, None, SMALL_BLOOM)),
    )
    whole, unpacked = paths[0].read_bytes(), json_lines(paths[0])
    seen: Counter[bool] = Counter()
    for number in range(changes):
        what, text = changed(whole, unpacked, random)
        paths[0].write_bytes(text)
        try:
            seen.update(compared(paths[0]))
        except Exception as error:
            error.add_note(f"seed {seed}, change {number}: {what}")
            raise
    return seen


def main() -> int:
    """Fuzz; 1 if a difference was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--first-seed", type=int, default=1)
    arguments = parser.parse_args()
    until, seed = time.monotonic() + arguments.seconds, arguments.first_seed
    counts: Counter[bool] = Counter()
    wrong = 0
    while time.monotonic() < until:
        with TemporaryDirectory() as directory:
            try:
                counts += fuzzed(seed, Path(directory))
            except Exception as error:  # whatever it is, it is the finding
                wrong += 1
                print(f"{error.__notes__}: {type(error).__name__}: {str(error)[:1000]}", flush=True)
        seed += 1
    print(
        f"seeds {arguments.first_seed} to {seed - 1}: {counts[True]} of {counts.total()} changed "
        f"journals were read by columns, {wrong} seeds failed"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
