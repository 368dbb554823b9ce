"""Plays cells, several at a time: they mostly wait."""

import sys
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from time import monotonic
from typing import Final

from .bench import LEAF_SHARDS, Bench
from .cells import COVERING, Cell, all_cells
from .played import Played
from .scenarios import SCENARIOS
from .stage import Stage
from .verdict import Verdict, judge

AT_ONCE: Final = 5
"""Cells that are played side by side; more and two cores are what is measured."""


def cells(*, full: bool) -> list[Cell[Stage]]:
    """All cells that make sense, or the covering set, in the order in which they begin."""
    known = {cell.name: cell for cell in all_cells(SCENARIOS)}
    return list(known.values()) if full else [known[name] for name in COVERING]


def play(bench: Bench, cell: Cell[Stage]) -> tuple[Verdict, float]:
    """Play a cell on a separate network; its verdict, and how many seconds it took.

    Raises:
        AssertionError: it does not hold what it has to.
        TimeoutError: something did not come about.
    """
    began = monotonic()
    shards = LEAF_SHARDS if cell.service == "leaf" else None
    forgets = cell.scenario.node_forgets
    with bench.network(cell.node, forgets=forgets, shards=shards) as network:
        stage = Stage(cell, network)
        try:
            cell.scenario.play(stage)
        except Exception as error:
            for peer in stage.peers:
                error.add_note(f"{peer.name} says: {' | '.join(peer.errors)}")
            raise
        verdict = judge(stage)
    return verdict, monotonic() - began


class Matrix:
    """Cells under way; those that are `played` already are not begun."""

    def __init__(
        self, bench: Bench, chosen: list[Cell[Stage]], *, at_once: int, played: Played | None = None
    ) -> None:
        self._bench = bench
        self._played = played
        self._players = ThreadPoolExecutor(at_once)
        self.results: dict[str, Future[tuple[Verdict, float]]] = {}
        for cell in chosen:
            self.results[cell.name] = self._players.submit(self._play, cell)
            self.results[cell.name].add_done_callback(partial(_print_result, cell.name))

    def _play(self, cell: Cell[Stage]) -> tuple[Verdict, float]:
        if self._played is None:
            return play(self._bench, cell)
        if (before := self._played.get(cell)) is not None:
            return before
        try:
            verdict, took_s = play(self._bench, cell)
        except Exception as error:
            self._played.failed(cell, error)
            raise
        return self._played.put(cell, verdict, took_s), took_s

    def close(self) -> None:
        """Begin no further cell, and wait for those under way."""
        self._players.shutdown(cancel_futures=True)


def _print_result(name: str, result: Future[tuple[Verdict, float]]) -> None:
    """One line as soon as a cell ends: the tests ask for them in order."""
    if result.cancelled() or (error := result.exception()) is not None:
        _tell(f"{name}: {'not played' if result.cancelled() else repr(error)[:500]}")
        return
    verdict, took_s = result.result()
    missed = f", js-waku missed {verdict.js_missed}" if verdict.js_missed else ""
    _tell(f"{name}: {verdict.accepted} messages in {took_s:.0f} s{missed}")


def _tell(line: str) -> None:
    """Standard output of a worker of pytest-xdist goes nowhere."""
    print(f"\n{line}", file=sys.stderr, flush=True)
