"""The kept corpus: one file a target, one input a line in base64, the shortest first.

A thousand small files would say no more to a reader, and git would be slower for them.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from .target import MAX_INPUT_BYTES, Target

FOLDER: Final = Path(__file__).parent / "corpus"


def starting_points(target: Target) -> list[bytes]:
    """What was kept and what honest peers write, each once."""
    kept = map(b64decode, (FOLDER / f"{target.name}.txt").read_text().split())
    inputs = dict.fromkeys([*kept, *target.seeds()])
    return [data for data in inputs if len(data) <= MAX_INPUT_BYTES]


def keep(target: Target, inputs: Iterable[bytes]) -> None:
    """Put these in the place of what was kept."""
    ordered = sorted(set(inputs), key=lambda data: (len(data), data))
    lines = [b64encode(data).decode() + "\n" for data in ordered if data]
    (FOLDER / f"{target.name}.txt").write_text("".join(lines))
