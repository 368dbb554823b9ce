"""`reliable-channel watch`: a channel, live or from journals, in the terminal or as a web page."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(watch)


def watch(
    paths: Annotated[list[Path], typer.Argument(help="Journals, or directories of them.")],
) -> None:
    """Show a channel, live or from journals, in the terminal or as a web page.

    What participants append to their journals is shown as it comes.
    """
    from .feeds import follow
    from .model import View
    from .reading import Follower
    from .terminal.app import WatchApp

    with Follower(paths) as follower:
        follower.look()  # what is wrong with the paths is an error, not a page
    WatchApp(View(), partial(follow, paths=paths)).run()
