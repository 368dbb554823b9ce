"""Flow control: requests on their way from one event loop to one node.

A node is shared, and slow at times. Bursts break more than themselves: nim-libp2p closes the stream
between two nwaku nodes when more than 256 kB wait on it, and with it goes the relay of all shards
for minutes. It ends the eleventh stream of one peer and protocol without an answer.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final
from weakref import WeakValueDictionary

import anyio
from anyio.lowlevel import RunVar

__all__ = ["MAX_BYTES", "MAX_REQUESTS", "Load", "passing"]

MAX_BYTES: Final = 100_000
"""Bytes of messages on their way at a time, of all protocols; a larger message goes alone."""
MAX_REQUESTS: Final = 8
"""Requests of one protocol on their way at a time; nim-libp2p serves ten."""
OTHERS_EVERY: Final = 8
"""One admission in so many is for what is not urgent, so that it cannot starve."""


@dataclass(frozen=True, slots=True)
class Load:
    """A request as the gate sees it."""

    protocol: str
    """What the node serves it by; each protocol has a line to itself."""
    size_bytes: int = 0
    """Bytes that the node passes on."""
    lane: str = ""
    """The content topic. Those that wait take turns by lane."""
    urgent: bool = True


@dataclass(eq=False, slots=True)
class _Waiter:
    load: Load
    event: anyio.Event
    is_admitted: bool = False


class _Queue:
    """Waiters of one urgency, the lanes in turns. Each method takes constant time."""

    def __init__(self) -> None:
        self._lanes: OrderedDict[str, OrderedDict[_Waiter, None]] = OrderedDict()

    @property
    def first(self) -> _Waiter | None:
        """The waiter whose turn it is."""
        lane = next(iter(self._lanes.values()), None)
        return None if lane is None else next(iter(lane))

    def add(self, waiter: _Waiter) -> None:
        """Queue a waiter behind those of its lane."""
        self._lanes.setdefault(waiter.load.lane, OrderedDict())[waiter] = None

    def remove(self, waiter: _Waiter) -> None:
        """Take a waiter out; one that had its turn sends its lane to the end."""
        name = waiter.load.lane
        had_turn = self.first is waiter
        lane = self._lanes[name]
        del lane[waiter]
        if not lane:
            del self._lanes[name]
        elif had_turn:
            self._lanes.move_to_end(name)


class _Gate:
    """All that goes to one node."""

    def __init__(self) -> None:
        self.bytes = 0
        self._lines: dict[str, _Line] = {}

    def line(self, protocol: str) -> _Line:
        """The line of a protocol."""
        return self._lines.setdefault(protocol, _Line(self))

    def admit(self) -> None:
        """Let go what may, after something left."""
        for line in self._lines.values():
            line.admit()


class _Line:
    """Requests of one protocol to one node."""

    def __init__(self, gate: _Gate) -> None:
        self._gate = gate
        self._requests = self._turn = 0
        self._urgent, self._others = _Queue(), _Queue()

    async def enter(self, load: Load) -> None:
        """Wait until a request may go; `leave` must follow."""
        if self._first() is None and self._fits(load):
            self._count(load)
            return
        queue = self._urgent if load.urgent else self._others
        waiter = _Waiter(load, anyio.Event())
        queue.add(waiter)
        try:
            await waiter.event.wait()
        except BaseException:  # cancelled: the place is another's
            if waiter.is_admitted:
                self.leave(load)
            else:
                queue.remove(waiter)
                self.admit()
            raise

    def leave(self, load: Load) -> None:
        """Note that a request is over, and let others go."""
        self._requests -= 1
        self._gate.bytes -= load.size_bytes
        self._gate.admit()

    def admit(self) -> None:
        """Let those go that fit now."""
        while (waiter := self._first()) is not None and self._fits(waiter.load):
            (self._urgent if waiter.load.urgent else self._others).remove(waiter)
            self._count(waiter.load)
            waiter.is_admitted = True
            waiter.event.set()

    def _first(self) -> _Waiter | None:
        """The waiter whose turn it is. No other overtakes it: a large one would wait for ever."""
        queues = self._urgent, self._others
        first, second = queues if self._turn % OTHERS_EVERY else reversed(queues)
        return first.first or second.first

    def _fits(self, load: Load) -> bool:
        now = self._gate.bytes
        fits = not now or not load.size_bytes or now + load.size_bytes <= MAX_BYTES
        return fits and self._requests < MAX_REQUESTS

    def _count(self, load: Load) -> None:
        self._turn += 1
        self._requests += 1
        self._gate.bytes += load.size_bytes


_gates: RunVar[WeakValueDictionary[str, _Gate]] = RunVar("waku_gates")
"""Gates that are in use, by node, for each event loop."""


@asynccontextmanager
async def passing(node: str, load: Load) -> AsyncIterator[None]:
    """Hold a place among the requests to a node (its base URL or peer id), once there is one."""
    try:
        gates = _gates.get()
    except LookupError:
        _gates.set(gates := WeakValueDictionary())
    if (gate := gates.get(node)) is None:
        gate = gates[node] = _Gate()
    line = gate.line(load.protocol)
    await line.enter(load)
    try:
        yield
    finally:
        line.leave(load)
