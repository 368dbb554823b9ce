"""Fair shares of a table with a limited number of entries. If the table is full, the owner with the
most entries loses one.

A table that evicts its oldest entry lets a flooder win, because each new entry evicts another
owner's. In this module each entry has an owner, the participant whose message brought the entry. An
owner with no more than an equal share loses no entry to others. The owner is the sender that the
message names, which only a signature proves.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace
from typing import Final, TypeVar

_T = TypeVar("_T")


_Rank = tuple[int, int, str]
"""Weight below zero, number of the oldest entry, owner: the first to make room comes first."""
SLACK: Final = 64
"""Number of outdated ranks that are kept, in addition to twice the number of owners."""


@dataclass(slots=True)
class _Share:
    entries: OrderedDict[str, tuple[int, int]] = field(default_factory=OrderedDict)
    """Number and weight by key, oldest first."""
    weight: int = 0
    ranked_weight: int = 0
    """What its rank was noted with; `weight` never exceeds it."""

    def rank(self, owner: str) -> _Rank:
        number, _ = next(iter(self.entries.values()))
        return -self.weight, number, owner


class Shares:
    """Entries of one table by owner.

    The rank of an owner is noted when its share grows, and checked when it must lose an entry.
    Adding and removing an entry thus costs a few look-ups.
    """

    def __init__(self) -> None:
        self._owners: dict[str, str] = {}
        self._shares: dict[str, _Share] = {}
        self._ranks: list[_Rank] = []
        """A heap. No owner ranks above its latest rank in here."""
        self._added = 0

    def __len__(self) -> int:
        return len(self._owners)

    def add(self, key: str, owner: str, weight: int = 1) -> None:
        share = self._shares.get(owner)
        if share is None:
            share = self._shares[owner] = _Share()
        self._added += 1
        share.entries[key] = self._added, weight
        share.weight += weight
        self._owners[key] = owner
        if share.weight > share.ranked_weight:
            share.ranked_weight = share.weight
            heappush(self._ranks, share.rank(owner))
            if len(self._ranks) > 2 * len(self._shares) + SLACK:
                self._rank_anew()

    def remove(self, key: str) -> None:
        """Remove an entry, if it exists."""
        owner = self._owners.pop(key, None)
        if owner is None:
            return
        share = self._shares[owner]
        share.weight -= share.entries.pop(key)[1]
        if not share.entries:
            del self._shares[owner]

    def claim(self, key: str, owner: str) -> None:
        """Move an entry to another owner if that has fewer entries.

        In this way, a flooder that is the first to name a message cannot have its entry evicted.
        """
        if self.weight_of(owner) < self.weight_of(self._owners[key]):
            weight = self._shares[self._owners[key]].entries[key][1]
            self.remove(key)
            self.add(key, owner, weight)

    def weight_of(self, owner: str) -> int:
        share = self._shares.get(owner)
        return share.weight if share else 0

    def owner_of(self, key: str) -> str:
        """Return the owner of an entry."""
        return self._owners[key]

    def heaviest(self) -> str:
        """Return the owner that has the most entries. Among owners with equal numbers, return the
        owner of the oldest entry."""
        ranks = self._ranks
        while True:
            noted = ranks[0]
            owner = noted[2]
            share = self._shares.get(owner)
            if share is None or share.ranked_weight != -noted[0]:
                heappop(ranks)  # gone, or ranked again since
            elif (rank := share.rank(owner)) == noted:
                return owner
            else:
                share.ranked_weight = share.weight
                heapreplace(ranks, rank)

    def first_to_go(self) -> str:
        """Return the oldest entry of the owner that has the most entries."""
        return next(iter(self._shares[self.heaviest()].entries))

    def _rank_anew(self) -> None:
        for share in self._shares.values():
            share.ranked_weight = share.weight
        self._ranks = [share.rank(owner) for owner, share in self._shares.items()]
        heapify(self._ranks)


def in_turn(items: Iterable[_T], owner_of: Callable[[_T], str]) -> list[_T]:
    """Order items so that the first items of all owners come before their second items, and so on.
    Items keep their order within each round."""
    taken = Counter[str]()
    rounds = []
    for item in items:
        owner = owner_of(item)
        rounds.append((taken[owner], item))
        taken[owner] += 1
    return [item for _, item in sorted(rounds, key=lambda pair: pair[0])]
