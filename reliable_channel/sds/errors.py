"""What the core refuses to send. What it refuses to receive is an event, never an exception.

ReliableChannelError    root of all errors of the SDK; here, as the core imports nothing of ours
└── SdsError
    ├── EmptyContent
    ├── ContentTooLong
    ├── MessageIdInUse
    ├── NotInDialect
    └── OutgoingBufferFull
"""


class ReliableChannelError(Exception):
    """Root of all errors that the SDK raises. Wrong arguments are `ValueError` or `TypeError`."""


class SdsError(ReliableChannelError):
    """Root of what the core raises."""


class EmptyContent(SdsError, ValueError):
    """An empty message is a sync message on the wire."""


class ContentTooLong(SdsError, ValueError):
    """The message would not fit the transport, with the causal history and bloom filter it
    carries."""


class MessageIdInUse(SdsError):
    """The id function made the id of an earlier message: it must be unique in the channel."""


class NotInDialect(SdsError):
    """The dialect of this participant cannot express such a message."""


class OutgoingBufferFull(SdsError):
    """Too many own messages are unacknowledged. Send again after the next acknowledgement."""
