"""Value classes for objects that are made for every message."""

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def value(cls: type[T]) -> type[T]:
    """Make a dataclass that only the type checker treats as frozen. A really frozen object takes
    four times as long to make, and each message makes a dozen objects."""
    return dataclass(slots=True, unsafe_hash=True)(cls)
