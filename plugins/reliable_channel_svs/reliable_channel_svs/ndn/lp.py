"""Fields of the link protocol NDNLPv2 that an application uses, PIT tokens and Nacks."""

from dataclasses import dataclass
from typing import Final

from ..errors import TlvError
from ..tlv import decode_integer, elements, encode, only, read_number

LP_PACKET: Final = 0x64
FRAGMENT: Final = 0x50
FRAGMENT_COUNT: Final = 0x53
PIT_TOKEN: Final = 0x62
NACK: Final = 0x0320
NACK_REASON: Final = 0x0321


@dataclass(frozen=True, slots=True)
class LinkPacket:
    """Network packet with the fields of its link header."""

    packet: bytes
    pit_token: bytes | None = None
    """Token of an Interest that the answer must carry."""
    nack_reason: int | None = None
    """Forwarder's reason for a Nack, or 0 if the forwarder gives no reason."""


def wrap(packet: bytes, pit_token: bytes | None) -> bytes:
    """Return a packet in a link header, with the token of the Interest that it answers."""
    if pit_token is None:
        return packet
    return encode(LP_PACKET, encode(PIT_TOKEN, pit_token), encode(FRAGMENT, packet))


def unwrap(wire: bytes) -> LinkPacket:
    """Return the network packet and the link header's fields.

    As NDNLPv2 allows, unknown header fields are ignored.

    Raises:
        TlvError: the bytes are malformed, hold no packet, or hold a piece of one (local links do
            not divide packets).
    """
    type_, _ = read_number(memoryview(wire), 0)
    if type_ != LP_PACKET:
        return LinkPacket(wire)
    packet = token = reason = None
    for type_, value in elements(only(wire, LP_PACKET)):
        if type_ == FRAGMENT:
            packet = bytes(value)
        elif type_ == PIT_TOKEN:
            token = bytes(value)
        elif type_ == NACK:
            reasons = (decode_integer(v) for t, v in elements(value) if t == NACK_REASON)
            reason = next(reasons, 0)
        elif type_ == FRAGMENT_COUNT and decode_integer(value) != 1:
            raise TlvError(
                "the forwarder sent a fragment of a packet; links to local forwarders do not "
                "divide packets"
            )
    if packet is None:
        raise TlvError("the link packet contains no packet")
    return LinkPacket(packet, token, reason)
