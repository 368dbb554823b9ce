"""Channels of people, whose state has a default place."""

import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from ..errors import StateInUse
from .channel_flags import ChannelArguments
from .console import err

if TYPE_CHECKING:
    from ..channel import ReliableChannel

_NAME: Final = "reliable-channel"


def personal_state() -> str:
    """Where people's channels are kept when they do not say."""
    return f"sqlite:///{data_directory()}/{{channel_id}}/{{sender_id}}.db"


@asynccontextmanager
async def personal_channel(arguments: ChannelArguments) -> AsyncIterator["ReliableChannel"]:
    """The channel that the flags describe, open, with state unless they say otherwise.

    The default place belongs to the first of a person's commands; another one at the same time
    goes without, which is enough to say something.
    """
    default = personal_state() if arguments.state is None else None
    channel = arguments.channel(default_state=default)
    try:
        await channel.open()
    except StateInUse:
        if arguments.state is not None:
            raise
        err.print(
            f"{channel.sender_id} has this channel open in another command, which keeps its state; "
            "this one keeps none",
            style="dim",
            markup=False,
        )
        channel = arguments.channel()
        await channel.open()
    try:
        yield channel
    finally:
        await channel.aclose()


def data_directory() -> Path:
    """Where the platform keeps data of applications; what an earlier version kept where settings
    are moves there once."""
    if sys.platform in ("darwin", "win32"):
        return Path(typer.get_app_dir(_NAME, roaming=False))
    # An address that is not absolute is to be ignored (XDG Base Directory Specification).
    given = Path(os.environ.get("XDG_DATA_HOME", ""))
    directory = (given if given.is_absolute() else Path.home() / ".local" / "share") / _NAME
    earlier = Path(typer.get_app_dir(_NAME))
    if not earlier.is_dir() or directory.exists():
        return directory
    from filelock import Timeout

    try:
        _move(earlier, directory)
    except (Timeout, OSError) as error:
        why = "it is in use" if isinstance(error, Timeout) else str(error)
        err.print(f"state stays in {earlier} for now: {why}", style="dim", markup=False)
        return earlier
    err.print(f"state moved from {earlier} to {directory}", style="dim", markup=False)
    return directory


def _move(earlier: Path, directory: Path) -> None:
    """Move a directory in which no process has a state open.

    Raises:
        Timeout: a process has.
        OSError: it cannot be moved.
    """
    from filelock import FileLock

    with ExitStack() as held:
        for path in earlier.rglob("*.db"):
            held.enter_context(FileLock(f"{path}.lock", timeout=0))
        directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.move(earlier, directory)
