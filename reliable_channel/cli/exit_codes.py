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

    DONE = 0, "done; also `listen`, `chat`, `peer` and `node` after SIGTERM"
    FAILED = 1, "the answer is no: not acknowledged, a promise broken, logs that differ"
    USAGE = 2, "wrong usage: an unknown flag, a value outside its limits, an unusable message"
    NO_NODE = 3, "no node: it does not answer, or took no message in time"
    UNUSABLE = 4, "something on this machine cannot be used: state, file, port, key, plugin"
    UNKNOWN = 5, "unknown: the promises could not be judged, or nothing was measured"
    DEFECT = 70, "a defect of this program; the traceback says where"
    INTERRUPTED = 130, "interrupted (Ctrl-C)"
    CUT_OFF = 141, "standard output was closed, as by `head`"
    TERMINATED = 143, "`send`, `demo`: SIGTERM came before the result"


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
