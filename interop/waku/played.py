"""Cells that passed: a full run takes hours, and a new run goes on where the last one ended.

A verdict is kept for as long as the images and the scenario's own function are the same, and with
it how often the cell failed before it passed: what fails now and then must not be played until it
passes, and be forgotten.
"""

import inspect
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from .cells import Cell
from .verdict import Verdict


class Played:
    """Verdicts in a directory, one file each."""

    def __init__(self, directory: Path, images: Mapping[str, str]) -> None:
        self._directory = directory
        self._images = "\0".join(images[name] for name in sorted(images))

    def get(self, cell: Cell[Any]) -> tuple[Verdict, float] | None:
        """The verdict of a cell that passed, and the seconds it took."""
        try:
            kept = json.loads(self._file(cell).read_bytes())
        except FileNotFoundError:
            return None
        verdict = kept["verdict"] | {"notes": tuple(kept["verdict"]["notes"])}
        return Verdict(**verdict), kept["took_s"]

    def put(self, cell: Cell[Any], verdict: Verdict, took_s: float) -> Verdict:
        """Keep a verdict; return it with the failures before it."""
        verdict = replace(verdict, failures=self._failures(cell))
        file = self._file(cell)
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(".unfinished")
        unfinished.write_text(json.dumps({"verdict": asdict(verdict), "took_s": took_s}))
        unfinished.replace(file)
        return verdict

    def failed(self, cell: Cell[Any], error: Exception) -> None:
        """Note that a cell failed, and why, a line each time."""
        file = self._file(cell).with_suffix(".failures")
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as lines:
            lines.write(json.dumps(repr(error)) + "\n")

    def _failures(self, cell: Cell[Any]) -> int:
        try:
            return len(self._file(cell).with_suffix(".failures").read_text().splitlines())
        except FileNotFoundError:
            return 0

    def _file(self, cell: Cell[Any]) -> Path:
        what = f"{self._images}\0{inspect.getsource(cell.scenario.play)}"
        return self._directory / sha256(what.encode()).hexdigest()[:16] / f"{cell.name}.json"
