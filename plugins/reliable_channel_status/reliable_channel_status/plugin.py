"""Plugin behind the entry point `status`, with the commands `bot …` and a check for `doctor`."""

from typing import TYPE_CHECKING, Final

from reliable_channel.spi import Register, hookimpl

if TYPE_CHECKING:
    import typer

COMMANDS: Final = {
    "key": "Make a bot's key in a file that only you may read, and print its public key.",
    "new": "Write the files of a new bot, with a test and a key, and print its public key.",
    "run": "Run the bot of a file or module, and with --reload again after each change.",
    "doctor": "Print in which communities a bot is a member. Clients drop messages of others.",
}
"""Names of the `bot` commands, each with the first paragraph of its help."""


@hookimpl
def register_checks(register: Register) -> None:
    """Add the check of a configured bot's membership."""
    register("status.membership", f"{__package__}.cli.doctor_check:check_membership")


@hookimpl
def register_commands(app: "typer.Typer") -> None:
    """Add the command group `reliable-channel bot`."""
    import typer

    from reliable_channel.spi import lazy_command

    bot = typer.Typer(help="Commands for bots in Status communities.", no_args_is_help=True)
    for name, summary in COMMANDS.items():
        lazy_command(bot, name, f"{__package__}.cli.commands", summary)
    app.add_typer(bot, name="bot")
