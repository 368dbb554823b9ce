"""New lines of a file that grows, also across rotation by renaming or truncation."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from .. import journals
from ..lines import Line, set_aside

HEAD_BYTES: Final = 256
"""Number of bytes at the beginning of a file that identify it. Every journal begins with its
participant and the time, so beginnings differ."""
_PLAIN: Final = ".jsonl", ".journal"


class Tail:
    """Follower of the file at one path. Renamed files stay open until they are read to their
    end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.number = 0
        """Of the last line, in the file as it is now."""
        self._file: IO[bytes] | None = None
        self._head = b""
        self._skipping = False

    def lines(self) -> Iterator[bytes | Line]:
        """Yield the complete lines that were not read before."""
        while self._file is not None or self._open():
            if self._was_truncated():
                yield from self._from_copy()
                self._begin()
            yield from self._rest()
            if not self._was_renamed():
                return
            yield from self._rest()  # what was written meanwhile
            self.close()

    def close(self) -> None:
        """Close the file that is followed."""
        if self._file is not None:
            self._file.close()
        self._file = None

    def _open(self) -> bool:
        try:
            self._file = self.path.open("rb")
        except OSError:
            return False  # between two files
        self._begin()
        return True

    def _begin(self) -> None:
        assert self._file is not None
        self._file.seek(0)
        self._head, self.number, self._skipping = b"", 0, False

    def _rest(self) -> Iterator[bytes | Line]:
        assert self._file is not None
        while text := self._file.readline(journals.MAX_LINE_BYTES):
            is_whole = text.endswith(b"\n")
            if not is_whole and len(text) < journals.MAX_LINE_BYTES:
                self._file.seek(-len(text), os.SEEK_CUR)  # the rest of it is not written yet
                return
            was_skipping, self._skipping = self._skipping, not is_whole
            if was_skipping:
                continue
            self.number += 1
            if not is_whole:
                yield set_aside(f"longer than {journals.MAX_LINE_BYTES} bytes")
            elif not text.isspace():
                yield text

    def _was_truncated(self) -> bool:
        """The file is shorter, or begins in another way: its content was copied and cut off."""
        assert self._file is not None
        descriptor = self._file.fileno()
        head = os.pread(descriptor, HEAD_BYTES, 0)
        known, self._head = self._head, max(head, self._head, key=len)
        shorter = os.fstat(descriptor).st_size < self._file.tell()
        return shorter or not head.startswith(known)

    def _was_renamed(self) -> bool:
        """Another file has the path, and lines in it: until then the old one may still grow."""
        assert self._file is not None
        try:
            now = self.path.stat()
        except OSError:
            return False
        own = os.fstat(self._file.fileno())
        return (now.st_dev, now.st_ino) != (own.st_dev, own.st_ino) and now.st_size > 0

    def _from_copy(self) -> Iterator[bytes | Line]:
        """What was written before the truncation and after the last look, from the copy."""
        assert self._file is not None
        position = self._file.tell()
        for copy in self._copies():
            with suppress(*journals.DAMAGE), journals.opened_file(copy) as file:
                if not self._head or file.read(len(self._head)) != self._head:
                    continue
                file.seek(position)
                for text in journals.texts(file):
                    self.number += 1
                    if isinstance(text, Line) or text.endswith(b"\n"):
                        yield text
                return

    def _copies(self) -> list[Path]:
        """Files beside this one whose names begin as its own does, the newest first."""
        stem = self.path.name.removesuffix(self.path.suffix)
        near = (
            each
            for each in self.path.parent.iterdir()
            if each.name.startswith((f"{stem}.", f"{stem}-")) and each != self.path
        )
        return sorted(near, key=lambda each: each.stat().st_mtime, reverse=True)
