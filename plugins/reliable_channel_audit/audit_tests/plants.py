"""Faults of whole groups, beside those of `planted.py`: journals that lack lines, clocks that are
set, members that pose as others. Each says what is true, and so what a verdict may not say.
"""

from __future__ import annotations

import gzip
import shutil
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from reliable_channel.sds.dialects import SpecCodec
from reliable_channel.sds.ids import reliable_channel_id
from reliable_channel_audit.check import check
from reliable_channel_audit.verdict import Value, Verdict
from tests.journal_lines import journal_text, json_lines

from . import simulated
from .generated import write_group
from .planted import FAULTS, plant

Lines = list[dict[str, Any]]
Journals = dict[str, Lines]
"""By participant."""
HOUR_MS: Final = 3_600_000
GARBAGE: Final = {"event": "garbage"}
"""Written as a line that cannot be read."""


class Fault(NamedTuple):
    """What is planted, and what is true of it."""

    do: Callable[[Journals, str, Random], None]
    is_broken: bool
    """True if a promise is broken in truth: then the verdict must not be `kept`, and no other
    participant accused. Else the verdict must not be `broken`."""


def write(directory: Path, journals: Journals) -> None:
    """Write the journals, one file a participant."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, lines in journals.items():
        (directory / f"{name}.jsonl").write_bytes(_bytes(lines))


def write_parts(directory: Path, journals: Journals, parts: int = 4) -> None:
    """Write the journals as the SDK rotates them: all but the newest part are packed."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, (opened, *lines) in journals.items():
        size = len(lines) // parts + 1
        logged, before = 0, ""
        for number in range(1, parts + 1):
            own = lines[(number - 1) * size : number * size]
            header = opened if number == 1 else opened | {"wanted_from_ms": None}
            if number > 1:
                at_ms = next((each["at_ms"] for each in own if "at_ms" in each), opened["at_ms"])
                header |= {"follows": before, "log_length": logged, "at_ms": at_ms}
            logged += len({each["message_id"] for each in own if each["event"] == "message_logged"})
            before = f"{name}.{number:04}.jsonl.gz"
            text = _bytes([header, *own])
            if number == parts:
                (directory / f"{name}.jsonl").write_bytes(text)
            else:
                (directory / before).write_bytes(gzip.compress(text, mtime=0))


def read(directory: Path) -> Journals:
    """The journals of a directory of plain files."""
    return {path.stem: json_lines(path) for path in sorted(directory.glob("*.jsonl"))}


def _bytes(lines: Lines) -> bytes:
    return journal_text(lines).replace(journal_text([GARBAGE]), b"torn\n")


def _others(lines: Lines) -> list[int]:
    """Places where messages of others are logged, in the middle."""
    every = [
        place
        for place, line in enumerate(lines)
        if line["event"] == "message_logged" and line["message_hash"] is not None
    ]
    return every[len(every) // 4 : -len(every) // 4]


def _own(lines: Lines) -> list[int]:
    """Places where own messages are logged, in the middle."""
    every = [
        place
        for place, line in enumerate(lines)
        if line["event"] == "message_logged" and line["first_segment_id"] is not None
    ]
    return every[len(every) // 4 : -len(every) // 4] or every


def _unreadable(places: Callable[[Lines], list[int]], count: int = 1) -> Callable[..., None]:
    """So many lines from one of these places on cannot be read."""

    def do(journals: Journals, name: str, random: Random) -> None:
        lines = journals[name]
        at = random.choice(places(lines))
        lines[at : at + count] = [GARBAGE] * len(lines[at : at + count])

    return do


def _of(event: str) -> Callable[[Lines], list[int]]:
    def places(lines: Lines) -> list[int]:
        every = [place for place, line in enumerate(lines) if line["event"] == event]
        return every[len(every) // 4 : -len(every) // 4] or every

    return places


def _needed_arrivals(lines: Lines) -> list[int]:
    """Places where a message of others arrives that is logged and does not arrive again."""
    logged = {lines[place]["message_hash"] for place in _others(lines)}
    arrivals = Counter(line["message_hash"] for line in lines if line["event"] == "wire_in")
    return [
        place
        for place, line in enumerate(lines)
        if line["event"] == "wire_in"
        and line["message_hash"] in logged
        and arrivals[line["message_hash"]] == 1
    ]


def _gap_line(journals: Journals, name: str, random: Random) -> None:
    lines = journals[name]
    at = random.choice(_own(lines))
    gone = lines[at : at + 30]
    values = {"from_ms": gone[0]["at_ms"], "lines": len(gone), "reason": "disk full"}
    lines[at : at + 30] = [{"event": "journal_gap", "at_ms": gone[-1]["at_ms"], **values}]


def _ends_early(journals: Journals, name: str, random: Random) -> None:
    lines = journals[name]
    del lines[_own(lines)[0] :]


def _lose(journals: Journals, name: str, random: Random) -> None:
    """One message, which acknowledged none, never came to a participant."""
    lines = journals[name]
    mine = {x["message_id"] for x in lines if x["event"] == "message_logged" and _is_own(x)}
    for place in random.sample(_others(lines), len(_others(lines))):
        gone = lines[place]
        came = [
            x for x in lines if x.get("message_hash") == gone["message_hash"] and "payload" in x
        ]
        ids = set(SpecCodec().decode(b64decode(came[0]["payload"])).causal_ids) if came else mine
        if not ids & mine:
            break
    hashes = (gone["message_hash"],)
    lines[:] = [
        line
        for line in lines
        if line.get("message_hash") not in hashes and line.get("retrieval_hint") not in hashes
    ]
    order: list[tuple[int, str]] = []
    for line in (line for line in lines if line["event"] == "message_logged"):
        key = line["lamport_timestamp"], line["message_id"]
        order = sorted([*order, key])
        line["position"] = order.index(key)


def _is_own(line: dict[str, Any]) -> bool:
    return line.get("first_segment_id") is not None


def _move(journals: Journals, names: list[str], by_ms: int, from_ms: int = 0) -> None:
    """The clocks of some participants are ahead from a time on, and what they stamp."""
    for name in names:
        own = {x["message_hash"] for x in journals[name] if x["event"] == "wire_out"}
        stamped = {
            x["message_hash"]
            for x in journals[name]
            if x["event"] == "wire_out" and x["at_ms"] >= from_ms
        }
        for line in journals[name]:
            line["at_ms"] += by_ms * (line["at_ms"] >= from_ms)
        for lines in journals.values():
            for line in lines:
                is_theirs = line.get("message_hash") in own & stamped
                if is_theirs and line["event"] in ("wire_in", "wire_out"):
                    line["timestamp_ns"] += by_ms * 1_000_000


def _step(by_ms: int, *, lose: bool = False) -> Callable[..., None]:
    def do(journals: Journals, name: str, random: Random) -> None:
        if lose:
            _lose(journals, name, random)
        lines = journals[name]
        _move(journals, [name], by_ms, lines[_own(lines)[0]]["at_ms"])

    return do


def _half(by_ms: int, *, lose: bool = False) -> Callable[..., None]:
    def do(journals: Journals, name: str, random: Random) -> None:
        if lose:
            _lose(journals, name, random)
        others = [each for each in journals if each != name]
        _move(journals, [name, *others[: len(journals) // 2 - 1]], by_ms)

    return do


def _unit(times: Callable[[int], int]) -> Callable[..., None]:
    def do(journals: Journals, name: str, random: Random) -> None:
        for line in journals[name]:
            line["at_ms"] = times(line["at_ms"])

    return do


def _acknowledged(**values: object) -> Callable[..., None]:
    """An acknowledgement with other values."""

    def do(journals: Journals, name: str, random: Random) -> None:
        lines = journals[name]
        line = lines[random.choice(_of("message_acknowledged")(lines))]
        line |= values

    return do


def _acknowledged_twice(journals: Journals, name: str, random: Random) -> None:
    lines = journals[name]
    at = random.choice(_of("message_acknowledged")(lines))
    lines.insert(at + 1, dict(lines[at]))


def _acknowledged_of_others(journals: Journals, name: str, random: Random) -> None:
    lines = journals[name]
    line = lines[random.choice(_of("message_acknowledged")(lines))]
    before = lines[: lines.index(line)]
    other = next(x for x in before if x["event"] == "message_logged" and x["message_hash"])
    lines.insert(lines.index(line), line | {"message_id": other["message_id"]})


def _impersonated(journals: Journals, name: str, random: Random) -> None:
    """A stranger without a journal sends in a participant's name; all receive it, the named one
    too."""
    at_ms = journals[name][_own(journals[name])[0]]["at_ms"]
    content = random.randbytes(40)
    some = next(x for x in journals[name] if x["event"] == "wire_out" and "payload" in x)
    model = SpecCodec().decode(b64decode(some["payload"]))
    message = replace(
        model,
        message_id=reliable_channel_id(name, at_ms * 1_000_000, content),
        lamport_timestamp=at_ms,
        causal_history=(),
        content=content,
    )
    payload = SpecCodec().encode(message)
    wire = {"message_hash": sha256(payload).hexdigest(), "timestamp_ns": at_ms * 1_000_000}
    about = {"message_id": message.message_id, "sender_id": name, "lamport_timestamp": at_ms}
    for lines in journals.values():
        place = next(n for n, line in enumerate(lines) if line.get("at_ms", 0) > at_ms)
        key = at_ms, message.message_id
        logged = [x for x in lines if x["event"] == "message_logged"]
        before = [x for x in lines[:place] if x["event"] == "message_logged"]
        position = sum((x["lamport_timestamp"], x["message_id"]) < key for x in before)
        for line in logged[len(before) :]:
            line["position"] += (line["lamport_timestamp"], line["message_id"]) > key
        common = {"at_ms": at_ms, **about}
        lines[place:place] = [
            {"event": "wire_in", "at_ms": at_ms, "source": "live", "outcome": "delivered", **wire}
            | {"payload": b64encode(payload).decode()},
            {"event": "message_logged", **common, "position": position, "evicted": 0, "missing": []}
            | {"content_sha256": sha256(content).hexdigest(), "first_segment_id": None}
            | {"message_hash": wire["message_hash"]},
            {"event": "message_received", **common, "payload": b64encode(content).decode()}
            | {"redelivered": False, "position": position, "missing": []},
        ]


def _restarted(*, loses: bool) -> Callable[..., None]:
    """A restart with state; the log may have lost an entry."""

    def do(journals: Journals, name: str, random: Random) -> None:
        lines = journals[name]
        at = _others(lines)[-1] + 2
        at_ms = lines[at]["at_ms"]
        log = sorted(
            (x for x in lines[:at] if x["event"] == "message_logged"),
            key=lambda x: (x["lamport_timestamp"], x["message_id"]),
        )
        if loses:
            del log[random.randrange(len(log) // 2, len(log) - 1)]
        opened = lines[0] | {"at_ms": at_ms, "wanted_from_ms": None, "log_length": len(log)}
        again = {"at_ms": at_ms, "outcome": "restored", "position": 0, "message_hash": None}
        lines[at:at] = [opened, *(x | again | {"first_segment_id": None} for x in log)]

    return do


def _wants_the_future(journals: Journals, name: str, random: Random) -> None:
    _lose(journals, name, random)
    journals[name][0]["wanted_from_ms"] = journals[name][-1]["at_ms"] + HOUR_MS


def _cut(after_ms: int) -> Callable[..., None]:
    """All journals are collected while the group runs, so long after a message was accepted."""

    def do(journals: Journals, name: str, random: Random) -> None:
        lines = journals[name]
        end_ms = lines[_own(lines)[-1]]["at_ms"] + after_ms
        for each in journals.values():
            each[:] = [line for line in each if line["at_ms"] <= end_ms]

    return do


def _empty(journals: Journals, name: str, random: Random) -> None:
    journals[name].clear()


def _gone(journals: Journals, name: str, random: Random) -> None:
    del journals[name]


GROUP_FAULTS: Final[dict[str, Fault]] = {
    "unreadable: a message of others in the log": Fault(_unreadable(_others), False),
    "unreadable: an own message in the log": Fault(_unreadable(_own), False),
    "unreadable: a reception": Fault(_unreadable(_of("message_received")), False),
    "unreadable: an arrival": Fault(_unreadable(_needed_arrivals), False),
    "unreadable: a sent message": Fault(_unreadable(_of("wire_out")), False),
    "unreadable: an acknowledgement": Fault(_unreadable(_of("message_acknowledged")), False),
    "unreadable: 40 lines of others": Fault(_unreadable(_others, 40), False),
    "unreadable: 40 lines of own messages": Fault(_unreadable(_own, 40), False),
    "the journal says that it lacks lines": Fault(_gap_line, False),
    "the journal ends, its participant goes on": Fault(_ends_early, False),
    "an empty journal": Fault(_empty, False),
    "no journal": Fault(_gone, False),
    "collected immediately": Fault(_cut(5), False),
    "collected after a second": Fault(_cut(1_000), False),
    "collected after a minute": Fault(_cut(60_000), False),
    "a loss": Fault(_lose, True),
    "a loss, and wanted from the future on": Fault(_wants_the_future, True),
    "a clock set two hours forward": Fault(_step(2 * HOUR_MS), True),
    "a loss, a clock set two hours forward": Fault(_step(2 * HOUR_MS, lose=True), True),
    "half of the clocks three hours ahead": Fault(_half(3 * HOUR_MS), True),
    "half of the clocks three hours behind": Fault(_half(-3 * HOUR_MS), True),
    "a loss, half of the clocks ahead": Fault(_half(3 * HOUR_MS, lose=True), True),
    "times in seconds": Fault(_unit(lambda at_ms: at_ms // 1_000), False),
    "times in nanoseconds": Fault(_unit(lambda at_ms: at_ms * 1_000_000), False),
    "acknowledged by a stranger": Fault(_acknowledged(acknowledged_by="mallory"), True),
    "acknowledged twice": Fault(_acknowledged_twice, True),
    "acknowledged for another sender": Fault(_acknowledged_of_others, True),
    "impersonated by a stranger": Fault(_impersonated, True),
    "a restart with state": Fault(_restarted(loses=False), False),
    "a restart that lost a message": Fault(_restarted(loses=True), True),
}


def _without(*which: int) -> Callable[[list[Path]], None]:
    """Some parts of a journal are not there."""

    def do(parts: list[Path]) -> None:
        for place in which:
            parts[place].unlink()

    return do


def _cut_within(parts: list[Path]) -> None:
    parts[1].write_bytes(parts[1].read_bytes()[:-200])


def _twice(parts: list[Path]) -> None:
    backup = parts[0].parent / "backup"
    backup.mkdir()
    (backup / parts[1].name).write_bytes(parts[1].read_bytes())


PART_FAULTS: Final[dict[str, Callable[[list[Path]], None]]] = {
    "the first part is missing": _without(0),
    "a journal part is missing": _without(1),
    "two parts are missing": _without(1, 2),
    "the last part is missing": _without(-1),
    "a packed part breaks off": _cut_within,
    "a journal part was copied": _twice,
}
"""Of rotated journals; no promise is broken by any of them."""
SETTINGS: Final = {
    "group": "verdict on four participants",
    "parts": "verdict on rotated journals",
    "two": "verdict on two participants",
    "simulated": "verdict on a simulator run",
}
SEED: Final = 21
"""A run of the simulator in which each participant has one session, so that all can be planted."""
NOT_PLANTED: Final = {
    ("a copy of a journal", "parts"): "there the copy would be cut into parts of its own",
    ("sent in another's name", "two"): "it takes a third one to receive it",
    ("sent in another's name", "simulated"): "no message is there that all others received alone",
    ("swapped concurrent pair", "two"): "there is none",
    ("Lamport timestamp of the past", "two"): "there is none",
    ("received twice", "simulated"): "the second line would be of an earlier time",
    ("received again after a restart", "simulated"): "as before",
    ("received again, and never logged", "simulated"): "as before",
    ("received out of order", "simulated"): "as before",
}
"""Cells of the table that are empty, and why."""


EMPTY: Final = "-"


class Cell(NamedTuple):
    """A fault that is planted in a setting."""

    fault: str
    setting: str
    is_broken: bool


def cells() -> list[Cell]:
    """All of them; of `planted.py` it takes the expectation to know whether a promise is broken."""
    breaks_nothing = {
        *("torn last line", "a copy of a journal", "received again after a restart"),
        *("Lamport timestamp far ahead", "garbage", "stolen id", "full bloom filter"),
        *("repairs with a wrong clock", "wrong retrieval hint"),
    }
    every = [
        Cell(fault, setting, is_broken)
        for fault, is_broken in (
            *((fault, fault not in breaks_nothing) for fault in FAULTS),
            *((fault, of.is_broken) for fault, of in GROUP_FAULTS.items()),
        )
        for setting in SETTINGS
    ]
    every += [Cell(fault, "parts", False) for fault in PART_FAULTS]
    return [cell for cell in every if cell[:2] not in NOT_PLANTED]


class Sources:
    """Clean journals of each setting, which are written once."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        write_group(directory / "group")
        write_group(directory / "two", participants=2, messages=60)
        simulated.run(SEED, directory / "simulated")

    def plant(self, cell: Cell, directory: Path, channel_id: str | None = None) -> str:
        """Write the journals of a cell; returns the participant with the fault."""
        source = self._directory / ("group" if cell.setting == "parts" else cell.setting)
        journals = read(source)
        name = sorted(journals)[1]
        if cell.fault in FAULTS:
            with TemporaryDirectory() as between:
                write(Path(between), journals)
                plant(cell.fault, Path(between) / f"{name}.jsonl", 1)
                if cell.setting != "parts":
                    shutil.copytree(between, directory, dirs_exist_ok=True)
                    journals = {}
                else:
                    journals = read(Path(between))
        elif cell.fault in GROUP_FAULTS:
            GROUP_FAULTS[cell.fault].do(journals, name, Random(1))
        if channel_id is not None:
            for lines in journals.values():
                for line in lines:
                    if line["event"] == "journal_opened":
                        line["channel_id"] = channel_id
        if cell.setting == "parts":
            write_parts(directory, {each: lines for each, lines in journals.items() if lines})
            if cell.fault in PART_FAULTS:
                own = sorted(directory.glob(f"{name}.*"))
                PART_FAULTS[cell.fault]([*own[1:], own[0]] if own[0].suffix == ".jsonl" else own)
        else:
            write(directory, journals)
        return name


def shown(verdict: Verdict) -> str:
    """A verdict as a cell of the table has it."""
    broken = ", ".join(sorted(verdict.broken))
    return f"broken: {broken}" if verdict.value is Value.BROKEN else verdict.value.value


def table(results: dict[tuple[str, str], str]) -> str:
    rows = [
        "| planted fault | " + " | ".join(SETTINGS.values()) + " |",
        "|---" * (len(SETTINGS) + 1) + "|",
    ]
    for fault in dict.fromkeys(fault for fault, _ in results):
        values = (results.get((fault, setting), EMPTY) for setting in SETTINGS)
        rows.append(f"| {fault} | " + " | ".join(values) + " |")
    return "\n".join(rows) + "\n"


def main() -> None:
    results = {}
    with TemporaryDirectory() as directory:
        sources = Sources(Path(directory) / "sources")
        for cell in cells():
            with TemporaryDirectory() as place:
                sources.plant(cell, Path(place))
                results[cell.fault, cell.setting] = shown(check([place]))
    print(table(results), end="")


if __name__ == "__main__":
    main()
