"""Errors of `ReliableChannel`, all of which `except ReliableChannelError` catches.

Wrong arguments raise `ValueError` or `TypeError`, and wrong settings in `from_config`
`SettingsError`. Expected outcomes (lost, rejected, not acknowledged) are events, not errors.
Transports, encryptions and signings raise `TransportError`, `DecryptionFailed` and `NotProven`,
which have the same root.

ReliableChannelError
├── NotAcknowledged         no participant is known to have the message, in time or at all
├── NoAnswer                no participant answered the question in time
├── EncryptionFailed        the given encryption raised an error; nothing was sent
├── ChannelClosed           the channel is not open: use it inside `async with`
├── LeftOutOfOrder          `async with` is left by another task, or before what it contains
├── ChannelUnavailable      opening failed: the node does not answer, or not as expected
│   └── OutOfResources      no file descriptor or no disk space is left on this machine
├── SettingsError           the environment or a file has a wrong value; a ValueError, too
├── PluginError             a plugin cannot be loaded or used; the text names it
├── StateError              the state given with `state=` cannot be used
│   ├── StateUnavailable    it cannot be read or written now
│   ├── StateInUse          another process has it open
│   ├── StateMismatch       it belongs to another channel, sender or dialect
│   ├── StateVersionTooNew  a newer version of this package wrote it
│   └── StateCorrupt        it is damaged, or not a state file
└── SdsError                `send` rejects the message
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

__all__ = [
    "ChannelClosed",
    "ChannelUnavailable",
    "ContentTooLong",
    "EmptyContent",
    "EncryptionFailed",
    "LeftOutOfOrder",
    "MessageIdInUse",
    "NoAnswer",
    "NotAcknowledged",
    "OutOfResources",
    "OutgoingBufferFull",
    "PluginError",
    "ReliableChannelError",
    "SdsError",
    "SettingsError",
    "StateCorrupt",
    "StateError",
    "StateInUse",
    "StateMismatch",
    "StateUnavailable",
    "StateVersionTooNew",
]


class NotAcknowledged(ReliableChannelError):
    """No other participant is known to have received a message in time.

    The text of the error tells what was missing. The channel still retries the message, unless the
    message has failed.
    """

    def __init__(self, message_id: str, what: str) -> None:
        super().__init__(f"message {message_id} was not acknowledged {what}")
        self.message_id = message_id


class NoAnswer(ReliableChannelError):
    """No participant answered a question in time.

    A later answer is emitted as `AnswerLate` with the same `question_id`.
    """

    def __init__(self, message_id: str, question_id: bytes, what: str) -> None:
        super().__init__(f"no participant answered question {message_id} {what}")
        self.message_id = message_id
        self.question_id = question_id


class EncryptionFailed(ReliableChannelError):
    """A message could not be encrypted, so no part of it was sent."""


class ChannelClosed(ReliableChannelError):
    """The channel is closed or not open yet."""


class LeftOutOfOrder(ReliableChannelError):
    """A block of `async with` was left by another task, or before a block inside it. The channel
    stays open."""


class ChannelUnavailable(ReliableChannelError):
    """The channel could not be opened. The cause of the error names the failed call to the node."""


class OutOfResources(ChannelUnavailable):
    """The machine has no free file descriptor or no disk space. The text of the error names the
    limit."""


class SettingsError(ReliableChannelError, ValueError):
    """A setting in the environment or in a file is wrong. The text of the error names the setting
    and its place.

    `run` prints the text instead of a traceback, and ends the program with exit status 2.
    """


class PluginError(ReliableChannelError):
    """A plugin cannot be loaded, used a taken name, or failed to create an object.

    The text of the error names the plugin. Later errors of a plugin's code keep their type, and a
    note names the plugin.
    """


class StateError(ReliableChannelError):
    """Root of the errors that state stores raise."""

    retryable = False
    """True if the same call may succeed later."""


class StateUnavailable(StateError):
    """The saved state cannot be read or written now."""

    retryable = True


class StateInUse(StateError):
    """Another process, or another channel of this process, has the state open."""


class StateMismatch(StateError):
    """The saved state belongs to another channel, participant or dialect."""


class StateVersionTooNew(StateError):
    """The saved state was written by a newer version of this package."""


class StateCorrupt(StateError):
    """The state file is damaged, or the file is not a state file."""
