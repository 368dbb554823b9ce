"""What a state store raises.

StateError              the state cannot be used; the text says which file and what to do
├── StateUnavailable    it cannot be read or written now: disk full, read-only, not permitted
├── StateInUse          another process has it open
├── StateMismatch       it belongs to another channel, sender or dialect
├── StateVersionTooNew  a newer version of this package wrote it
└── StateCorrupt        it is not a state file, or a damaged one; retrying will not help
"""

from ..sds.errors import ReliableChannelError


class StateError(ReliableChannelError):
    """Root of what state stores raise."""

    retryable = False
    """Whether the same call may succeed later."""


class StateUnavailable(StateError):
    """The state cannot be read or written at the moment."""

    retryable = True


class StateInUse(StateError):
    """Another process, or another channel of this one, has the state open."""


class StateMismatch(StateError):
    """The state belongs to another channel, participant or dialect."""


class StateVersionTooNew(StateError):
    """The state was written by a newer version of this package."""


class StateCorrupt(StateError):
    """The file is no state, or a damaged one."""
