"""Interest and Data packets (NDN packet specification 0.3), as far as SVS uses them."""

from dataclasses import dataclass
from typing import Final

from .errors import TlvError
from .name import NAME, Name, parameters_digest
from .signing import (
    Signature,
    Signer,
    Trust,
    decode_signature_info,
    encode_signature_info,
)
from .tlv import Reader, decode_integer, encode, encode_integer, only

INTEREST: Final = 0x05
DATA: Final = 0x06
CAN_BE_PREFIX: Final = 0x21
MUST_BE_FRESH: Final = 0x12
FORWARDING_HINT: Final = 0x1E
NONCE: Final = 0x0A
LIFETIME: Final = 0x0C
HOP_LIMIT: Final = 0x22
PARAMETERS: Final = 0x24
META_INFO: Final = 0x14
CONTENT_TYPE: Final = 0x18
FRESHNESS: Final = 0x19
FINAL_BLOCK: Final = 0x1A
CONTENT: Final = 0x15
SIGNATURE_INFO: Final = 0x16
SIGNATURE_VALUE: Final = 0x17

BLOB: Final = 0
"""Value of ContentType for ordinary content."""
GONE: Final = 3
"""Value of ContentType (Nack) by which a producer says that a content does not exist."""

MAX_PACKET_BYTES: Final = 8800
"""Maximum size of a packet that forwarders carry. Forwarders silently drop longer packets."""
DEFAULT_LIFETIME_MS: Final = 4_000
"""Default InterestLifetime of the NDN packet specification."""


@dataclass(frozen=True, slots=True)
class Interest:
    """Interest packet, which requests the Data packet of a name."""

    name: Name
    nonce: bytes
    lifetime_ms: int = DEFAULT_LIFETIME_MS
    can_be_prefix: bool = False
    must_be_fresh: bool = False
    parameters: bytes | None = None
    """Value of the element ApplicationParameters."""

    def encode(self) -> bytes:
        """Return the TLV encoding of the Interest. The encoded name ends with the digest of the
        parameters."""
        name, parameters = self.name, b""
        if self.parameters is not None:
            parameters = encode(PARAMETERS, self.parameters)
            name = name.append(parameters_digest(parameters))
        return encode(
            INTEREST,
            name.encode(),
            encode(CAN_BE_PREFIX) if self.can_be_prefix else b"",
            encode(MUST_BE_FRESH) if self.must_be_fresh else b"",
            encode(NONCE, self.nonce),
            encode_integer(LIFETIME, self.lifetime_ms),
            parameters,
        )


def decode_interest(wire: bytes | memoryview) -> Interest:
    """Return the Interest in a packet. The digest of the parameters is checked, and removed from
    the name.

    Raises:
        TlvError: the bytes are no Interest, or the digest does not fit the parameters.
    """
    reader = Reader(only(wire, INTEREST), optional=(HOP_LIMIT, PARAMETERS))
    name = Name.from_value(reader.take(NAME))
    can_be_prefix = reader.take_if(CAN_BE_PREFIX) is not None
    must_be_fresh = reader.take_if(MUST_BE_FRESH) is not None
    reader.take_if(FORWARDING_HINT)
    nonce = reader.take_if(NONCE)
    lifetime = reader.take_if(LIFETIME)
    reader.take_if(HOP_LIMIT)
    parameters = reader.take_if(PARAMETERS)
    if parameters is not None:
        digest = parameters_digest(encode(PARAMETERS, bytes(parameters)))
        if not name.components or name.components[-1] != digest:
            raise TlvError(f"the name {name} does not end with the digest of the parameters")
        name = Name(name.components[:-1])
    return Interest(
        name,
        bytes(nonce or b""),
        DEFAULT_LIFETIME_MS if lifetime is None else decode_integer(lifetime),
        can_be_prefix,
        must_be_fresh,
        None if parameters is None else bytes(parameters),
    )


@dataclass(frozen=True, slots=True)
class Data:
    """Received Data packet with a name and content. The packet's `signature` over `covered` proves
    nothing until `check` has accepted it."""

    name: Name
    content: bytes
    signature: Signature
    covered: bytes
    final_block: bytes | None = None
    """Component of the last segment, if the content is one of several segments."""
    content_type: int = BLOB

    def check(self, trust: Trust) -> None:
        """Check that the packet is signed as the trust requires.

        Raises:
            SignatureRefused: it is not.
        """
        trust.check(self.name, self.covered, self.signature)


def make_data(
    name: Name,
    content: bytes,
    signer: Signer,
    *,
    freshness_ms: int | None = None,
    final_block: bytes | None = None,
    content_type: int = BLOB,
) -> bytes:
    """Return the TLV encoding of a signed Data packet. ContentType 0 is written explicitly, as in
    ndnd."""
    meta = encode(
        META_INFO,
        encode_integer(CONTENT_TYPE, content_type),
        b"" if freshness_ms is None else encode_integer(FRESHNESS, freshness_ms),
        b"" if final_block is None else encode(FINAL_BLOCK, final_block),
    )
    covered = b"".join(
        (
            name.encode(),
            meta,
            encode(CONTENT, content),
            encode_signature_info(SIGNATURE_INFO, signer),
        )
    )
    return encode(DATA, covered, encode(SIGNATURE_VALUE, signer.sign(covered)))


def decode_data(wire: bytes | memoryview) -> Data:
    """Return the Data in a packet, with any kind of signature.

    Raises:
        TlvError: the bytes are no Data.
    """
    value = only(wire, DATA)
    reader = Reader(value)
    name = Name.from_value(reader.take(NAME))
    meta = reader.take_if(META_INFO)
    content = reader.take_if(CONTENT)
    type_, key_name = decode_signature_info(reader.take(SIGNATURE_INFO))
    signature_value = reader.take(SIGNATURE_VALUE)
    reader.end()
    # The signature covers all before its value, which ends the packet.
    covered = value[: len(value) - len(encode(SIGNATURE_VALUE, bytes(signature_value)))]
    return Data(
        name,
        bytes(content or b""),
        Signature(type_, key_name, bytes(signature_value)),
        bytes(covered),
        *_meta(meta),
    )


def _meta(meta: memoryview | None) -> tuple[bytes | None, int]:
    if meta is None:
        return None, BLOB
    reader = Reader(meta)
    content_type = reader.take_if(CONTENT_TYPE)
    reader.take_if(FRESHNESS)
    block = reader.take_if(FINAL_BLOCK)
    return (
        None if block is None else bytes(block),
        BLOB if content_type is None else decode_integer(content_type),
    )
