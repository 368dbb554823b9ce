"""Cells that passed: a full run takes hours, and whoever begins it again goes on where it was.

A verdict is kept for as long as the images and the scenario's own function are the same.
"""

import inspect
import json
from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

from .cells import Cell
from .verdict import Verdict


class Played:
    """Verdicts in a directory, one file each."""

    def __init__(self, directory: Path, images: Mapping[str, str]) -> None:
        self._directory = directory
        self._images = "\0".join(images[name] for name in sorted(images))

    def get(self, cell: Cell) -> tuple[Verdict, float] | None:
        """The verdict of a cell that passed, and the seconds it took."""
        try:
            kept = json.loads(self._file(cell).read_bytes())
        except FileNotFoundError:
            return None
        verdict = kept["verdict"] | {"notes": tuple(kept["verdict"]["notes"])}
        return Verdict(**verdict), kept["took_s"]

    def put(self, cell: Cell, verdict: Verdict, took_s: float) -> None:
        """Keep a verdict."""
        file = self._file(cell)
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(".unfinished")
        unfinished.write_text(json.dumps({"verdict": asdict(verdict), "took_s": took_s}))
        unfinished.replace(file)

    def _file(self, cell: Cell) -> Path:
        what = f"{self._images}\0{inspect.getsource(cell.scenario.play)}"
        return self._directory / sha256(what.encode()).hexdigest()[:16] / f"{cell.name}.json"
