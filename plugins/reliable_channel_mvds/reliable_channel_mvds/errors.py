"""What a node refuses to take from its owner. What it refuses to receive is an event.

MvdsError
├── BodyTooLong     it would not fit a payload
├── UnknownGroup    the group has no peers here
├── TooManyRepeats  the same body was given too often within a minute
└── NodeFull        a limit is reached; the text says which
"""

from reliable_channel.errors import ReliableChannelError


class MvdsError(ReliableChannelError):
    """Root of what a node raises."""


class BodyTooLong(MvdsError, ValueError):
    """The message would not fit a payload."""


class UnknownGroup(MvdsError, LookupError):
    """The group has no peers here: add one first."""


class TooManyRepeats(MvdsError):
    """The same body was given to the same group so often that there is no timestamp left for
    another id."""


class NodeFull(MvdsError):
    """A limit is reached; peers that never acknowledge can be taken out of their groups."""
