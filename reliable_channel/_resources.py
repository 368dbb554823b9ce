"""What a machine has run out of, by a name of ours."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from .errors import OutOfResources, StateError

_ADVICE: Final = {
    errno.EMFILE: "no file descriptor is left for this process; raise `ulimit -n`",
    errno.ENFILE: "no file descriptor is left on this machine; raise fs.file-max",
    errno.ENOSPC: "no space is left on the disk; make room",
    errno.EDQUOT: "the disk quota is used up; make room",
}


@contextmanager
def resources_named(what: str) -> Iterator[None]:
    """Raise the errors of a block as `name_resource` does."""
    try:
        yield
    except Exception as error:
        name_resource(error, what)
        raise


def name_resource(error: Exception, what: str) -> None:
    """Raise `OutOfResources` in place of an error with such a cause, except those of the state."""
    if not isinstance(error, OutOfResources | StateError) and (advice := _advice(error)):
        raise OutOfResources(f"{what}: {advice}") from error


def _advice(error: BaseException | None) -> str | None:
    while error is not None:
        if isinstance(error, OSError) and error.errno in _ADVICE:
            return _ADVICE[error.errno] + (_limit() if error.errno == errno.EMFILE else "")
        error = error.__cause__ or error.__context__
    return None


def _limit() -> str:
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return ""
    return f" (now {resource.getrlimit(resource.RLIMIT_NOFILE)[0]})"
