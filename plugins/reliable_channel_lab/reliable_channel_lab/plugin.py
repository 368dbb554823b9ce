"""Plugin that adds the commands `simulate` and `sweep` to `reliable-channel`."""

from typing import TYPE_CHECKING, Final

from reliable_channel.spi import hookimpl

if TYPE_CHECKING:
    import typer


COMMANDS: Final = {
    "simulate": "Run groups of real cores over a faulty simulated network, and check "
    "every promise.",
    "sweep": "Run simulations for each combination of settings, options and seeds, and print "
    "their digest.",
}
"""Names of the commands, with the first paragraph of their help."""


@hookimpl
def register_commands(app: "typer.Typer") -> None:
    """Add the commands `simulate` and `sweep`."""
    from reliable_channel.spi import lazy_command

    for name, summary in COMMANDS.items():
        lazy_command(app, name, f"{__package__}.commands.{name}", summary)
