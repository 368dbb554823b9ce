"""Random changes of journals, judged by an oracle that knows the run.

What breaks a promise is never found kept, and what breaks none is never found broken. Many seeds:
`python -m audit_tests.mutations --seeds 100`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from reliable_channel_audit import check as checking
from reliable_channel_audit.check import check
from reliable_channel_audit.facts import Fact, facts_of
from reliable_channel_audit.findings import SETTLE_MS
from reliable_channel_audit.journals import Participant
from reliable_channel_audit.verdict import Value, Verdict
from tests.journal_lines import json_lines

from . import simulated
from .oracle import Ledger, Lines, broken, broken_alone

EVENTS = ("message_logged", "message_received", "message_acknowledged", "wire_in", "message_sent")
MUTATIONS_A_SEED = 25
LEAST_MESSAGES = 8
"""A run with fewer has too few lines in its middle."""


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


class Mistakes(list[str]):
    """Where the audit and the oracle do not agree, and how often each judged what."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[tuple[str, str]] = Counter()


class FactsOnce:
    """`facts_of`, once for each content of a participant's files: one journal of a group is
    changed, and what the others say is the same each time."""

    def __init__(self) -> None:
        self._known: dict[tuple[Participant, int, tuple[bytes, ...]], Sequence[Fact]] = {}

    def __call__(self, participant: Participant, *, settle_ms: int) -> Sequence[Fact]:
        files = tuple(Path(path).read_bytes() for path in participant.paths)
        key = participant, settle_ms, files
        if key not in self._known:
            self._known[key] = tuple(facts_of(participant, settle_ms=settle_ms))
        return self._known[key]

    def check(self, directory: Path, settle_ms: int) -> Verdict:
        """Judge the journals of a directory."""
        with patch.object(checking, "facts_of", self):
            return check([directory], settle_ms=settle_ms)


def judged(
    paths: list[Path],
    ledger: Ledger,
    seed: int,
    mutations: int,
    settle_ms: int = SETTLE_MS,
    facts: FactsOnce | None = None,
) -> Mistakes:
    """Change journals in one place each time, and compare the audit with the oracle."""
    whole = {path.stem: json_lines(path) for path in paths}
    alone = {name: broken_alone(ledger, name, lines) for name, lines in whole.items()}
    random, found, facts = Random(seed), Mistakes(), facts or FactsOnce()
    assert not broken(ledger, whole, alone), f"seed {seed} as it was"
    for number in range(mutations):
        path = random.choice(paths)
        lines = [dict(line) for line in whole[path.stem]]
        what = mutate(lines, random)
        kept = path.read_bytes()
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        verdict = facts.check(path.parent, settle_ms)
        path.write_bytes(kept)
        others = {name: what for name, what in alone.items() if name != path.stem}
        truth = broken(ledger, whole | {path.stem: lines}, others)
        found.counts["broken" if truth else "whole", verdict.value.value] += 1
        about = f"seed {seed}, mutation {number} at {path.stem}, {what}"
        if truth and verdict.value is Value.KEPT:
            found.append(f"{about}: kept, and {truth[0]}")
        if not truth and verdict.value is Value.BROKEN:
            (first, *_) = verdict.findings
            found.append(f"{about}: broken, and nothing is: {first}")
    return found


def judged_run(seed: int, directory: Path, mutations: int = MUTATIONS_A_SEED) -> Mistakes:
    """The same with journals of a run of the simulator, which are right as they are."""
    ledger = simulated.run(seed, directory)
    paths = sorted(directory.glob("*.jsonl"))
    found, facts = Mistakes(), FactsOnce()
    verdict = facts.check(directory, simulated.SETTLE_MS)
    if verdict.value is Value.BROKEN:
        found.append(f"seed {seed} as it was: broken: {verdict.findings[0]}")
    elif len(ledger.messages) >= LEAST_MESSAGES:
        return judged(paths, ledger, seed, mutations, simulated.SETTLE_MS, facts)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--mutations", type=int, default=MUTATIONS_A_SEED, help="A seed.")
    arguments = parser.parse_args()
    counts: Counter[tuple[str, str]] = Counter()
    wrong = 0
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
        with TemporaryDirectory() as directory:
            found = judged_run(seed, Path(directory), arguments.mutations)
        counts += found.counts
        wrong += len(found)
        for each in found:
            print(each, flush=True)
    for (truth, value), number in sorted(counts.items()):
        print(f"{number} of {counts.total()}: {truth} in truth, found {value}")
    print(f"{wrong} mistakes")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
