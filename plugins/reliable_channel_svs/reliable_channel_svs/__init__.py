"""NDN State Vector Sync, version 3: names, vectors and the state machine, without any I/O.

`reliable_channel_svs.ndn` runs a group on NDN itself, through a forwarder.
"""

from .errors import (
    ForwarderError,
    InvalidName,
    SequenceExhausted,
    SignatureRefused,
    SvsError,
    TlvError,
)
from .events import (
    EventsDropped,
    IgnoredReason,
    Limit,
    LimitReached,
    OwnNameClaimed,
    PublicationsKnown,
    Rebootstrapped,
    SvsEvent,
    VectorIgnored,
    VectorSplit,
)
from .name import Name
from .naming import Naming, NamingScheme, PublicationName
from .options import NDND, Behaviour, Limits, SvsOptions
from .protocol import Changes, Publication, State, SvsProtocol
from .signing import (
    AnyTrust,
    DigestSigner,
    DigestTrust,
    Ed25519Signer,
    HmacSigner,
    KeyTrust,
    Signer,
    Trust,
)
from .vector import StateVector

__all__ = [
    "NDND",
    "AnyTrust",
    "Behaviour",
    "Changes",
    "DigestSigner",
    "DigestTrust",
    "Ed25519Signer",
    "EventsDropped",
    "ForwarderError",
    "HmacSigner",
    "IgnoredReason",
    "InvalidName",
    "KeyTrust",
    "Limit",
    "LimitReached",
    "Limits",
    "Name",
    "Naming",
    "NamingScheme",
    "OwnNameClaimed",
    "Publication",
    "PublicationName",
    "PublicationsKnown",
    "Rebootstrapped",
    "SequenceExhausted",
    "SignatureRefused",
    "Signer",
    "State",
    "StateVector",
    "SvsError",
    "SvsEvent",
    "SvsOptions",
    "SvsProtocol",
    "TlvError",
    "Trust",
    "VectorIgnored",
    "VectorSplit",
]
