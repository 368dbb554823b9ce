"""Codecs of typed channels, which convert a value to a payload and back."""

import json as _json
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, Protocol, TypeVar, overload

from .._arguments import checked_payload

T = TypeVar("T")
JsonValue = dict[str, Any] | list[Any] | str | int | float | bool | None
"""Type of the values that JSON can represent."""


class Codec(Protocol[T]):
    """Conversion of values of one type to payloads and back."""

    def encode(self, value: T, /) -> bytes:
        """Return the payload for a value."""
        ...

    def decode(self, payload: bytes, /) -> T:
        """Return the value in a payload, or raise an error if the payload is invalid."""
        ...


class Functions:
    """Codec that consists of two functions."""

    def __init__(self, encode: Callable[[Any], bytes], decode: Callable[[bytes], Any]) -> None:
        self.encode: Final = encode
        self.decode: Final = decode


PLAIN: Final[Codec[bytes]] = Functions(checked_payload, bytes)
"""Codec that keeps payloads unchanged."""


@overload
def json() -> Codec[JsonValue]: ...
@overload
def json(kind: type[T]) -> Codec[T]: ...
def json(kind: type[Any] | None = None) -> Codec[Any]:
    """Return the codec of JSON values, or of values of one type as JSON.

    A `kind` may be a pydantic model. With msgspec, a `kind` may also be a `Struct`, a dataclass or
    a `TypedDict`. The payload is JSON in UTF-8 without white space.

    Raises:
        ValueError: no library for this type is installed. The text names one.
    """
    if kind is None:
        return Functions(_plain_json, _json.loads)
    if hasattr(kind, "model_validate_json"):
        return Functions(lambda value: value.model_dump_json().encode(), kind.model_validate_json)
    if find_spec("msgspec") is None:
        raise ValueError(
            f"`kind` must be a pydantic model (got {kind!r}); for other types: pip install msgspec"
        )
    library = import_module("msgspec.json")
    return Functions(library.Encoder().encode, library.Decoder(kind).decode)


def _plain_json(value: object) -> bytes:
    return _json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
