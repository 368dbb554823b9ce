"""NDN names, with their encoding, canonical order and text form."""

from functools import total_ordering
from hashlib import sha256
from typing import Final, Self
from urllib.parse import quote_from_bytes, unquote_to_bytes

from .errors import InvalidName, TlvError
from .tlv import (
    decode_integer,
    elements,
    encode,
    encode_integer,
    encode_number,
    integer_bytes,
    only,
    read_number,
)

NAME: Final = 0x07
IMPLICIT_DIGEST: Final = 1
PARAMETERS_DIGEST: Final = 2
GENERIC: Final = 8
KEYWORD: Final = 32
SEGMENT: Final = 50
VERSION: Final = 54
TIMESTAMP: Final = 56
SEQUENCE: Final = 58

_DIGESTS: Final = {"sha256digest": IMPLICIT_DIGEST, "params-sha256": PARAMETERS_DIGEST}
_NUMBERS: Final = {"seg": SEGMENT, "off": 52, "v": VERSION, "t": TIMESTAMP, "seq": SEQUENCE}
_TEXTS: Final = {type_: text for text, type_ in (_DIGESTS | _NUMBERS).items()}


@total_ordering
class Name:
    """NDN name, which consists of components. Each component is stored in its TLV form.

    Names are ordered as the NDN packet specification requires. Names are compared component by
    component, by type, then length, then bytes. The encoded components have the same order as the
    components.
    """

    __slots__ = ("_hash", "components")

    def __init__(self, components: tuple[bytes, ...] = ()) -> None:
        self.components = components
        self._hash = hash(components)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the name in a text such as `/chat/room%20one/t=5`.

        Raises:
            InvalidName: the text is no name.
        """
        if not text.startswith("/"):
            raise InvalidName(f"the name {text!r} does not start with /")
        parts = text[1:].split("/") if text != "/" else []
        return cls(tuple(_parse_component(part, text) for part in parts))

    @classmethod
    def decode(cls, data: bytes | memoryview) -> Self:
        """Return the name in a TLV.

        Raises:
            TlvError: the bytes are no name.
        """
        return cls.from_value(only(data, NAME))

    @classmethod
    def from_value(cls, value: memoryview) -> Self:
        """Return the name whose TLV has the given value.

        Raises:
            TlvError: the value is not a sequence of components.
        """
        return cls(tuple(_checked(type_, bytes(part)) for type_, part in elements(value)))

    def encode(self) -> bytes:
        """Return the TLV encoding of the name."""
        return encode(NAME, *self.components)

    def append(self, *others: "Name | bytes") -> "Name":
        """Return this name with other names or components appended."""
        parts = [o.components if isinstance(o, Name) else (o,) for o in others]
        return Name(self.components + tuple(c for part in parts for c in part))

    def starts_with(self, prefix: "Name") -> bool:
        """Return True if `prefix` is the beginning of this name or the whole name."""
        return self.components[: len(prefix.components)] == prefix.components

    def __len__(self) -> int:
        return len(self.components)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Name) and self.components == other.components

    def __lt__(self, other: "Name") -> bool:
        return self.components < other.components

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return "/" + "/".join(map(_component_text, self.components))

    def __repr__(self) -> str:
        return f"Name.parse({str(self)!r})"


def number_component(type_: int, number: int) -> bytes:
    """Return a name component with a number, such as `t=` or `seq=`."""
    return encode_integer(type_, number)


def text_component(text: str, type_: int = GENERIC) -> bytes:
    """Return a name component with a text."""
    return encode(type_, text.encode())


def parameters_digest(parameters: bytes) -> bytes:
    """Return the component with the digest of an Interest's ApplicationParameters."""
    return encode(PARAMETERS_DIGEST, sha256(parameters).digest())


def component_number(component: bytes, type_: int) -> int | None:
    """Return the number in a component of the given type, or None for other components."""
    found, value = split_component(component)
    if found != type_:
        return None
    try:
        return decode_integer(memoryview(value))
    except TlvError:
        return None


def split_component(component: bytes) -> tuple[int, bytes]:
    """Return the type and the value of a name component."""
    view = memoryview(component)
    type_, after_type = read_number(view, 0)
    _, start = read_number(view, after_type)
    return type_, component[start:]


def _checked(type_: int, value: bytes) -> bytes:
    if not 0 < type_ <= 0xFFFF:
        raise TlvError(f"a name component has the type {type_}; types from 1 to 65535 are possible")
    if type_ in (IMPLICIT_DIGEST, PARAMETERS_DIGEST) and len(value) != 32:
        raise TlvError(f"a digest in a name has {len(value)} bytes; a SHA-256 digest has 32")
    return encode_number(type_) + encode_number(len(value)) + value


def _parse_component(part: str, whole: str) -> bytes:
    prefix, equals, rest = part.partition("=")
    try:
        if not equals:
            return _checked(GENERIC, _unescape(part))
        if prefix in _DIGESTS:
            return _checked(_DIGESTS[prefix], bytes.fromhex(rest))
        if prefix in _NUMBERS:
            return encode(_NUMBERS[prefix], integer_bytes(int(rest)))
        return _checked(int(prefix), _unescape(rest))
    except (ValueError, TlvError) as error:
        raise InvalidName(
            f"component {part!r} of the name {whole!r} is invalid: {error}"
        ) from error


def _unescape(text: str) -> bytes:
    if not text:
        raise ValueError("a name has an empty component; write an empty component as ...")
    if set(text) == {"."}:
        if len(text) < 3:
            raise ValueError(
                "a name component must not be . or ..: neither has a meaning in a name"
            )
        return b"." * (len(text) - 3)
    return unquote_to_bytes(text)


def _component_text(component: bytes) -> str:
    type_, value = split_component(component)
    if type_ in (IMPLICIT_DIGEST, PARAMETERS_DIGEST):
        return f"{_TEXTS[type_]}={value.hex()}"
    if type_ in _TEXTS and len(value) in (1, 2, 4, 8):
        number = int.from_bytes(value, "big")
        if integer_bytes(number) == value:
            return f"{_TEXTS[type_]}={number}"
    text = quote_from_bytes(value, safe="-._~")
    if not value.strip(b"."):
        text = "..." + text
    return text if type_ == GENERIC else f"{type_}={text}"
