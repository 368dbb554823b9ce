"""Sources of a view, which are journals or a channel that the process joins."""

from collections.abc import Callable, Coroutine, Iterable
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio.lowlevel import checkpoint

from .model import View
from .reading import Follower, note

if TYPE_CHECKING:
    from reliable_channel import ReliableChannel

Feed = Callable[[View], Coroutine[Any, Any, None]]
"""Function that fills a view until it is cancelled or no more data can come."""
POLL_S: Final = 0.25
LINES_AT_ONCE: Final = 500
"""Number of journal lines that are read before the clients of the page get a turn."""


async def follow(view: View, paths: Iterable[str | Path], *, poll_s: float = POLL_S) -> None:
    """Read journals into a view, and then the lines that are added to them.

    Raises:
        FileNotFoundError: a path does not exist.
        ValueError: there is no journal at all, or one has another format.
    """
    with Follower(paths) as follower:
        while True:
            lines = follower.look()
            while some := list(islice(lines, LINES_AT_ONCE)):
                for participant, line in some:
                    note(view, participant, line)
                await checkpoint()
            await anyio.sleep(poll_s)


async def join(view: View, open_channel: "Callable[[Path], ReliableChannel]") -> None:
    """Open a channel that writes a journal into a temporary folder, and show its events.

    Raises:
        ReliableChannelError: the channel cannot be opened, or ended.
    """
    with TemporaryDirectory(prefix="reliable-channel-watch-") as folder:
        async with open_channel(Path(folder)) as channel, anyio.create_task_group() as tasks:
            tasks.start_soon(follow, view, [folder])
            async for _ in channel.events():  # a reader, so that the channel's end ends the feed
                pass
            tasks.cancel_scope.cancel()
