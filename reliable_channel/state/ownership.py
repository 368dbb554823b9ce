"""Exclusive ownership of a file, under every name by which it can be opened.

Within a process, the device and inode of open files are recorded. Between processes, a file
`<path>.lock` is locked. The file itself is also locked, if the system keeps that lock apart from
those of SQLite (Linux).
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
"""Device and inode, which are equal for all names of a file."""

_open: dict[Inode, "Ownership"] = {}
_guard = Lock()


class Ownership:
    """Right to use a file, as long as it is held.

    While it is held, no other code in this process may open and close the file. That would release
    the locks of SQLite, which belong to the process.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._beside = FileLock(f"{path}.lock", mode=PRIVATE_FILE, thread_local=False)
        self._descriptor: int | None = None
        self.inode: Inode | None = None
        """The file that is owned."""

    def take(self) -> None:
        """Take the file. If it does not exist, create it with mode 0600.

        Raises:
            StateInUse: a process has it open, under this name or another one.
            StateUnavailable: it cannot be opened or made.
        """
        try:
            if not self._path.parent.is_dir():  # which a lock file's library would make
                raise NotADirectoryError(f"{self._path.parent} is not a folder; make it first")
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
        """Release the file. A second call does nothing."""
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
        """Release the file in a forked process. Only the owner keeps the lock."""
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


def inode_of(path: Path) -> Inode | None:
    """Return the identity of the file at a path, or None."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
