"""Results for arriving bytes: a typed payload, or a refusal with its reason."""

from dataclasses import dataclass, field
from enum import Enum
from typing import NewType

from .enums import PayloadType
from .keys import PublicKey
from .payloads import Payload
from .topics import Topic

MessageId = NewType("MessageId", str)
"""Form of a message id: `0x` and 64 hexadecimal digits."""


class RefusalReason(Enum):
    """Reason for a refusal, from the outermost layer to the innermost."""

    TOO_LARGE = "too_large"
    """The message is larger than any client sends."""
    UNKNOWN_VERSION = "unknown_version"
    """The `version` of the Waku message is neither 0, nor 1, nor absent. No Status client encrypts
    in that way."""
    UNKNOWN_TOPIC = "unknown_topic"
    """The content topic is not subscribed to."""
    NOT_FOR_US = "not_for_us"
    """No key opens it: another chat with the same content topic, or changed bytes."""
    MALFORMED_ENVELOPE = "malformed_envelope"
    """The envelope opened, but its content is not version 1."""
    UNSIGNED_ENVELOPE = "unsigned_envelope"
    """The envelope is not signed. Status clients drop such messages."""
    BAD_SEGMENT = "bad_segment"
    """A segment contradicts itself or others, or its payload has another hash."""
    SEGMENTS_DROPPED = "segments_dropped"
    """Other segments of its payload did not arrive in time, or there was no room."""
    ENCRYPTED = "encrypted"
    """Only members with the group key can read it, and it is not kept until the key comes. It
    belongs to another community, is too large, or the `Opener` has no `groups=`."""
    WAITS_FOR_KEY = "waits_for_key"
    """The message is encrypted for a group, and is kept until the key comes."""
    UNKNOWN_KEY_GROUP = "unknown_key_group"
    """The key is of a group that the receiver is not in, or of too many groups."""
    BAD_GROUP_KEY = "bad_group_key"
    """The data was sent as a group key but is invalid."""
    DIRECT_MESSAGE_NOT_SUPPORTED = "direct_message_not_supported"
    """A one-to-one or group message, or a contact request, for an `Opener` without `direct=`."""
    NOT_FOR_THIS_DEVICE = "not_for_this_device"
    """The direct message is encrypted only for other devices of the receiver."""
    BAD_BUNDLE = "bad_bundle"
    """The X3DH bundle is invalid, or its identity did not sign it."""
    UNKNOWN_SESSION = "unknown_session"
    """The ratchet message belongs to a session that is not here, for example after a backup was
    restored."""
    TOO_MANY_SKIPPED = "too_many_skipped"
    """The ratchet message is too far ahead to compute the keys in between."""
    REPEATED_KEY = "repeated_key"
    """The key of the ratchet message was used and deleted, so the message was here before."""
    BAD_CIPHERTEXT = "bad_ciphertext"
    """The direct message does not open under the key that it names."""
    FORGED_DIRECT = "forged_direct"
    """The author of a direct message did not encrypt it. A third party passes it on as if it were
    for this receiver."""
    UNKNOWN_GROUP = "unknown_group"
    """The private group does not include the receiver."""
    BAD_GROUP = "bad_group"
    """The membership events are forged, or their authors may not write them."""
    FORGED_SDS = "forged_sds"
    """The SDS message has the channel of another topic, a sender that is not its author, or an id
    that does not fit."""
    MALFORMED_MESSAGE = "malformed_message"
    """The bytes are no `ApplicationMetadataMessage`."""
    BAD_SIGNATURE = "bad_signature"
    """The signature of the payload is invalid."""
    UNSUPPORTED_TYPE = "unsupported_type"
    """The payload has a type that is not read here."""
    MALFORMED_PAYLOAD = "malformed_payload"
    """The payload does not have the type that the message names."""
    WRONG_CHAT = "wrong_chat"
    """The payload names another chat than that of its topic."""
    INVALID = "invalid"
    """A field has an invalid value."""
    CLOCK_AHEAD = "clock_ahead"
    """Its clock is more than 120 s ahead."""
    REPEATED = "repeated"
    """The same signed payload arrived before, in this or another wrapping."""
    OUTDATED = "outdated"
    """A payload with a higher clock arrived before."""
    NOT_A_MEMBER = "not_a_member"
    """Its author is no member of the community, or may not write there, so clients drop it."""
    NOT_ALLOWED = "not_allowed"
    """The signer may not do this, for example edit another user's message."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A message or payload was refused."""

    reason: RefusalReason
    detail: str
    """Text for a person: the refused part and the reason."""
    signer: PublicKey | None = None
    """Author, as far as known."""
    message_id: MessageId | None = None


@dataclass(frozen=True, slots=True)
class Ignored:
    """Broadcast of a client about itself, which needs no reaction and is no mistake."""

    payload_type: PayloadType
    """Type: `CONTACT_CODE_ADVERTISEMENT`, `CHAT_IDENTITY` or `COMMUNITY_PUBLIC_SHARD_INFO`."""
    signer: PublicKey
    message_id: MessageId


@dataclass(frozen=True, slots=True)
class SignedPayload:
    """Payload with its author: the content of an `ApplicationMetadataMessage`."""

    payload: Payload
    signer: PublicKey
    message_id: MessageId
    """Id of the message. DIVERGES: 62/STATUS-PAYLOADS and status-go hash the whole encoded message.
    Anybody may change its wrapping, so one signed payload may come under several ids. `fingerprint`
    is unique."""
    fingerprint: bytes
    """Keccak-256 of signer and payload, equal exactly if both are. A clock grows with each payload,
    so no author signs the same one twice."""
    data: bytes = field(repr=False)
    """Encoded `ApplicationMetadataMessage`, for passing on unchanged."""


@dataclass(frozen=True, slots=True)
class MessageKeyId:
    """Id of the key that opened a message of a ratchet session."""

    session_id: str
    key: bytes
    n: int


@dataclass(frozen=True, slots=True)
class Received:
    """Payload that arrived."""

    signed: SignedPayload
    topic: Topic
    timestamp_ms: int
    """Timestamp of the Waku message (of the last segment), which its sender sets. 0 if it has
    none."""
    envelope_signer: PublicKey | None
    """Signer of the envelope. It may differ from the author, which is `signer`."""
    is_private: bool
    """True if it was encrypted for one receiver (ECIES)."""
    is_ephemeral: bool
    datasync_id: bytes | None = None
    """Id for the sender's acknowledgement. None if the sender does not wait for one."""
    ratchet_key: MessageKeyId | None = None
    """Key of its ratchet session, to be deleted once it is handled."""
    is_direct: bool = False
    """True if it came inside an encrypted message of 53/WAKU2-X3DH."""
    waiting_id: bytes | None = None
    """Key of its waiting entry for a group key, to be removed once it is handled."""

    @property
    def payload(self) -> Payload:
        """Content of the payload."""
        return self.signed.payload

    @property
    def signer(self) -> PublicKey:
        """Author of the payload."""
        return self.signed.signer

    @property
    def message_id(self) -> MessageId:
        """Notation `0x…`, by which answers and reactions name it."""
        return self.signed.message_id
