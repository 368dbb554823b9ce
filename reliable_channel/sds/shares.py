"""Who filled a bounded table, so that whoever holds most makes room, not whoever waited longest.

A table that lets go of its oldest entry serves the one who floods it: each of its entries pushes
out one of somebody else's. Here each entry has an owner, the participant whose message brought it,
and the heaviest owner pays: whoever holds no more than an equal share loses nothing to others. An
owner is who a message says its sender is; only signed senders prove that.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from sortedcontainers import SortedList

_T = TypeVar("_T")


@dataclass(slots=True)
class _Share:
    """What one owner holds."""

    entries: OrderedDict[str, tuple[int, int]] = field(default_factory=OrderedDict)
    """Number and weight by key, oldest first."""
    weight: int = 0

    def rank(self, owner: str) -> tuple[int, int, str]:
        """Heavier ranks higher; of equally heavy ones, the one with the oldest entry."""
        number, _ = next(iter(self.entries.values()))
        return self.weight, -number, owner


class Shares:
    """The entries of one table by owner; every operation costs the logarithm of the owners."""

    def __init__(self) -> None:
        self._owners: dict[str, str] = {}
        self._shares: dict[str, _Share] = {}
        self._ranks: SortedList[tuple[int, int, str]] = SortedList()
        self._added = 0

    def __len__(self) -> int:
        return len(self._owners)

    def add(self, key: str, owner: str, weight: int = 1) -> None:
        """Note a new entry."""
        self._added += 1
        share = self._shares.get(owner)
        if share is None:
            share = self._shares[owner] = _Share()
        else:
            self._ranks.remove(share.rank(owner))
        share.entries[key] = self._added, weight
        share.weight += weight
        self._ranks.add(share.rank(owner))
        self._owners[key] = owner

    def remove(self, key: str) -> None:
        """Forget an entry, if it is one."""
        owner = self._owners.pop(key, None)
        if owner is None:
            return
        share = self._shares[owner]
        self._ranks.remove(share.rank(owner))
        share.weight -= share.entries.pop(key)[1]
        if share.entries:
            self._ranks.add(share.rank(owner))
        else:
            del self._shares[owner]

    def claim(self, key: str, owner: str) -> None:
        """Give an entry to another owner who holds less.

        Else a flooder who names first what others miss would have it thrown out with its own.
        """
        if self.weight_of(owner) < self.weight_of(self._owners[key]):
            weight = self._shares[self._owners[key]].entries[key][1]
            self.remove(key)
            self.add(key, owner, weight)

    def weight_of(self, owner: str) -> int:
        """What an owner holds."""
        share = self._shares.get(owner)
        return share.weight if share else 0

    def owner_of(self, key: str) -> str:
        """Who brought an entry."""
        return self._owners[key]

    def heaviest(self) -> str:
        """The owner who holds most."""
        owner: str = self._ranks[-1][2]
        return owner

    def first_to_go(self) -> str:
        """The oldest entry of the owner who holds most."""
        return next(iter(self._shares[self.heaviest()].entries))


def in_turn(items: Iterable[_T], owner_of: Callable[[_T], str]) -> list[_T]:
    """Order items so that each owner's first come before anybody's second, and so on; within a
    round they keep their order."""
    taken = Counter[str]()
    rounds = []
    for item in items:
        owner = owner_of(item)
        rounds.append((taken[owner], item))
        taken[owner] += 1
    return [item for _, item in sorted(rounds, key=lambda pair: pair[0])]
