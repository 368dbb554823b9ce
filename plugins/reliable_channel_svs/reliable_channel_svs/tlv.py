"""Type-length-value encoding of NDN, as strict as the packet specification.

Types and lengths are variable-size numbers in their shortest form. A `NonNegativeInteger` has 1, 2,
4 or 8 bytes. An element of an unknown type is skipped if the type is even and at least 32. Other
unknown elements are "critical", so the data is refused.
"""

from collections.abc import Collection, Iterator
from typing import Final

from .errors import TlvError

MAX_NUMBER: Final = 2**64 - 1

Element = tuple[int, memoryview]
"""Type and value of one element."""


def encode_number(number: int) -> bytes:
    """Return the encoding of a type or a length in its shortest form."""
    if number < 0xFD:
        return bytes([number])
    if number <= 0xFFFF:
        return b"\xfd" + number.to_bytes(2, "big")
    if number <= 0xFFFF_FFFF:
        return b"\xfe" + number.to_bytes(4, "big")
    return b"\xff" + number.to_bytes(8, "big")


def encode(type_: int, *parts: bytes) -> bytes:
    """Return an encoded element whose value is the joined parts."""
    value = b"".join(parts)
    return encode_number(type_) + encode_number(len(value)) + value


def encode_integer(type_: int, value: int) -> bytes:
    """Return an encoded element whose value is a NonNegativeInteger in its shortest form."""
    return encode(type_, integer_bytes(value))


def integer_bytes(value: int) -> bytes:
    """Return the encoding of a NonNegativeInteger in its shortest form.

    Raises:
        TlvError: the number is negative or above 2^64 - 1.
    """
    for size in (1, 2, 4, 8):
        if 0 <= value < 1 << (8 * size):
            return value.to_bytes(size, "big")
    raise TlvError(f"the number {value} is not between 0 and 2^64 - 1")


def decode_integer(value: memoryview) -> int:
    """Return the NonNegativeInteger that is the value of an element. An encoding that is longer
    than needed is accepted.

    Raises:
        TlvError: its length is not 1, 2, 4 or 8 bytes.
    """
    if len(value) not in (1, 2, 4, 8):
        raise TlvError(f"a number has {len(value)} bytes; 1, 2, 4 and 8 bytes are possible")
    return int.from_bytes(value, "big")


def read_number(data: memoryview, at: int) -> tuple[int, int]:
    """Return the type or length at an offset, and the offset after it."""
    if at >= len(data):
        raise TlvError(f"the data ends at byte {at}, where a type or length should be")
    first = data[at]
    if first < 0xFD:
        return first, at + 1
    size, minimum = _LONG[first]
    end = at + 1 + size
    if end > len(data):
        raise TlvError(f"the data ends within the type or length at byte {at}")
    number = int.from_bytes(data[at + 1 : end], "big")
    if number < minimum:
        raise TlvError(f"the type or length at byte {at} is not in its shortest form")
    return number, end


_LONG: Final = {0xFD: (2, 0xFD), 0xFE: (4, 0x1_0000), 0xFF: (8, 0x1_0000_0000)}


def elements(data: bytes | memoryview) -> Iterator[Element]:
    """Yield the elements in the data, one after the other.

    Raises:
        TlvError: an element is cut off, or its type or length is not in its shortest form.
    """
    view = memoryview(data)
    at = 0
    while at < len(view):
        type_, after_type = read_number(view, at)
        length, start = read_number(view, after_type)
        if type_ == 0:
            raise TlvError(f"the element at byte {at} has the forbidden type 0")
        if length > len(view) - start:
            left = len(view) - start
            raise TlvError(
                f"element {type_} at byte {at} announces {length} bytes, but {left} follow"
            )
        yield type_, view[start : start + length]
        at = start + length


def only(data: bytes | memoryview, type_: int) -> memoryview:
    """Return the value of the only element in the data, which must have the given type.

    Raises:
        TlvError: the data is anything else.
    """
    reader = Reader(data)
    value = reader.take(type_)
    reader.end()
    return value


class Reader:
    """Reads the elements of a value in their required order.

    Elements that may be ignored are skipped, unless `optional` lists their type.
    """

    def __init__(self, data: bytes | memoryview, optional: Collection[int] = ()) -> None:
        self._elements = elements(data)
        self._optional = optional
        self._next: Element | None = None
        self._advance()

    def take(self, type_: int) -> memoryview:
        """Return the value of the next element, which must have the given type.

        Raises:
            TlvError: there is no such element, or a critical one comes before it.
        """
        value = self.take_if(type_)
        if value is None:
            found = "nothing" if self._next is None else f"element {self._next[0]}"
            raise TlvError(f"element {type_} is missing; the packet has {found} instead")
        return value

    def take_if(self, type_: int) -> memoryview | None:
        """Return the value of the next element if it has the given type, otherwise None."""
        while self._next is not None:
            found, value = self._next
            if found == type_:
                self._advance()
                return value
            if is_critical(found) or found in self._optional:
                return None
            self._advance()
        return None

    def end(self) -> None:
        """Check that no elements follow, except those that may be ignored.

        Raises:
            TlvError: another element follows.
        """
        while self._next is not None:
            if is_critical(self._next[0]):
                raise TlvError(f"element {self._next[0]} is not allowed at this place")
            self._advance()

    def _advance(self) -> None:
        self._next = next(self._elements, None)


def is_critical(type_: int) -> bool:
    """Return True if an unknown element of this type makes the data unreadable."""
    return type_ < 32 or type_ % 2 == 1
