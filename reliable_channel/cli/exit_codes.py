"""Exit status of each command, and of each error."""

from enum import IntEnum
from functools import cache


class ExitCode(IntEnum):
    """Exit status of a command, with its meaning."""

    meaning: str

    def __new__(cls, status: int, meaning: str) -> "ExitCode":
        """A status with its meaning, as help and documentation show it."""
        code = int.__new__(cls, status)
        code._value_ = status
        code.meaning = meaning
        return code

    DONE = 0, "success; also for `listen`, `chat`, `peer` and `node` after SIGTERM"
    FAILED = 1, "a negative result: not acknowledged, a promise broken, or logs that differ"
    USAGE = 2, "wrong usage: an unknown flag, a value outside its limits, or an unusable message"
    NO_NODE = 3, "no node answered, or no node took the message in time"
    UNUSABLE = 4, "a file, port, key or plugin on this machine cannot be used"
    UNKNOWN = 5, "no result: the promises could not be judged, or nothing was measured"
    DEFECT = 70, "this program has a defect; the traceback says where"
    INTERRUPTED = 130, "Ctrl-C interrupted the command"
    CUT_OFF = 141, "a program such as `head` closed standard output"
    TERMINATED = 143, "`send` or `demo` received SIGTERM before the result"


@cache
def expected_errors() -> dict[type[Exception], ExitCode]:
    """Return the errors that are printed as one line, each with an exit status. The first entry
    that matches an error applies."""
    from waku.node import ArchiveError

    from ..errors import (
        ChannelUnavailable,
        OutOfResources,
        ReliableChannelError,
        SdsError,
        SettingsError,
        StateError,
    )

    return {
        OutOfResources: ExitCode.UNUSABLE,
        ChannelUnavailable: ExitCode.NO_NODE,
        SdsError: ExitCode.USAGE,
        SettingsError: ExitCode.USAGE,
        StateError: ExitCode.UNUSABLE,
        ReliableChannelError: ExitCode.UNUSABLE,
        ArchiveError: ExitCode.UNUSABLE,
        OSError: ExitCode.UNUSABLE,
        ValueError: ExitCode.USAGE,
    }


def code_of(error: BaseException) -> ExitCode:
    """Return the exit status for an expected error."""
    return next(code for kind, code in expected_errors().items() if isinstance(error, kind))
