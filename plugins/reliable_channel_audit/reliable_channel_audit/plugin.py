"""What the package adds to `reliable-channel`: the commands `check` and `audit`."""

from typing import TYPE_CHECKING, Final

from reliable_channel.spi import hookimpl

if TYPE_CHECKING:
    import typer


COMMANDS: Final = {
    "check": "Say whether a channel kept its promises, from journals of its participants.",
    "audit": "Say whether a channel kept its promises, and write a report of how it did.",
}
"""Their names, and the first paragraph of their help."""


@hookimpl
def register_commands(app: "typer.Typer") -> None:
    """Add `check` and `audit`."""
    from reliable_channel.spi import lazy_command

    for name, summary in COMMANDS.items():
        lazy_command(app, name, f"{__package__}.commands.{name}", summary)
