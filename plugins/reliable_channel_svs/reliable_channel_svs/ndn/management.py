"""Commands to a forwarder for routes and strategies, in the NFD management protocol (NFD, ndnd).

A command is a signed Interest. Forwarders accept commands with DigestSha256 from local faces.
"""

from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from ..errors import ForwarderError, TlvError
from ..name import GENERIC, NAME, PARAMETERS_DIGEST, Name, text_component
from ..packet import INTEREST, LIFETIME, MUST_BE_FRESH, NONCE, PARAMETERS
from ..signing import DIGEST_SHA256, SIGNATURE_TYPE
from ..tlv import Reader, decode_integer, encode, encode_integer, only

CONTROL_PARAMETERS: Final = 0x68
STRATEGY: Final = 0x6B
CONTROL_RESPONSE: Final = 0x65
STATUS_CODE: Final = 0x66
STATUS_TEXT: Final = 0x67
INTEREST_SIGNATURE_INFO: Final = 0x2C
INTEREST_SIGNATURE_VALUE: Final = 0x2E
SIGNATURE_NONCE: Final = 0x26
SIGNATURE_TIME: Final = 0x28

COMMAND_LIFETIME_MS: Final = 2_000
PREFIX: Final = Name.parse("/localhost/nfd")
MULTICAST: Final = Name.parse("/localhost/nfd/strategy/multicast")


@dataclass(frozen=True, slots=True)
class Command:
    """Management command, a signed Interest with the name of its answer."""

    what: str
    name: Name
    wire: bytes


def register_route(prefix: Name, nonce: bytes, now_ms: int) -> Command:
    """Return the command that requests all Interests below a prefix."""
    return _command("rib", "register", encode(CONTROL_PARAMETERS, prefix.encode()), nonce, now_ms)


def set_multicast(prefix: Name, nonce: bytes, now_ms: int) -> Command:
    """Return the command that sends Interests below a prefix to all nodes that registered it.
    Without a multicast command, the forwarder sends each Interest to only one node."""
    parameters = encode(CONTROL_PARAMETERS, prefix.encode(), encode(STRATEGY, MULTICAST.encode()))
    return _command("strategy-choice", "set", parameters, nonce, now_ms)


def check_response(command: Command, content: bytes) -> None:
    """Check that the forwarder carried out the command.

    Raises:
        ForwarderError: the forwarder refused it.
    """
    try:
        reader = Reader(only(content, CONTROL_RESPONSE))
        code = decode_integer(reader.take(STATUS_CODE))
        text = bytes(reader.take_if(STATUS_TEXT) or b"").decode(errors="replace")
    except TlvError as error:
        raise ForwarderError(
            f"{command.what}: the answer of the forwarder cannot be read: {error}"
        ) from error
    if code != 200:
        raise ForwarderError(f"{command.what}: the forwarder answers {code} {text}".rstrip())


def _command(module: str, verb: str, parameters: bytes, nonce: bytes, now_ms: int) -> Command:
    name = PREFIX.append(text_component(module), text_component(verb), encode(GENERIC, parameters))
    empty = encode(PARAMETERS)
    info = encode(
        INTEREST_SIGNATURE_INFO,
        encode_integer(SIGNATURE_TYPE, DIGEST_SHA256),
        encode(SIGNATURE_NONCE, nonce),
        encode_integer(SIGNATURE_TIME, now_ms),
    )
    covered = b"".join(name.components) + empty + info
    value = encode(INTEREST_SIGNATURE_VALUE, sha256(covered).digest())
    signed = empty + info + value
    full = name.append(encode(PARAMETERS_DIGEST, sha256(signed).digest()))
    wire = encode(
        INTEREST,
        encode(NAME, *full.components),
        encode(MUST_BE_FRESH),
        encode(NONCE, nonce[:4]),
        encode_integer(LIFETIME, COMMAND_LIFETIME_MS),
        signed,
    )
    return Command(f"{module}/{verb}", full, wire)
