"""Plugin that adds the command `watch` to `reliable-channel`."""

from typing import TYPE_CHECKING, Final

from reliable_channel.spi import hookimpl

if TYPE_CHECKING:
    import typer

SUMMARY: Final = "Show a channel, live or from journals, as a web page."


@hookimpl
def register_commands(app: "typer.Typer") -> None:
    """Add the command `reliable-channel watch` to the program."""
    from reliable_channel.spi import lazy_command

    lazy_command(app, "watch", f"{__package__}.command", SUMMARY)
