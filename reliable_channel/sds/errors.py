"""Errors of the core for messages that it refuses to send. A message that the core refuses to
receive is an event, never an exception.

ReliableChannelError    root of all errors of the SDK; here, as the core imports nothing of ours
└── SdsError
    ├── EmptyContent
    ├── ContentTooLong
    ├── MessageIdInUse
    ├── NotInDialect
    └── OutgoingBufferFull
"""


class ReliableChannelError(Exception):
    """Root of all errors that the SDK raises. Wrong arguments raise `ValueError` or `TypeError`."""


class SdsError(ReliableChannelError):
    """Root of all errors that the SDS core raises."""


class EmptyContent(SdsError, ValueError):
    """The content is empty, and an empty message is a sync message on the wire."""


class ContentTooLong(SdsError, ValueError):
    """The message with its causal history and bloom filter would exceed the limit of the
    transport."""


class MessageIdInUse(SdsError):
    """The id function returned the id of an earlier message, but an id must be unique in the
    channel."""


class NotInDialect(SdsError):
    """The dialect of this participant cannot express the message."""


class OutgoingBufferFull(SdsError):
    """Too many own messages wait for an acknowledgement. Send the message again after the next
    acknowledgement."""
