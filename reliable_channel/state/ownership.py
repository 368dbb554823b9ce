"""Exclusive ownership of a state file, under every name that the file has.

Within a process, a set has the device and inode of each open file. Between processes, the owner
locks a file `<path>.lock`. In Linux, the owner also locks the file itself, where that does not
disturb the locks of SQLite.
"""

import os
import sys
from pathlib import Path
from threading import Lock
from typing import Final

from filelock import FileLock, Timeout

from ..errors import StateInUse, StateUnavailable

if sys.platform == "linux":
    from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock

PRIVATE_FILE: Final = 0o600
Inode = tuple[int, int]
"""Device and inode of a file, which are equal for all its names."""

_open: dict[Inode, "Ownership"] = {}
_guard = Lock()


class Ownership:
    """Exclusive right to use a state file.

    While the right is held, no other code of this process may open and close the file. Closing the
    file would release the locks of SQLite, which belong to the process.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._beside = FileLock(f"{path}.lock", mode=PRIVATE_FILE, thread_local=False)
        self._descriptor: int | None = None
        self.inode: Inode | None = None
        """The file that is owned."""

    def take(self) -> None:
        """Take the ownership of the file. If the file does not exist, create it with mode 0600.

        Raises:
            StateInUse: a process has it open, under this name or another one.
            StateUnavailable: it cannot be opened or made.
        """
        try:
            if not self._path.parent.is_dir():  # which a lock file's library would make
                raise NotADirectoryError(
                    f"{self._path.parent} is not a folder; create the folder first"
                )
            self._beside.acquire(timeout=0)
            self._note(inode_of(self._path))
            # Before it is open: closing it again would release the locks of another channel here.
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
            if self.inode is None:
                self._note(inode_of(self._path))
            if sys.platform == "linux":
                flock(self._descriptor, LOCK_EX | LOCK_NB)
        except (Timeout, BlockingIOError):
            self.release()
            raise self._in_use() from None
        except OSError as error:
            self.release()
            raise StateUnavailable(f"{self._path} cannot be opened: {error}") from error
        except StateInUse:
            self.release()
            raise

    def release(self) -> None:
        """Release the ownership of the file. A second call of `release` does nothing."""
        if self._descriptor is not None:
            if sys.platform == "linux":
                flock(self._descriptor, LOCK_UN)  # a process that was forked shares the lock
            os.close(self._descriptor)
            self._descriptor = None
        if self.inode is not None:
            _open.pop(self.inode, None)
            self.inode = None
        self._beside.release()

    def forget(self) -> None:
        """Release the ownership in a forked process. The parent process keeps the lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = self.inode = None

    def _note(self, inode: Inode | None) -> None:
        with _guard:
            if inode in _open:
                raise self._in_use()
            if inode is not None:
                _open[inode] = self
                self.inode = inode

    def _in_use(self) -> StateInUse:
        return StateInUse(
            f"{self._path} is in use; a state has one owner at a time: stop the other process or "
            "close the other channel, or give this one a separate state"
        )


def _forget_all() -> None:
    global _guard
    for ownership in _open.values():
        ownership.forget()
    _open.clear()
    _guard = Lock()


if sys.platform != "win32":  # which does not fork
    os.register_at_fork(after_in_child=_forget_all)


def inode_of(path: Path | str) -> Inode | None:
    """Return the device and inode of the file at a path, or None."""
    try:
        found = os.stat(path)  # noqa: PTH116 - each write asks twice, and a `Path` takes as long
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
