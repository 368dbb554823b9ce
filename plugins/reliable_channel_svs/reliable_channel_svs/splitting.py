"""State vectors that do not fit into one packet.

The specification does not mention long vectors, and forwarders silently drop long packets. This
module sends a long vector in parts, each of which is a valid vector.

1. The node's own entry is in the first part, so that news travels first.
2. The other entries follow in canonical order, as many in a part as fit.
3. An entry that is longer than a part is divided between bootstrap times.

A receiver that follows the specification needs no extra code for the parts. The first part puts a
receiver in Suppression State, and its `MergedStateVector` gets the others. When the timer ends, the
merge is complete, and the receiver sends no answer. If a receiver
answers the first part, that costs one extra packet.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from .name import Name
from .vector import StateVector, encode_entry

HEADER_BYTES: Final = 4
"""Size of the type and the length of a vector with up to 65,535 bytes."""


def split(vector: StateVector, own_name: Name, limit_bytes: int) -> list[bytes]:
    """Return the encoded vector in as many parts as the limit requires."""
    whole = vector.encode()
    if len(whole) <= limit_bytes:
        return [whole]
    room = limit_bytes - HEADER_BYTES
    parts = [StateVector()]
    used = 0
    for name, numbers, size in _pieces(vector, own_name, room):
        if used + size > room:
            parts.append(StateVector())
            used = 0
        parts[-1].merge(StateVector({name: numbers}))
        used += size
    return [part.encode() for part in parts]


def _pieces(
    vector: StateVector, own_name: Name, room: int
) -> Iterator[tuple[Name, Mapping[int, int], int]]:
    for name in sorted(vector, key=lambda name: (name != own_name, name)):
        numbers = vector.numbers(name)
        size = len(encode_entry(name, numbers))
        if size <= room:
            yield name, numbers, size
            continue
        for boot, seq in sorted(numbers.items()):
            piece = {boot: seq}
            yield name, piece, len(encode_entry(name, piece))
