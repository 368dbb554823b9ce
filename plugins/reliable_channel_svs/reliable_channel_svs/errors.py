"""The errors that this package raises.

SvsError
├── TlvError            bytes are not what they should be (their sender is wrong)
├── InvalidName         a text or a component that cannot be a name
├── SequenceExhausted   this bootstrap time has no sequence number left
├── SignatureRefused    a packet is not signed as the group's trust demands
└── ForwarderError      the forwarder is away or refused a registration
"""

from reliable_channel.errors import ReliableChannelError


class SvsError(ReliableChannelError):
    """Base class of the errors that this package raises."""

    retryable = False
    """True if the same call may succeed later without a change."""


class TlvError(SvsError):
    """Error that bytes are no valid TLV, or a TLV element of another type than needed."""


class InvalidName(SvsError, ValueError):
    """Error that a text or component cannot be an NDN name or a part of one."""


class SequenceExhausted(SvsError):
    """Error that the last sequence number of a bootstrap time, 2^64 - 1, is used. A call of
    `rebootstrap` solves the problem."""


class SignatureRefused(SvsError):
    """Error that a packet is not signed as the group's trust requires."""


class ForwarderError(SvsError):
    """Error that the forwarder is away, or refused a request."""

    retryable = True
