"""NDN State Vector Sync, version 3: names, vectors and the state machine, without any I/O.

`reliable_channel_svs.ndn` runs a group on NDN itself, through a forwarder.
"""

from typing import TYPE_CHECKING

from reliable_channel.spi import lazy_names

if TYPE_CHECKING:
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
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "errors": (
                "ForwarderError",
                "InvalidName",
                "SequenceExhausted",
                "SignatureRefused",
                "SvsError",
                "TlvError",
            ),
            "events": (
                "EventsDropped",
                "IgnoredReason",
                "Limit",
                "LimitReached",
                "OwnNameClaimed",
                "PublicationsKnown",
                "Rebootstrapped",
                "SvsEvent",
                "VectorIgnored",
                "VectorSplit",
            ),
            "name": ("Name",),
            "naming": (
                "Naming",
                "NamingScheme",
                "PublicationName",
            ),
            "options": (
                "NDND",
                "Behaviour",
                "Limits",
                "SvsOptions",
            ),
            "protocol": (
                "Changes",
                "Publication",
                "State",
                "SvsProtocol",
            ),
            "signing": (
                "AnyTrust",
                "DigestSigner",
                "DigestTrust",
                "Ed25519Signer",
                "HmacSigner",
                "KeyTrust",
                "Signer",
                "Trust",
            ),
            "vector": ("StateVector",),
        },
    )

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
