"""Layers that name the author and the type of a payload, `ApplicationMetadataMessage` and
`ProtocolMessage`.

DIVERGES from 62/STATUS-PAYLOADS, which has fields 4001 and 4002 and signs with SHA3-256. status-go
has the fields of `status.proto` and signs with Keccak-256.
"""

from typing import Final

from . import status_pb2
from .codec import PAYLOADS, TYPES, decode_payload, encode_payload, parsed
from .enums import PayloadType
from .keys import PrivateKey, PublicKey, keccak256, recover
from .outcomes import Ignored, MessageId, RefusalReason, Refused, SignedPayload
from .payloads import Payload

WITHOUT_PROTOCOL_LAYER: Final = frozenset(
    {
        PayloadType.COMMUNITY_DESCRIPTION,
        PayloadType.COMMUNITY_REQUEST_TO_JOIN,
        PayloadType.COMMUNITY_REQUEST_TO_JOIN_RESPONSE,
        PayloadType.COMMUNITY_REQUEST_TO_LEAVE,
        PayloadType.COMMUNITY_USER_KICKED,
        PayloadType.COMMUNITY_ENCRYPTION_KEYS_REQUEST,
    }
)
"""Payload types that status-go sends without a `ProtocolMessage` around them
(`SkipEncryptionLayer`)."""
IGNORED: Final = frozenset(
    {
        PayloadType.CONTACT_CODE_ADVERTISEMENT,
        PayloadType.CHAT_IDENTITY,
        PayloadType.COMMUNITY_PUBLIC_SHARD_INFO,
    }
)
"""Payload types that each client broadcasts about itself in every community. The bot ignores
payloads that clients broadcast about themselves."""


def message_id(signer: PublicKey, data: bytes) -> MessageId:
    """Return a message's id, a hash of its author and the whole encoded
    `ApplicationMetadataMessage`."""
    return MessageId(f"0x{keccak256(signer.uncompressed + data).hex()}")


def wrap(payload: Payload, key: PrivateKey) -> SignedPayload:
    """Sign a payload as its author.

    Raises:
        ValueError: a number outside its range, or a text that is not Unicode.
        TypeError: a value of another type than its field's.
    """
    encoded = encode_payload(payload)
    data = status_pb2.ApplicationMetadataMessage(
        signature=key.sign(encoded), payload=encoded, type=TYPES[type(payload)]
    ).SerializeToString()
    return _signed(payload, key.public_key, encoded, data)


def unwrap(data: bytes) -> SignedPayload | Ignored | Refused:
    """Read a signed payload and recover its author from the signature."""
    message = status_pb2.ApplicationMetadataMessage()
    if not parsed(message, data) or not message.payload:
        return Refused(
            RefusalReason.MALFORMED_MESSAGE, f"{len(data)} bytes, no ApplicationMetadataMessage"
        )
    payload_type = PayloadType(message.type)
    signer = recover(message.payload, message.signature)
    if signer is None:
        detail = f"{payload_type.name}: its signature of {len(message.signature)} bytes is invalid"
        return Refused(RefusalReason.BAD_SIGNATURE, detail)
    if payload_type in IGNORED:
        return Ignored(payload_type, signer, message_id(signer, data))
    if payload_type not in PAYLOADS:
        return Refused(
            RefusalReason.UNSUPPORTED_TYPE, payload_type.name, signer, message_id(signer, data)
        )
    payload = decode_payload(payload_type, message.payload)
    if payload is None:
        detail = f"{len(message.payload)} bytes that are no {payload_type.name}"
        return Refused(RefusalReason.MALFORMED_PAYLOAD, detail, signer, message_id(signer, data))
    return _signed(payload, signer, message.payload, data)


def to_protocol(signed: SignedPayload, installation_id: str = "") -> bytes:
    """Return the bytes of a signed payload that are segmented and encrypted. For types that
    status-go sends in a `ProtocolMessage`, the bytes are a `ProtocolMessage`.

    Raises:
        ValueError: an `installation_id` that is not Unicode.
    """
    if TYPES[type(signed.payload)] in WITHOUT_PROTOCOL_LAYER:
        return signed.data
    return in_protocol(signed.data, installation_id)


def in_protocol(data: bytes, installation_id: str = "") -> bytes:
    """Return a `ProtocolMessage` that contains a public message.

    Raises:
        ValueError: an `installation_id` that is not Unicode.
    """
    return status_pb2.ProtocolMessage(
        installation_id=installation_id, public_message=data
    ).SerializeToString()


def from_protocol(data: bytes) -> bytes | Refused:
    """Return the bytes that `unwrap` reads. Like status-go, `from_protocol` returns bytes without a
    `ProtocolMessage` unchanged."""
    message = status_pb2.ProtocolMessage()
    if not parsed(message, data):
        return data
    if message.public_message:
        return message.public_message
    if message.encrypted_message:
        return _beside_a_key(message) or _encrypted(message)
    return data


def _beside_a_key(message: status_pb2.ProtocolMessage) -> bytes:
    """What comes in the clear with a new group key, such as a description; empty if nothing does.
    Number 0 in the header of a group says so."""
    one = message.encrypted_message.get("none")
    if one is None or not one.HasField("hr_header") or one.hr_header.seq_no:
        return b""
    is_for_device = one.HasField("dh_header") or one.HasField("dr_header")
    return b"" if is_for_device else one.payload


def _encrypted(message: status_pb2.ProtocolMessage) -> Refused:
    """Name what only some can read: messages of one to one, or those for members with a key."""
    if any(one.HasField("hr_header") for one in message.encrypted_message.values()):
        return Refused(RefusalReason.ENCRYPTED, "only members with the group key can read it")
    return Refused(
        RefusalReason.DIRECT_MESSAGE_NOT_SUPPORTED,
        "a direct or group message, contact request or key exchange for one device; "
        "write in a community channel or a public chat instead",
    )


def _signed(payload: Payload, signer: PublicKey, encoded: bytes, data: bytes) -> SignedPayload:
    fingerprint = keccak256(signer.uncompressed + encoded)
    return SignedPayload(payload, signer, message_id(signer, data), fingerprint, data)
