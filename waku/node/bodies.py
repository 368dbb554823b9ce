"""Request bodies by nwaku's rules, with closed objects, JSON with comments, and one base64
alphabet."""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from waku.models import INT64_MAX, UINT32_MAX, WakuMessage
from waku.node.http import JSON, TEXT, Request

__all__ = [
    "MISSING",
    "BadBase64",
    "BadBody",
    "NoBody",
    "base64_of",
    "closed_object",
    "read_json",
    "relay_message",
    "text_list",
]

MISSING: Final = "Missing content body"
UNDECODABLE: Final = "Invalid content body, could not decode: Unable to deserialize data: "
"""Error text for an undecodable body, as the recorded build of nwaku sends it. The text gives no
details, so that clients do not rely on details."""


_TEXT: Final = r'"(?:[^"\\]|\\.)*"?'
"""A text, or the rest of the body: nothing here is looked at twice."""
_COMMENT: Final = re.compile(_TEXT + r"|//[^\n]*|/\*(?:.*?\*/|.*)", re.DOTALL)
_SUPERFLUOUS: Final = re.compile(_TEXT + r"|,(?=\s*[\]}])|(?<=[\s:,\[])\+(?=[0-9])", re.DOTALL)


class BadBody(ValueError):
    """The body of a request does not fit the operation. The text of the error is nwaku's."""

    def __init__(self, text: str = UNDECODABLE) -> None:
        super().__init__(text)


class NoBody(BadBody):
    def __init__(self) -> None:
        super().__init__(MISSING)


class BadBase64(ValueError):
    """A field of the body is not base64. The text of the error is nwaku's."""

    def __init__(self) -> None:
        super().__init__("Incorrect base64 string")


def read_json(request: Request, *, plain_text: bool = True) -> object:
    """Return the JSON value in the body of a request.

    Args:
        request: what was asked.
        plain_text: take `text/plain` for JSON as well, as nwaku does except in its filter API.

    Raises:
        NoBody: it is empty.
        BadBody: the content type is another one, or the body is not JSON.
    """
    if not request.body:
        raise NoBody
    if request.content_type != JSON and not (plain_text and request.content_type == TEXT):
        raise BadBody(f"Wrong Content-Type, expected {JSON}{f' or {TEXT}' if plain_text else ''}")
    try:
        body = request.body.decode()
        try:
            return _loads(body)
        except json.JSONDecodeError:
            return _loads(_strict(body))
    except (ValueError, RecursionError) as error:
        raise BadBody from error


def closed_object(value: object, *, required: set[str], optional: set[str]) -> Mapping[str, Any]:
    """Return the JSON object if it has all required fields and no unknown fields.

    Raises:
        BadBody: it is something else.
    """
    if not isinstance(value, dict) or not required <= value.keys() <= required | optional:
        raise BadBody
    return value


def text_list(value: object) -> list[str]:
    """Return the list of texts in a body.

    Raises:
        BadBody: it is something else.
    """
    if not isinstance(value, list):
        raise BadBody
    return [text(item) for item in value]


def text(value: object) -> str:
    """Return the text if UTF-8 can encode it.

    Raises:
        BadBody: it is something else.
    """
    if not isinstance(value, str):
        raise BadBody
    try:
        value.encode()
    except UnicodeEncodeError as error:  # half a surrogate pair, which JSON can spell
        raise BadBody from error
    return value


def relay_message(value: object) -> WakuMessage:
    """Return the message of a `RelayWakuMessage`. If the timestamp is absent, the message has
    timestamp 0.

    Raises:
        BadBody: wrong fields or types; payload or content topic empty; a number out of range.
        BadBase64: a field is not base64.
    """
    fields = closed_object(
        value,
        required={"payload", "contentTopic"},
        optional={"version", "timestamp", "meta", "ephemeral", "proof"},
    )
    payload, content_topic = text(fields["payload"]), text(fields["contentTopic"])
    meta, proof = text(fields.get("meta", "")), text(fields.get("proof", ""))
    ephemeral = fields.get("ephemeral", False)
    if not (payload and content_topic and isinstance(ephemeral, bool)):
        raise BadBody
    # DIVERGES: a negative version ends the process of nwaku.
    version = _integer(fields.get("version", 0), 0, UINT32_MAX)
    timestamp = _integer(fields.get("timestamp", 0), -INT64_MAX - 1, INT64_MAX)
    return WakuMessage(
        base64_of(payload),
        content_topic,
        version=version,
        timestamp=timestamp,
        meta=base64_of(meta),
        ephemeral=ephemeral,
        proof=base64_of(proof),
    )


def _integer(value: object, lowest: int, highest: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
        raise BadBody
    return value


def base64_of(value: str) -> bytes:
    """Decode base64 of the standard alphabet. The padding may be absent."""
    unpadded = value.rstrip("=")
    try:
        return binascii.a2b_base64(unpadded + "=" * (-len(unpadded) % 4), strict_mode=True)
    except ValueError as error:
        raise BadBase64 from error


def _loads(body: str) -> object:
    return json.loads(
        body, object_pairs_hook=_without_repeats, parse_float=_refuse, parse_constant=_refuse
    )


def _strict(body: str) -> str:
    """Return JSON without what nwaku's parser takes beside it: comments, a comma after the last
    item, a plus sign."""
    return _SUPERFLUOUS.sub(_kept, _COMMENT.sub(_kept, body))


def _kept(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith('"') else " "


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise BadBody
    return fields


def _refuse(literal: str) -> NoReturn:
    raise BadBody
