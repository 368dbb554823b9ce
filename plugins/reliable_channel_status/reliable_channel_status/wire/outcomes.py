"""What becomes of bytes that arrive: something typed, or a refusal that says what and why."""

from dataclasses import dataclass, field
from enum import Enum
from typing import NewType

from .enums import PayloadType
from .keys import PublicKey
from .payloads import Payload
from .topics import Topic

MessageId = NewType("MessageId", str)
"""`0x` and 64 hexadecimal digits."""


class RefusalReason(Enum):
    """Why something was not taken, from the outermost layer to the innermost."""

    TOO_LARGE = "too_large"
    """Larger than any client sends."""
    UNKNOWN_VERSION = "unknown_version"
    """The `version` of the Waku message is neither 0, nor 1, nor absent, so that it is encrypted in
    a way that no Status client uses."""
    UNKNOWN_TOPIC = "unknown_topic"
    """Of a content topic that is not subscribed to."""
    NOT_FOR_US = "not_for_us"
    """No key opens it: another chat with the same content topic, or changed bytes."""
    MALFORMED_ENVELOPE = "malformed_envelope"
    """It opened, and what is inside is not version 1."""
    UNSIGNED_ENVELOPE = "unsigned_envelope"
    """Status clients sign the envelope and drop what is not signed."""
    BAD_SEGMENT = "bad_segment"
    """A segment that contradicts itself or others, or whose payload has another hash."""
    SEGMENTS_DROPPED = "segments_dropped"
    """Others of its segments did not come in time, or there was no room."""
    ENCRYPTED = "encrypted"
    """Only members with the group key can read it, and it is not kept until that comes: of another
    community, or too large, or by an `Opener` without `groups=`."""
    WAITS_FOR_KEY = "waits_for_key"
    """It is encrypted for a group, and is kept until the key comes."""
    UNKNOWN_KEY_GROUP = "unknown_key_group"
    """A key of a group that the receiver is not in, or of too many groups."""
    BAD_GROUP_KEY = "bad_group_key"
    """Something that is sent as a group key and is none."""
    DIRECT_MESSAGE_NOT_SUPPORTED = "direct_message_not_supported"
    """A one-to-one or group message, or a contact request, by an `Opener` without `direct=`."""
    NOT_FOR_THIS_DEVICE = "not_for_this_device"
    """A direct message that is encrypted for other devices of the receiver alone."""
    BAD_BUNDLE = "bad_bundle"
    """A bundle of X3DH that its identity did not sign, or that is none."""
    UNKNOWN_SESSION = "unknown_session"
    """A ratchet message of a session that is not here, such as after a backup was restored."""
    TOO_MANY_SKIPPED = "too_many_skipped"
    """A ratchet message so far ahead that the keys between are not worth computing."""
    REPEATED_KEY = "repeated_key"
    """A ratchet message whose key was used and deleted: it was here before."""
    BAD_CIPHERTEXT = "bad_ciphertext"
    """A direct message that does not open under the key that it names."""
    FORGED_DIRECT = "forged_direct"
    """A direct message whose author did not encrypt it: a third party passes it on as if it were
    meant for this receiver."""
    UNKNOWN_GROUP = "unknown_group"
    """Of a private group that the receiver is not in."""
    BAD_GROUP = "bad_group"
    """Membership events that are forged, or that their authors may not write."""
    FORGED_SDS = "forged_sds"
    """An SDS message of another channel than its topic's, whose sender is not its author, or whose
    id is not that of its content."""
    MALFORMED_MESSAGE = "malformed_message"
    """No `ApplicationMetadataMessage`."""
    BAD_SIGNATURE = "bad_signature"
    """Its signature is invalid."""
    UNSUPPORTED_TYPE = "unsupported_type"
    """A payload of a type that is not read here."""
    MALFORMED_PAYLOAD = "malformed_payload"
    """The payload is none of the type that the message says."""
    WRONG_CHAT = "wrong_chat"
    """It names another chat than that of its topic."""
    INVALID = "invalid"
    """A field says what it must not."""
    CLOCK_AHEAD = "clock_ahead"
    """Its clock is more than 120 s ahead."""
    REPEATED = "repeated"
    """The same signed payload was here before, in this wrapping or another."""
    OUTDATED = "outdated"
    """Something with a higher clock was here before."""
    NOT_A_MEMBER = "not_a_member"
    """Its author is no member of the community, or may not write there: clients drop it."""
    NOT_ALLOWED = "not_allowed"
    """The signer may not do this, such as edit what another wrote."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Something was not taken."""

    reason: RefusalReason
    detail: str
    """For a person: what was refused and why."""
    signer: PublicKey | None = None
    """The author, as far as that was known."""
    message_id: MessageId | None = None


@dataclass(frozen=True, slots=True)
class Ignored:
    """Clients broadcast this about themselves; it needs no reaction and is no mistake."""

    payload_type: PayloadType
    """`CONTACT_CODE_ADVERTISEMENT`, `CHAT_IDENTITY` or `COMMUNITY_PUBLIC_SHARD_INFO`."""
    signer: PublicKey
    message_id: MessageId


@dataclass(frozen=True, slots=True)
class SignedPayload:
    """A payload with its author: what an `ApplicationMetadataMessage` holds."""

    payload: Payload
    signer: PublicKey
    message_id: MessageId
    """DIVERGES: 62/STATUS-PAYLOADS and status-go hash the whole encoded message, whose wrapping
    anybody may change, so one signed payload may come under several ids; `fingerprint` is one."""
    fingerprint: bytes
    """Keccak-256 of signer and payload: equal exactly if both are. As a clock grows with each
    payload, no author signs the same one twice."""
    data: bytes = field(repr=False)
    """The encoded `ApplicationMetadataMessage`, to be passed on as it is."""


@dataclass(frozen=True, slots=True)
class MessageKeyId:
    """Names the key that opened a message of a ratchet session."""

    session_id: str
    key: bytes
    n: int


@dataclass(frozen=True, slots=True)
class Received:
    """A payload that arrived."""

    signed: SignedPayload
    topic: Topic
    timestamp_ms: int
    """Of the Waku message (of the last segment), which its sender sets; 0 if it has none."""
    envelope_signer: PublicKey | None
    """Signer of the envelope; it may be another than the author, which is `signer`."""
    is_private: bool
    """True if it was encrypted for one receiver (ECIES)."""
    is_ephemeral: bool
    datasync_id: bytes | None = None
    """The id by which the sender waits for an acknowledgement; None if it does not."""
    ratchet_key: MessageKeyId | None = None
    """The key of its ratchet session, to be deleted once it is handled."""
    is_direct: bool = False
    """True if it came inside an encrypted message of 53/WAKU2-X3DH."""
    waiting_id: bytes | None = None
    """What it waited as for a group key, to be forgotten once it is handled."""

    @property
    def payload(self) -> Payload:
        """What was said."""
        return self.signed.payload

    @property
    def signer(self) -> PublicKey:
        """The author."""
        return self.signed.signer

    @property
    def message_id(self) -> MessageId:
        """`0x…`, as answers and reactions name it."""
        return self.signed.message_id
