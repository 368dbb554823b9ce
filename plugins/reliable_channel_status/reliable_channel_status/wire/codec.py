"""Conversion of payloads to protobuf messages and back. Only this module uses the generated
protobuf code of payloads.

A dataclass has the same name as its protobuf message, and the same field names. The annotation of a
dataclass field determines its encoding, and is read once for each class.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import IntEnum
from functools import cache
from types import UnionType
from typing import Any, Final, get_args, get_origin, get_type_hints

from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from . import status_pb2
from .community_payloads import (
    CommunityDescription,
    CommunityEncryptionKeysRequest,
    CommunityRequestToJoin,
    CommunityRequestToJoinResponse,
    CommunityRequestToLeave,
    CommunityUserKicked,
    ContactCodeAdvertisement,
)
from .enums import PayloadType
from .payloads import (
    AcceptContactRequest,
    ChatMessage,
    ContactUpdate,
    DeleteMessage,
    EditMessage,
    EmojiReaction,
    MembershipUpdateMessage,
    Payload,
    PinMessage,
    RetractContactRequest,
    StatusUpdate,
)

PAYLOADS: Final[dict[PayloadType, type[Payload]]] = {
    PayloadType.CHAT_MESSAGE: ChatMessage,
    PayloadType.EDIT_MESSAGE: EditMessage,
    PayloadType.DELETE_MESSAGE: DeleteMessage,
    PayloadType.PIN_MESSAGE: PinMessage,
    PayloadType.EMOJI_REACTION: EmojiReaction,
    PayloadType.STATUS_UPDATE: StatusUpdate,
    PayloadType.CONTACT_UPDATE: ContactUpdate,
    PayloadType.CONTACT_CODE_ADVERTISEMENT: ContactCodeAdvertisement,
    PayloadType.ACCEPT_CONTACT_REQUEST: AcceptContactRequest,
    PayloadType.RETRACT_CONTACT_REQUEST: RetractContactRequest,
    PayloadType.MEMBERSHIP_UPDATE_MESSAGE: MembershipUpdateMessage,
    PayloadType.COMMUNITY_DESCRIPTION: CommunityDescription,
    PayloadType.COMMUNITY_REQUEST_TO_JOIN: CommunityRequestToJoin,
    PayloadType.COMMUNITY_REQUEST_TO_JOIN_RESPONSE: CommunityRequestToJoinResponse,
    PayloadType.COMMUNITY_REQUEST_TO_LEAVE: CommunityRequestToLeave,
    PayloadType.COMMUNITY_USER_KICKED: CommunityUserKicked,
    PayloadType.COMMUNITY_ENCRYPTION_KEYS_REQUEST: CommunityEncryptionKeysRequest,
}
MAX_PARTS: Final = 2_000
"""Maximum number of elements of a repeated field. Clients send a few tens of elements. An empty
element has two bytes, but needs as much memory as any other element."""
UNKNOWN: Final = "unknown"
"""Name of the dataclass field for unknown message fields (`Extensible`)."""
TYPES: Final[dict[type[Payload], PayloadType]] = {kind: name for name, kind in PAYLOADS.items()}


class _TooManyParts(Exception):
    pass


def parsed(message: Message, data: bytes) -> bool:
    """Read `data` into `message`. If `data` is not protobuf or is another message, `parsed` returns
    False.

    The type of a payload is not signed, so a third party may change the type. protobuf would skip a
    field of another message that has the same number but another wire type.
    """
    try:
        message.ParseFromString(data)
    except DecodeError:
        return False
    known = message.DESCRIPTOR.fields_by_number
    unknown: Any = UnknownFieldSet(message)  # iterable, which its types do not tell
    return all(field.field_number not in known for field in unknown)


def encode_payload(payload: Payload) -> bytes:
    """Return a payload in its protobuf encoding.

    Raises:
        ValueError: a number outside its range, or a text that is not Unicode.
        TypeError: a value of another type than its field's.
    """
    message: Message = getattr(status_pb2, type(payload).__name__)()
    _fill(message, payload)
    return message.SerializeToString()


def decode_payload(payload_type: PayloadType, data: bytes) -> Payload | None:
    """Return the payload in `data`, or None if it has another type or too many elements in a field.

    Raises:
        KeyError: no type that is read here (`PAYLOADS`).
    """
    kind = PAYLOADS[payload_type]
    message: Message = getattr(status_pb2, kind.__name__)()
    try:
        return _read(kind, message) if parsed(message, data) else None
    except _TooManyParts:
        return None


def _fill(message: Any, value: Any) -> None:
    message.SetInParent()
    for field in fields(value):
        content, name = getattr(value, field.name), field.name
        if content is None:
            continue
        if name == UNKNOWN:
            message.MergeFromString(content)
            continue
        if is_dataclass(content):
            _fill(getattr(message, name), content)
        elif isinstance(content, Mapping):
            for key, item in content.items():
                if is_dataclass(item):
                    _fill(getattr(message, name)[key], item)
                else:
                    getattr(message, name)[key] = item
        elif isinstance(content, tuple):
            for item in content:
                if is_dataclass(item):
                    _fill(getattr(message, name).add(), item)
                else:
                    getattr(message, name).append(item)
        else:
            setattr(message, name, content)


def _read(kind: Any, message: Any) -> Any:
    return kind(**{name: read(message, name) for name, read in _readers(kind)})


def _unknown_of(message: Any, _: str) -> bytes:
    """The encoded fields of a message that are not in `status.proto`, beside those inside parts."""
    if not len(UnknownFieldSet(message)):
        return b""
    rest = type(message)()
    rest.CopyFrom(message)
    for known in message.DESCRIPTOR.fields:
        rest.ClearField(known.name)
    encoded: bytes = rest.SerializeToString()
    return encoded


@cache
def _readers(kind: Any) -> list[tuple[str, Callable[[Any, str], Any]]]:
    """How each field of a dataclass is taken out of its message."""
    return [
        (name, _unknown_of if name == UNKNOWN else _reader(hint))
        for name, hint in get_type_hints(kind).items()
    ]


def _reader(hint: Any) -> Callable[[Any, str], Any]:
    if isinstance(hint, UnionType):  # X | None
        inner = _converter(get_args(hint)[0])
        return lambda m, name: inner(getattr(m, name)) if m.HasField(name) else None
    if get_origin(hint) is tuple:
        part = get_args(hint)[0]
        inner, few = _converter(part), _few if is_dataclass(part) else tuple
        return lambda m, name: tuple(map(inner, few(getattr(m, name))))
    if get_origin(hint) is Mapping:
        inner = _converter(get_args(hint)[1])
        return lambda m, name: {key: inner(item) for key, item in getattr(m, name).items()}
    convert = _converter(hint)
    return lambda m, name: convert(getattr(m, name))


def _few(parts: Sequence[Any]) -> Sequence[Any]:
    """A repeated field, unless it has so many parts that reading them is the attack."""
    if len(parts) > MAX_PARTS:
        raise _TooManyParts
    return parts


def _converter(hint: Any) -> Callable[[Any], Any]:
    if is_dataclass(hint):
        return lambda message: _read(hint, message)
    if issubclass(hint, IntEnum):
        return lambda number: hint(number)
    return lambda value: value
