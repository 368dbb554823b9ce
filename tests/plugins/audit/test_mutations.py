"""Random changes of journals, judged by an oracle that knows the run.

What breaks a promise is never found kept, and what breaks none is never found broken.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from reliable_channel_audit.check import check
from reliable_channel_audit.verdict import Value
from tests.journal_lines import json_lines

from .generated import write_group
from .oracle import Ledger, Lines, broken

EVENTS = ("message_logged", "message_received", "message_acknowledged", "wire_in", "message_sent")
MUTATIONS_A_SEED = 25


def mutate(lines: Lines, random: Random) -> str:
    """Change one thing; return what."""
    places: list[int] = []
    while not places:
        event = random.choice(EVENTS)
        places = [at for at, line in enumerate(lines) if line["event"] == event]
        places = places[len(places) // 5 : -len(places) // 5]  # the very end is excused
    at = random.choice(places)
    what = random.choice(("delete", "double", "swap", "change", "shift"))
    match what:
        case "delete":
            del lines[at]
        case "double":
            there = min(at + random.randrange(1, 20), len(lines) - 1)
            lines.insert(there, lines[at] | {"at_ms": lines[there]["at_ms"]})
        case "swap":
            other = places[(places.index(at) + 1) % len(places)]
            one_ms, other_ms = lines[at]["at_ms"], lines[other]["at_ms"]
            lines[at], lines[other] = lines[other], lines[at]
            lines[at], lines[other] = (
                lines[at] | {"at_ms": one_ms},
                lines[other] | {"at_ms": other_ms},
            )
        case "change":
            what += f" {_change(lines[at], random)}"
        case "shift":
            lines[at]["at_ms"] += random.randrange(-200, 200)
    return f"{what} {event}"


def _change(line: dict[str, Any], random: Random) -> str:
    values = {
        "sender_id": "mallory",
        "lamport_timestamp": (line.get("lamport_timestamp") or 0) + random.choice((-1, 1)),
        "content_sha256": random.randbytes(32).hex(),
        "message_id": random.randbytes(32).hex(),
        "position": (line.get("position") or 0) + 1,
        "source": "store",
    }
    if line["event"] == "message_received":
        values["payload"] = "YW5vdGhlcg=="
        del values["position"]
    name = random.choice(sorted(values.keys() & line.keys()))
    line[name] = values[name]
    return name


@pytest.mark.parametrize("seed", range(8))
def test_the_audit_agrees_with_what_is_known(tmp_path: Path, seed: int) -> None:
    paths = write_group(tmp_path, participants=3, messages=40, seed=seed)
    whole = {path.stem: json_lines(path) for path in paths}
    ledger, random = Ledger.of(whole), Random(seed)
    assert not broken(ledger, whole)
    wrong = []
    for _ in range(MUTATIONS_A_SEED):
        path = random.choice(paths)
        lines = [dict(line) for line in whole[path.stem]]
        what = mutate(lines, random)
        kept = path.read_bytes()
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        verdict = check([tmp_path])
        path.write_bytes(kept)
        truth = broken(ledger, whole | {path.stem: lines})
        if truth and verdict.value is Value.KEPT:
            wrong.append(f"{what}: kept, and {truth[0]}")
        if not truth and verdict.value is Value.BROKEN:
            (first, *_) = verdict.findings
            wrong.append(f"{what}: broken, and nothing is: {first}")
    assert not wrong, "\n".join(wrong)
