"""What `@waku/message-encryption` sealed, and topics and keys of Status chats."""

from collections.abc import Iterator
from hashlib import sha256
from itertools import count
from typing import Any

from reliable_channel_status import (
    Opened,
    PrivateKey,
    PublicKey,
    SymmetricKey,
    content_topic,
    open_ecies,
    open_symmetric,
    seal_ecies,
    seal_symmetric,
    symmetric_key,
)
from reliable_channel_status.wire.ecies import OVERHEAD_BYTES
from reliable_channel_status.wire.envelope import IV_BYTES, TAG_BYTES, pack

from .case import Result, cases, first_difference


def check_status_payload(document: Any) -> Iterator[Result]:
    yield from cases(document, _payload)


def check_status_topics(document: Any) -> Iterator[Result]:
    yield from cases(document, _topic)


def _payload(case: Any) -> str | None:
    """What js sealed opens to the payload and its signer; what we seal has the same lengths and
    opens likewise."""
    payload = _bytes(case["payload"])
    private = case["signer_private_key"]
    signer = None if private is None else PrivateKey.from_hex(private)
    opened = Opened(payload, None if private is None else _public(case["signer_public_key"]))
    symmetric = SymmetricKey(bytes.fromhex(case["symmetric_key"]))
    receiver = PrivateKey.from_hex(case["ecies_private_key"])
    plain = pack(payload, signer)
    head = bytes.fromhex(case["plain_head"])
    ours = seal_symmetric(payload, symmetric, signer)
    ours_ecies = seal_ecies(payload, receiver.public_key, signer)
    recorded = []
    if case["symmetric"] is not None:  # of large payloads only the lengths were kept
        theirs, theirs_ecies = bytes.fromhex(case["symmetric"]), bytes.fromhex(case["ecies"])
        recorded = [
            ("symmetric", open_symmetric(theirs, symmetric), opened),
            ("ecies", open_ecies(theirs_ecies, receiver), opened),
        ]
    return first_difference(
        [
            *recorded,
            ("receiver", receiver.public_key, _public(case["ecies_public_key"])),
            ("plain_len", len(plain), case["plain_len"]),
            ("plain_head", plain[: len(head)], head),
            ("sealed", open_symmetric(ours, symmetric), opened),
            ("sealed length", len(ours), case["plain_len"] + TAG_BYTES + IV_BYTES),
            ("sealed by ecies", open_ecies(ours_ecies, receiver), opened),
            ("length by ecies", len(ours_ecies), case["plain_len"] + OVERHEAD_BYTES),
        ]
    )


def _topic(case: Any) -> str | None:
    chat_id = case["chat_id"]
    return first_difference(
        [
            ("content topic", content_topic(chat_id), case["content_topic"]),
            ("key", symmetric_key(chat_id).reveal().hex(), case["symmetric_key"]),
        ]
    )


def _public(text: str) -> PublicKey:
    return PublicKey(bytes.fromhex(text))


def _bytes(value: Any) -> bytes:
    """Hex, or `{gen, len}`: sha256 of `gen/0`, `gen/1` and so on, cut to a length."""
    if isinstance(value, str):
        return bytes.fromhex(value)
    data = bytearray()
    for number in count():
        if len(data) >= value["len"]:
            break
        data += sha256(f"{value['gen']}/{number}".encode()).digest()
    return bytes(data[: value["len"]])
