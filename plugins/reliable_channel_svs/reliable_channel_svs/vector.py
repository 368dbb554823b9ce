"""State vectors (§3): what a node knows of each node's publications; bytes, comparison, merge."""

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
    """The highest sequence number by node name and bootstrap time.

    What is not in it counts as 0. A name may stand in it without any number.
    """

    __slots__ = ("_entries",)

    def __init__(self, entries: Mapping[Name, Mapping[int, int]] | None = None) -> None:
        self._entries: dict[Name, dict[int, int]] = {}
        for name, numbers in (entries or {}).items():
            self._entries[name] = {boot: seq for boot, seq in numbers.items() if seq}

    @classmethod
    def decode(cls, data: bytes | memoryview) -> "StateVector":
        """Read a vector; entries out of order are taken, and what stands in it twice counts once,
        with the higher number.

        Raises:
            TlvError: it is none.
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
        """Its TLV: names in canonical order, each with its bootstrap times in ascending order."""
        return encode(STATE_VECTOR, *(encode_entry(name, self._entries[name]) for name in self))

    def seq(self, name: Name, boot: int) -> int:
        """The highest number of a node's bootstrap time; 0 if it has none."""
        return self._entries.get(name, _NONE).get(boot, 0)

    def numbers(self, name: Name) -> Mapping[int, int]:
        """Sequence number by bootstrap time of a node."""
        return self._entries.get(name, _NONE)

    def add_name(self, name: Name) -> None:
        """Let the name stand in it, if only without a number."""
        self._entries.setdefault(name, {})

    def raise_to(self, name: Name, boot: int, seq: int) -> bool:
        """Let the number be at least this one; return whether it was lower."""
        numbers = self._entries.setdefault(name, {})
        if seq <= numbers.get(boot, 0):
            return False
        numbers[boot] = seq
        return True

    def merge(self, other: "StateVector") -> None:
        """Take over what `other` knows better (§3, Merging State Vectors)."""
        for name, numbers in other._entries.items():
            self.add_name(name)
            for boot, seq in numbers.items():
                self.raise_to(name, boot, seq)

    def outdated_names(self, than: "StateVector") -> Iterator[Name]:
        """The nodes of which `than` knows more; a name that is missing here is one of them."""
        for name, numbers in than._entries.items():
            own = self._entries.get(name)
            if own is None or any(seq > own.get(boot, 0) for boot, seq in numbers.items()):
                yield name

    def is_outdated_to(self, other: "StateVector") -> bool:
        """§3, Comparing State Vectors."""
        return next(self.outdated_names(other), None) is not None

    def copy(self) -> "StateVector":
        """A separate vector with the same content."""
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
    """A node's entry; a number 0 is as good as none and left out."""
    pairs = (
        encode(SEQ_NO_ENTRY, encode_integer(BOOTSTRAP_TIME, boot), encode_integer(SEQ_NO, seq))
        for boot, seq in sorted(numbers.items())
        if seq
    )
    return encode(STATE_VECTOR_ENTRY, name.encode(), *pairs)
