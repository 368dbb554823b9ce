"""`reliable-channel bot run FILE --reload`, which starts a bot again whenever its files change."""

import importlib
import importlib.util
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Final, TypeAlias

from ..bot.bot import StatusBot

POLL_S: Final = 0.3
"""Polling interval for changes of the bot's files."""
MAX_FILES: Final = 10_000
"""Maximum number of files that are watched for changes. A folder with more files is not the folder
of a bot."""
_WATCHED: Final = (".py", ".toml")
_SKIPPED: Final = ("__pycache__", "node_modules", "site-packages")

Seen: TypeAlias = dict[Path, tuple[int, int]]
"""Time of the last change, and the size, of each watched file."""


class CannotRun(ValueError):
    """Error that a file or module contains no bot of the given name."""


def load_bot(target: str) -> StatusBot:
    """Return the bot of a file or module, such as `bot.py`, `bot.py:name` or `package.module:name`.

    Raises:
        CannotRun: there is none.
        Exception: what the module raises.
    """
    place, _, name = target.partition(":")
    module = _from_file(Path(place)) if place.endswith(".py") else _from_name(place)
    found = getattr(module, name or "bot", None)
    if not isinstance(found, StatusBot):
        raise CannotRun(f"`{name or 'bot'}` in {place} must be a StatusBot (got {found!r})")
    return found


def folder_of(target: str) -> Path:
    """Return the folder to watch for changes.

    Raises:
        CannotRun: there is no such file or module.
    """
    place = target.partition(":")[0]
    if place.endswith(".py"):
        return Path(place).resolve().parent
    sys.path.insert(0, "")
    try:
        spec = importlib.util.find_spec(place)
    except ModuleNotFoundError:
        spec = None
    finally:
        del sys.path[0]
    if spec is None or spec.origin is None:
        raise CannotRun(f"there is no module {place}")
    return Path(spec.origin).resolve().parent


def seen(folder: Path) -> Seen:
    """Return the present Python and TOML files of a folder and its subfolders, with times and
    sizes.

    Raises:
        CannotRun: there are too many.
    """
    found: Seen = {}
    for file in _files(folder):
        try:
            stat = file.stat()
        except OSError:  # it was deleted just now
            continue
        found[file] = stat.st_mtime_ns, stat.st_size
        if len(found) > MAX_FILES:
            raise CannotRun(
                f"{folder} has more than {MAX_FILES:,} files; move the bot to a folder of its own"
            )
    return found


def why_broken(files: Mapping[Path, object]) -> str | None:
    """Return the first syntax error in the given files, or None."""
    for file in files:
        if file.suffix == ".py":
            try:
                compile(file.read_bytes(), str(file), "exec")
            except (SyntaxError, ValueError) as error:
                return f"{type(error).__name__}: {error}"
            except OSError:
                continue
    return None


class Reloader:
    """Runs a process, and starts it again when files change.

    Args:
        command: of the process, which ends in good order at SIGTERM.
        folder: what to reporter.
        say: given a line for each thing that happens.
        pause: waits between two looks.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        say: Callable[[str], None],
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._command = command
        self._folder = folder
        self._say = say
        self._pause = pause
        self._is_stopping = False

    def stop(self) -> None:
        """Stop the process, so that `run` returns. A signal handler may call `stop`."""
        self._is_stopping = True

    def run(self) -> int:
        """Run the process until `stop`. `run` returns the last exit status of the process.

        Raises:
            CannotRun: the folder has too many files.
        """
        before = seen(self._folder)
        process: subprocess.Popen[bytes] | None = subprocess.Popen(self._command)
        status = 0
        try:
            while not self._is_stopping:
                self._pause(POLL_S)
                if process is not None and process.poll() is not None:
                    status, process = process.returncode, None
                    self._say(f"the bot ended with status {status}; it starts after a change")
                now = seen(self._folder)
                changed = {file: at for file, at in now.items() if before.get(file) != at}
                is_changed, before = bool(changed or before.keys() - now.keys()), now
                if not is_changed:
                    continue
                if why := why_broken(changed):
                    self._say(f"not reloaded: {why}")
                    continue
                self._say(f"reload: {', '.join(sorted(file.name for file in changed)) or 'files'}")
                _end(process)
                process = subprocess.Popen(self._command)
        finally:
            status = _end(process) if process is not None else status
        return status


def _end(process: "subprocess.Popen[bytes] | None") -> int:
    """Stop a process in good order; return its exit status."""
    if process is None:
        return 0
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    return process.wait()


def _files(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith(".") or entry.name in _SKIPPED or entry.is_symlink():
            continue
        if entry.is_dir():
            yield from _files(entry)
        elif entry.suffix in _WATCHED:
            yield entry


def _from_file(file: Path) -> ModuleType:
    if not file.is_file():
        raise CannotRun(f"there is no file {file}")
    sys.path.insert(0, str(file.resolve().parent))
    return importlib.import_module(file.stem)


def _from_name(name: str) -> ModuleType:
    sys.path.insert(0, "")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and name.startswith(error.name):
            raise CannotRun(f"there is no module {name}") from error
        raise
