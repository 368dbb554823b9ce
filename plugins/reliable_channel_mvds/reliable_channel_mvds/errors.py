"""Errors of calls that a node refuses. For packets that a node refuses, it emits events instead.

MvdsError
├── BodyTooLong     it would not fit a payload
├── UnknownGroup    the group has no peers here
├── TooManyRepeats  the same body was given too often within a minute
└── NodeFull        a limit is reached; the text says which
"""

from reliable_channel.errors import ReliableChannelError


class MvdsError(ReliableChannelError):
    """Base class of the errors of a node."""


class BodyTooLong(MvdsError, ValueError):
    """Error that a message does not fit into a payload."""


class UnknownGroup(MvdsError, LookupError):
    """Error that a group has no peers at this node, so that `add_peer` must be called first."""


class TooManyRepeats(MvdsError):
    """Error that a body was sent to a group so often that no timestamp is left for another id."""


class NodeFull(MvdsError):
    """Error that a limit of the node is reached. Peers that never acknowledge messages can be
    removed from their groups."""
