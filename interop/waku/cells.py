"""The matrix: peers x node x service x scenario, which of its cells make sense, and which of these
CI runs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final, Generic, Literal, TypeVar, get_args

from .bench import NodeKind, Service
from .defects import Defect

StageT = TypeVar("StageT")
"""What a scenario plays on; `stage.py` knows cells, so cells do not know it."""

Peers = Literal["ours-ours", "ours-js", "js-ours", "two-of-each"]
SIDES: Final[dict[str, tuple[str, ...]]] = {
    "ours-ours": ("ours", "ours"),
    "ours-js": ("ours", "js"),
    "js-ours": ("js", "ours"),
    "two-of-each": ("ours", "js", "ours", "js"),
}
"""In the order in which they come: the first one opens the channel and speaks first."""


@dataclass(frozen=True, slots=True)
class Scenario(Generic[StageT]):
    """What happens in a cell, and where it can happen."""

    number: str
    title: str
    play: Callable[[StageT], None]
    nodes: Sequence[NodeKind] = get_args(NodeKind)
    services: Sequence[Service] = get_args(Service)
    peers: Sequence[Peers] = get_args(Peers)
    js_may_miss: Sequence[Defect] = ()
    node_forgets: bool = False
    """The node's Store does not outlive the node."""
    is_segmented: bool = False
    """Payloads are cut, so that a log does not hold them as they were sent."""
    options: dict[str, Any] = field(default_factory=dict)
    """Of our side's channels."""


@dataclass(frozen=True, slots=True)
class Cell(Generic[StageT]):
    scenario: Scenario[StageT]
    peers: Peers
    node: NodeKind
    service: Service

    @property
    def name(self) -> str:
        return f"{self.scenario.number}-{self.peers}-{self.node}-{self.service}"

    @property
    def sides(self) -> tuple[str, ...]:
        """The kind of each participant."""
        return SIDES[self.peers]

    @property
    def makes_sense(self) -> bool:
        """A leaf needs a node that relays, on another cluster than a stock node's. `python` is
        `embedded` that listens: it plays where js-waku or our native client speaks libp2p to it,
        and `embedded` the rest. The scenario has its own limits."""
        if self.service == "leaf" and self.node != "store":
            return False
        speaks_libp2p = self.peers != "ours-ours" or self.service == "native"
        if self.node == ("embedded" if speaks_libp2p else "python"):
            return False
        return (
            self.node in self.scenario.nodes
            and self.service in self.scenario.services
            and self.peers in self.scenario.peers
        )


def all_cells(scenarios: Sequence[Scenario[StageT]]) -> Iterator[Cell[StageT]]:
    """Every cell that makes sense."""
    axes = product(scenarios, get_args(Peers), get_args(NodeKind), get_args(Service))
    return (cell for cell in (Cell(*values) for values in axes) if cell.makes_sense)


COVERING: Final = (
    "9-two-of-each-stock-light",  # the longest begins first
    "4-ours-js-store-light",
    "5-two-of-each-store-relay",
    "1-ours-ours-embedded-relay",
    "1-ours-js-store-native",
    "1-two-of-each-store-leaf",
    "2-js-ours-store-relay",
    "3a-ours-js-store-light",
    "3b-ours-js-stock-relay",
    "6a-js-ours-store-light",
    "6b-ours-js-store-relay",
    "7-js-ours-store-light",
    "8-ours-js-store-relay",
    "10-ours-js-store-relay",
    "10s-ours-ours-store-light",
    "11-ours-js-store-relay",
    "12-ours-js-python-light",
)
"""What CI runs: every value of each axis, and every scenario with js-waku."""
