"""What the package adds to `reliable-channel`: the commands `check` and `audit`."""

from typing import TYPE_CHECKING

from reliable_channel.hooks import hookimpl

if TYPE_CHECKING:
    import typer


@hookimpl
def register_commands(app: "typer.Typer") -> None:
    """Add `check` and `audit`."""
    from .commands import audit, check

    check.register(app)
    audit.register(app)
