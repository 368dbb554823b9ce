"""Journals to measure the pipeline with, written by the SDK's own `Journal`.

A case is groups joined by `+`: `20x10000` is a channel of 20 participants and 10,000 messages,
`10*10x5000` are ten such channels, and of `2x500000/1` only one participant's journal is kept.
In `10x5000!` the first message comes again with each other one, as Stores give it.
"""

from __future__ import annotations

import json
import os
import re
import resource
import tempfile
from bisect import bisect_right
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from audit_tests.generated import QUIET_MS, write_group
from reliable_channel.sds.bloom import BloomParameters


class Group(NamedTuple):
    """A channel, and what is kept of it."""

    channel_id: str
    participants: int
    messages: int
    journals: int
    is_hot: bool

    @property
    def deliveries(self) -> int:
        return self.journals * self.messages


class Shape(NamedTuple):
    history: int = 10
    """Message ids in a causal history."""
    bloom_capacity: int = 0
    """0 for no bloom filters."""


def groups(case: str) -> list[Group]:
    """The channels of a case.

    Raises:
        SystemExit: it is none.
    """
    found: list[Group] = []
    for part in case.split("+"):
        parsed = re.fullmatch(r"(?:(\d+)\*)?(\d+)x(\d+)(?:/(\d+))?(!?)", part)
        if parsed is None:
            raise SystemExit(f"{part!r} is not a group; give PARTICIPANTSxMESSAGES, as 20x10000")
        *numbers, hot = parsed.groups()
        channels, participants, messages, journals = (int(n) if n else 0 for n in numbers)
        for _ in range(channels or 1):
            name = f"channel{len(found):03}"
            kept = journals or participants
            found.append(Group(name, participants, messages, kept, bool(hot)))
    return found


def deliveries(case: str) -> int:
    """Messages in all logs of a case."""
    return sum(group.deliveries for group in groups(case))


@contextmanager
def written(
    case: str, shape: Shape, keep: Path | None = None, *, is_running: bool = False
) -> Iterator[Path]:
    """A directory with the journals of a case; one below `keep` stays, and is found again."""
    with ExitStack() as stack:
        below = keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        path = below / "-".join([case.replace("/", "of"), *map(str, shape)])
        if not path.exists():
            _allow_files(max(group.participants for group in groups(case)))
            make = partial(write, directory=path, shape=shape)
            with ProcessPoolExecutor(os.cpu_count()) as processes:
                list(processes.map(make, sorted(groups(case), key=lambda each: -each.deliveries)))
        if is_running:
            path = _running(path, path.with_name(f"{path.name}-running"))
        yield path


def _running(ended: Path, path: Path) -> Path:
    """Copy journals as they were 5 s before the last message arrived: its group was running."""
    for file in ended.rglob("*.jsonl*"):
        copy = path / file.relative_to(ended)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".gz":
            copy.unlink(missing_ok=True)
            copy.hardlink_to(file)
            continue
        lines = file.read_bytes().splitlines(keepends=True)
        until_ms = json.loads(lines[-1])["at_ms"] - QUIET_MS - 5_000
        end = bisect_right(lines, until_ms, key=lambda line: json.loads(line)["at_ms"])
        copy.write_bytes(b"".join(lines[:end]))
    return path


def write(group: Group, directory: Path, shape: Shape) -> None:
    """Write the journals of a group."""
    folder = directory / group.channel_id
    paths = write_group(
        folder,
        participants=group.participants,
        messages=group.messages,
        history=shape.history,
        bloom=BloomParameters(shape.bloom_capacity) if shape.bloom_capacity else None,
        channel_id=group.channel_id,
        is_hot=group.is_hot,
    )
    for path in paths[group.journals :]:
        for part in (path, *folder.glob(f"{path.stem}.*")):
            part.unlink(missing_ok=True)


def _allow_files(participants: int) -> None:
    """A group has all its journals open at once."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(max(soft, participants + 100), hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
