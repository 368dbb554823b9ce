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
    """The base class of this package's errors."""

    retryable = False
    """True if the same call may succeed later."""


class TlvError(SvsError):
    """The bytes are no valid TLV, or they are not the element that belongs there."""


class InvalidName(SvsError, ValueError):
    """The text or component cannot be an NDN name, or a part of one."""


class SequenceExhausted(SvsError):
    """The last sequence number of this bootstrap time, 2^64 - 1, is taken. `rebootstrap` helps."""


class SignatureRefused(SvsError):
    """A packet is not signed as the group's trust demands."""


class ForwarderError(SvsError):
    """The forwarder is away, or it refused a request."""

    retryable = True
