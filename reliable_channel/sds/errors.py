"""What the core refuses to send. What it refuses to receive is an event, never an exception.

SdsError
├── EmptyContent
├── ContentTooLong
├── MessageIdInUse
├── NotInDialect
└── OutgoingBufferFull
"""


class SdsError(Exception):
    """Root of what the core raises."""


class EmptyContent(SdsError, ValueError):
    """An empty message cannot be told from a sync message on the wire."""


class ContentTooLong(SdsError, ValueError):
    """The message would not fit the transport, with the causal history and bloom filter it
    carries."""


class MessageIdInUse(SdsError):
    """The id function made the id of an earlier message: it must be unique in the channel."""


class NotInDialect(SdsError):
    """The dialect of this participant cannot express such a message."""


class OutgoingBufferFull(SdsError):
    """Too many own messages are unacknowledged; send again when some are."""
