"""Results of arriving bytes, which are a typed payload or a refusal with its reason."""

from dataclasses import dataclass, field
from enum import Enum
from typing import NewType

from .enums import PayloadType
from .keys import PublicKey
from .payloads import Payload
from .topics import Topic

MessageId = NewType("MessageId", str)
"""Id of a Status message, `0x` and 64 hexadecimal digits."""


class RefusalReason(Enum):
    """Reason of a refusal, in order from the outermost layer to the innermost."""

    TOO_LARGE = "too_large"
    """The message is larger than any client sends."""
    UNKNOWN_VERSION = "unknown_version"
    """The `version` of the Waku message is neither 0, nor 1, nor absent. No Status client encrypts
    messages of another version."""
    UNKNOWN_TOPIC = "unknown_topic"
    """The bot does not subscribe to the content topic of the message."""
    NOT_FOR_US = "not_for_us"
    """No key decrypts the message, which belongs to another chat with the same topic or was
    changed."""
    MALFORMED_ENVELOPE = "malformed_envelope"
    """The envelope was decrypted, but its content is not version 1."""
    UNSIGNED_ENVELOPE = "unsigned_envelope"
    """The envelope is not signed. Status clients drop messages in unsigned envelopes."""
    BAD_SEGMENT = "bad_segment"
    """A segment contradicts itself or other segments, or its payload has another hash."""
    SEGMENTS_DROPPED = "segments_dropped"
    """Other segments of the payload did not arrive in time, or too many segments waited."""
    ENCRYPTED = "encrypted"
    """Only members with the group key can read the message, and the bot does not keep it. The
    message belongs to another community, is too large, or the `Opener` has no `groups=`."""
    WAITS_FOR_KEY = "waits_for_key"
    """The message is encrypted for a group, and the bot keeps it until the key arrives."""
    UNKNOWN_KEY_GROUP = "unknown_key_group"
    """The key belongs to a group that the receiver is not in, or to one group too many."""
    BAD_GROUP_KEY = "bad_group_key"
    """The data was sent as a group key, but is not a valid key."""
    DIRECT_MESSAGE_NOT_SUPPORTED = "direct_message_not_supported"
    """The message is a direct message or contact request, and the `Opener` has no `direct=`."""
    NOT_FOR_THIS_DEVICE = "not_for_this_device"
    """The direct message is encrypted only for other devices of the receiver."""
    BAD_BUNDLE = "bad_bundle"
    """The X3DH bundle is invalid, or its owner did not sign it."""
    UNKNOWN_SESSION = "unknown_session"
    """The ratchet message belongs to a session that the bot lacks, for example after a restored
    backup."""
    TOO_MANY_SKIPPED = "too_many_skipped"
    """The ratchet message is too far ahead for the session to compute its key."""
    REPEATED_KEY = "repeated_key"
    """The ratchet message is a repetition, because its key was used and deleted."""
    BAD_CIPHERTEXT = "bad_ciphertext"
    """The direct message cannot be decrypted with the key that it names."""
    FORGED_DIRECT = "forged_direct"
    """The author of a direct message did not encrypt the message. A third party forwarded the
    message as if its author had sent it to this receiver."""
    UNKNOWN_GROUP = "unknown_group"
    """The private group does not include the receiver."""
    BAD_GROUP = "bad_group"
    """The membership events are forged, or their authors may not write them."""
    FORGED_SDS = "forged_sds"
    """The SDS message has another topic's channel, a sender other than its author, or a wrong
    id."""
    MALFORMED_MESSAGE = "malformed_message"
    """The bytes are not an `ApplicationMetadataMessage`."""
    BAD_SIGNATURE = "bad_signature"
    """The signature of the payload is invalid."""
    UNSUPPORTED_TYPE = "unsupported_type"
    """The payload has a type that the bot does not read."""
    MALFORMED_PAYLOAD = "malformed_payload"
    """The payload does not have the type that the message names."""
    WRONG_CHAT = "wrong_chat"
    """The payload names another chat than the chat of its topic."""
    INVALID = "invalid"
    """A field of the payload has an invalid value."""
    CLOCK_AHEAD = "clock_ahead"
    """The clock of the payload is more than 120 s in the future."""
    REPEATED = "repeated"
    """The same signed payload arrived before, perhaps in another envelope."""
    OUTDATED = "outdated"
    """A payload with a higher clock arrived before."""
    NOT_A_MEMBER = "not_a_member"
    """The author may not write in the community, so clients drop the payload."""
    NOT_ALLOWED = "not_allowed"
    """The author has no right to do this, such as editing another user's message."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Message or payload that was refused, with the reason."""

    reason: RefusalReason
    detail: str
    """Explanation of the refusal for people, with the refused part and the reason."""
    signer: PublicKey | None = None
    """Author of the refused payload, if known."""
    message_id: MessageId | None = None


@dataclass(frozen=True, slots=True)
class Ignored:
    """Broadcast of a client about itself, which the bot ignores."""

    payload_type: PayloadType
    """Payload type, such as `CONTACT_CODE_ADVERTISEMENT` or `CHAT_IDENTITY`."""
    signer: PublicKey
    message_id: MessageId


@dataclass(frozen=True, slots=True)
class SignedPayload:
    """Payload with its author, as in an `ApplicationMetadataMessage`."""

    payload: Payload
    signer: PublicKey
    message_id: MessageId
    """Id of the message, which is not unique. 62/STATUS-PAYLOADS and status-go hash the whole
    encoded message. Anybody may change the encoding around a signed payload, so that it gets
    several ids. DIVERGES in that `fingerprint`, which is unique, identifies the payload."""
    fingerprint: bytes
    """Keccak-256 of signer and payload, which identifies the payload. A payload's clock always
    grows, so no author signs the same payload twice."""
    data: bytes = field(repr=False)
    """Encoded `ApplicationMetadataMessage`, kept unchanged for forwarding."""


@dataclass(frozen=True, slots=True)
class MessageKeyId:
    """Id of a ratchet session's key that decrypted a message."""

    session_id: str
    key: bytes
    n: int


@dataclass(frozen=True, slots=True)
class Received:
    """Payload that arrived, with its author and times."""

    signed: SignedPayload
    topic: Topic
    timestamp_ms: int
    """Timestamp of the Waku message (of its last segment), which the sender sets. For a message
    without a timestamp, `timestamp_ms` is 0."""
    envelope_signer: PublicKey | None
    """Signer of the envelope, or None if it is unsigned. The envelope's signer may differ from the
    payload's author (`signer`)."""
    is_private: bool
    """True if the payload was encrypted for one receiver (ECIES)."""
    is_ephemeral: bool
    datasync_id: bytes | None = None
    """Id by which the receiver acknowledges the payload to its sender. If the sender does not wait
    for an acknowledgement, `datasync_id` is None."""
    ratchet_key: MessageKeyId | None = None
    """Id of the ratchet session's key, which is deleted after the payload is handled."""
    is_direct: bool = False
    """True if the payload came in an encrypted direct message (53/WAKU2-X3DH)."""
    waiting_id: bytes | None = None
    """Id of the waiting entry, which is removed after the payload is handled."""

    @property
    def payload(self) -> Payload:
        """Typed content of the payload."""
        return self.signed.payload

    @property
    def signer(self) -> PublicKey:
        """Public key of the payload's author."""
        return self.signed.signer

    @property
    def message_id(self) -> MessageId:
        """Id of the message as `0x…`, by which answers and reactions name it."""
        return self.signed.message_id
