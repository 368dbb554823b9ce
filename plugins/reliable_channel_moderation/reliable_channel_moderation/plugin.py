"""Plugin behind the entry point `moderation`, with a command for the audit log."""

from typing import TYPE_CHECKING, Final

from reliable_channel.spi import hookimpl

if TYPE_CHECKING:
    import typer

SUMMARY: Final = "Check an audit log of the moderation of a Status bot, and print its actions."


@hookimpl
def register_commands(app: "typer.Typer") -> None:
    """Add the command `reliable-channel bot log` to the program."""
    import typer

    from reliable_channel.spi import lazy_command

    bot = typer.Typer(help="Commands for bots in Status communities.", no_args_is_help=True)
    lazy_command(bot, "log", f"{__package__}.commands", SUMMARY)
    app.add_typer(bot, name="bot")
