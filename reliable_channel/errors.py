"""What `ReliableChannel` raises. Expected outcomes (lost, refused, not acknowledged) are events
instead.

ReliableChannelError
├── EncryptionFailed    the given encryption raised something; nothing was sent
├── ChannelClosed       the channel is not open: use it inside `async with`
└── ChannelUnavailable  it could not be opened: the node does not answer, or not as a node does
SdsError                what `send` refuses
├── EmptyContent
├── ContentTooLong
├── MessageIdInUse
└── OutgoingBufferFull
"""

from .sds.errors import (
    ContentTooLong,
    EmptyContent,
    MessageIdInUse,
    OutgoingBufferFull,
    SdsError,
)

__all__ = [
    "ChannelClosed",
    "ChannelUnavailable",
    "ContentTooLong",
    "EmptyContent",
    "EncryptionFailed",
    "MessageIdInUse",
    "OutgoingBufferFull",
    "ReliableChannelError",
    "SdsError",
]


class ReliableChannelError(Exception):
    """Root of what the facade raises itself."""


class EncryptionFailed(ReliableChannelError):
    """A message could not be sealed, and nothing of it was sent."""


class ChannelClosed(ReliableChannelError):
    """The channel is not open."""


class ChannelUnavailable(ReliableChannelError):
    """The channel could not be opened; the cause says which call to the node failed and why."""
