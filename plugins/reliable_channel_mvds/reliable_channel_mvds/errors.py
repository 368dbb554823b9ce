"""The errors for calls that a node refuses. For packets that it refuses there are events.

MvdsError
├── BodyTooLong     it would not fit a payload
├── UnknownGroup    the group has no peers here
├── TooManyRepeats  the same body was given too often within a minute
└── NodeFull        a limit is reached; the text says which
"""

from reliable_channel.errors import ReliableChannelError


class MvdsError(ReliableChannelError):
    """The base class of a node's errors."""


class BodyTooLong(MvdsError, ValueError):
    """The message would not fit a payload."""


class UnknownGroup(MvdsError, LookupError):
    """The group has no peers here: add one first."""


class TooManyRepeats(MvdsError):
    """The same body was given to the same group so often that no timestamp is left for another
    id."""


class NodeFull(MvdsError):
    """A limit is reached. Peers that never acknowledge can be removed from their groups."""
