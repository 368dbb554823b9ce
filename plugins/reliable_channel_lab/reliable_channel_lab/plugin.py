"""What the package adds to `reliable-channel`: the commands `simulate` and `sweep`."""

from typing import TYPE_CHECKING

from reliable_channel.hooks import hookimpl

if TYPE_CHECKING:
    import typer


@hookimpl
def register_commands(app: "typer.Typer") -> None:
    """Add `simulate` and `sweep`."""
    from .commands import simulate, sweep

    simulate.register(app)
    sweep.register(app)
