"""Channels of a person's commands, whose state has a default folder."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from ..errors import ChannelUnavailable, StateInUse, StateUnavailable
from .channel_flags import ChannelArguments
from .console import err

if TYPE_CHECKING:
    from ..channel import ReliableChannel

_NAME: Final = "reliable-channel"
PRIVATE: Final = 0o700


def personal_state() -> str:
    """Return the default folder for the saved state of commands."""
    return f"sqlite:///{data_directory()}/{{channel_id}}/{{sender_id}}.db"


@asynccontextmanager
async def personal_channel(arguments: ChannelArguments) -> AsyncIterator["ReliableChannel"]:
    """Open the channel that the arguments describe, with saved state by default.

    The first running command of a user gets the default state file. A second command at the same
    time runs without saved state.
    """
    default = None
    if arguments.state is None:
        default = personal_state()
        _make(data_directory())
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
    except ChannelUnavailable as error:
        error.add_note("`reliable-channel node` starts a node, `reliable-channel doctor` helps")
        raise
    try:
        yield channel
    finally:
        await channel.aclose()


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    except OSError as error:
        raise StateUnavailable(
            f"{folder} cannot be made as a data directory: {error}; set XDG_DATA_HOME, or give "
            "--state"
        ) from error


def data_directory() -> Path:
    """Return the folder for application data on this platform.

    Raises:
        StateUnavailable: this user has no home.
    """
    if sys.platform in ("darwin", "win32"):
        return Path(typer.get_app_dir(_NAME, roaming=False))
    # An address that is not absolute is to be ignored (XDG Base Directory Specification).
    given = Path(os.environ.get("XDG_DATA_HOME", ""))
    try:
        return (given if given.is_absolute() else Path.home() / ".local" / "share") / _NAME
    except RuntimeError as error:
        raise StateUnavailable(
            "there is no home directory for the state files; set XDG_DATA_HOME, or give --state"
        ) from error
