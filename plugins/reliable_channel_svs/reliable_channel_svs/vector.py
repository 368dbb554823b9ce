"""State vectors (§3), with encoding, comparison and merge."""

from collections.abc import Iterator, Mapping
from typing import Final

from .name import NAME, Name
from .tlv import Reader, decode_integer, encode, encode_integer

STATE_VECTOR: Final = 201
STATE_VECTOR_ENTRY: Final = 202
SEQ_NO_ENTRY: Final = 210
BOOTSTRAP_TIME: Final = 212
SEQ_NO: Final = 214


class StateVector:
    """State vector, with the highest sequence number by node name and bootstrap time.

    A node that is missing in the vector counts as 0. The vector may contain a name without any
    number.
    """

    __slots__ = ("_entries",)

    def __init__(self, entries: Mapping[Name, Mapping[int, int]] | None = None) -> None:
        self._entries: dict[Name, dict[int, int]] = {}
        for name, numbers in (entries or {}).items():
            self._entries[name] = {boot: seq for boot, seq in numbers.items() if seq}

    @classmethod
    def decode(cls, data: bytes | memoryview) -> "StateVector":
        """Return the state vector in a TLV. Entries may be in any order, and of repeated entries
        the highest number counts.

        Raises:
            TlvError: the bytes are no vector.
        """
        outer = Reader(data)
        reader = Reader(outer.take(STATE_VECTOR))
        vector = cls()
        while (entry := reader.take_if(STATE_VECTOR_ENTRY)) is not None:
            vector._take_entry(Reader(entry))
        reader.end()
        outer.end()
        return vector

    def _take_entry(self, reader: Reader) -> None:
        name = Name.from_value(reader.take(NAME))
        self.add_name(name)
        while (numbers := reader.take_if(SEQ_NO_ENTRY)) is not None:
            pair = Reader(numbers)
            boot = decode_integer(pair.take(BOOTSTRAP_TIME))
            seq = decode_integer(pair.take(SEQ_NO))
            pair.end()
            self.raise_to(name, boot, seq)
        reader.end()

    def encode(self) -> bytes:
        """Return the TLV of the vector, with names and bootstrap times in ascending order."""
        return encode(STATE_VECTOR, *(encode_entry(name, self._entries[name]) for name in self))

    def seq(self, name: Name, boot: int) -> int:
        """Return the highest number under a node's bootstrap time, or 0 without a number."""
        return self._entries.get(name, _NONE).get(boot, 0)

    def numbers(self, name: Name) -> Mapping[int, int]:
        """Return the sequence numbers of a node, by bootstrap time."""
        return self._entries.get(name, _NONE)

    def add_name(self, name: Name) -> None:
        """Add the name of a node to the vector, without a number if it is new."""
        self._entries.setdefault(name, {})

    def raise_to(self, name: Name, boot: int, seq: int) -> bool:
        """Raise a node's number to at least the given number. If the number was lower before,
        `raise_to` returns True."""
        numbers = self._entries.setdefault(name, {})
        if seq <= numbers.get(boot, 0):
            return False
        numbers[boot] = seq
        return True

    def merge(self, other: "StateVector") -> None:
        """Raise all numbers to those of `other` if they are higher (§3, Merging State Vectors)."""
        for name, numbers in other._entries.items():
            self.add_name(name)
            for boot, seq in numbers.items():
                self.raise_to(name, boot, seq)

    def outdated_names(self, than: "StateVector") -> Iterator[Name]:
        """Yield the nodes for which `than` has higher numbers. A node that is missing in this
        vector is also yielded."""
        for name, numbers in than._entries.items():
            own = self._entries.get(name)
            if own is None or any(seq > own.get(boot, 0) for boot, seq in numbers.items()):
                yield name

    def is_outdated_to(self, other: "StateVector") -> bool:
        """Return True if `other` has a higher number for any node (§3, Comparing State Vectors)."""
        return next(self.outdated_names(other), None) is not None

    def copy(self) -> "StateVector":
        """Return a separate copy of the vector."""
        return StateVector(self._entries)

    def __iter__(self) -> Iterator[Name]:
        """The names in canonical order."""
        return iter(sorted(self._entries))

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StateVector) and self._entries == other._entries

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        entries = (f"{name}={self._entries[name]}" for name in self)
        return f"StateVector({', '.join(entries)})"


_NONE: Final[Mapping[int, int]] = {}


def encode_entry(name: Name, numbers: Mapping[int, int]) -> bytes:
    """Return the encoded entry of a node. An entry has no numbers that are 0."""
    pairs = (
        encode(SEQ_NO_ENTRY, encode_integer(BOOTSTRAP_TIME, boot), encode_integer(SEQ_NO, seq))
        for boot, seq in sorted(numbers.items())
        if seq
    )
    return encode(STATE_VECTOR_ENTRY, name.encode(), *pairs)
