"""What `ReliableChannel` raises: `except ReliableChannelError` catches all of it. Wrong arguments
raise `ValueError` or `TypeError` where they are given. Expected outcomes (lost, refused, not
acknowledged) are events instead. Transports, encryptions and signings raise `TransportError`,
`DecryptionFailed` and `NotProven` to the channel, which have the same root.

ReliableChannelError
├── EncryptionFailed        the given encryption raised something; nothing was sent
├── ChannelClosed           the channel is not open: use it inside `async with`
├── ChannelUnavailable      it could not be opened: the node does not answer, or not as a node does
├── PluginError             a plugin failed, or returned what it may not; the text names it
├── StateError              the state given with `state=` cannot be used
│   ├── StateUnavailable    it cannot be read or written now
│   ├── StateInUse          another process has it open
│   ├── StateMismatch       it belongs to another channel, sender or dialect
│   ├── StateVersionTooNew  a newer version of this package wrote it
│   └── StateCorrupt        it is no state, or a damaged one
└── SdsError                `send` refuses the message
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
    ReliableChannelError,
    SdsError,
)
from .state.errors import (
    StateCorrupt,
    StateError,
    StateInUse,
    StateMismatch,
    StateUnavailable,
    StateVersionTooNew,
)

__all__ = [
    "ChannelClosed",
    "ChannelUnavailable",
    "ContentTooLong",
    "EmptyContent",
    "EncryptionFailed",
    "MessageIdInUse",
    "OutgoingBufferFull",
    "PluginError",
    "ReliableChannelError",
    "SdsError",
    "StateCorrupt",
    "StateError",
    "StateInUse",
    "StateMismatch",
    "StateUnavailable",
    "StateVersionTooNew",
]


class EncryptionFailed(ReliableChannelError):
    """A message could not be sealed, and nothing of it was sent."""


class ChannelClosed(ReliableChannelError):
    """The channel is not open."""


class ChannelUnavailable(ReliableChannelError):
    """The channel could not be opened; the cause says which call to the node failed and why."""


class PluginError(ReliableChannelError):
    """A plugin cannot be loaded, failed, returned what it may not, or is not the only one that
    claims a URL; the text names it."""
